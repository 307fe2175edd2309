// The usual commands of projects for tests and checks, which need no model to run.

import { type ScriptOutput, script } from "../kinds/…";

/** Exact commands: a further option could name a program to run or a file to write. Anything else needs approval. */
export const TEST_COMMANDS = [
  "npm test",
  "npm run test",
  "pnpm test",
  "pnpm run test",
  "yarn test",
  "yarn run test",
  "node --test",
  "npx vitest run",
  "npx jest",
  "pytest",
  "pytest -q",
  "python -m pytest",
  "python -m pytest -q",
  "python3 -m pytest",
  "python3 -m pytest -q",
  "python -m unittest",
  "python3 -m unittest",
  "go test ./...",
  "cargo test",
  "make test",
];
export const LINT_COMMANDS = [
  "npm run lint",
  "pnpm lint",
  "pnpm run lint",
  "yarn lint",
  "yarn run lint",
  "npx eslint .",
  "npx biome check",
  "npx biome check .",
  "npx tsc --noEmit",
  "ruff check",
  "ruff check .",
  "go vet ./...",
  "cargo clippy",
  "make lint",
];
