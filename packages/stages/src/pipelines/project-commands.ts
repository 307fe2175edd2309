// The usual commands of projects for tests and checks, which need no model to run.

import type { State } from "@sluice/core";
import type { ScriptOutput } from "../kinds/commands/command.ts";
import { script } from "../kinds/script.ts";

/** Exact commands: a further option could name a program to run or a file to write. Anything else needs approval. */
export const TEST_COMMANDS: readonly string[] = [
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
export const LINT_COMMANDS: readonly string[] = [
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

/** Every exit code is a result: the next state decides what it means. */
const ALL_CODES = Array.from({ length: 256 }, (_, code) => code);

/**
 * A state that runs one of these commands. The value of a template chooses it, and is never part of a line. It runs in the sandbox,
 * because it runs code that a model may have changed.
 */
export function oneOf(commands: readonly string[], chosen: string): State<ScriptOutput, undefined> {
  const cases = commands.map((command) => `"${command}") ${command} ;;`);
  const unknown = `*) echo "not one of the known commands: $COMMAND" >&2; exit 127 ;;`;
  return script({
    command: { shell: ['case "$COMMAND" in', ...cases, unknown, "esac"].join("\n") },
    // Test runners that watch files without it would never end.
    env: { COMMAND: chosen, CI: "true" },
    successCodes: ALL_CODES,
    sandbox: {},
    timeoutMs: "30m",
  });
}

/** What a model reads of such a run, with the end of what it printed. */
export type CommandRun = { readonly command: string; readonly passed: boolean; readonly output: string };

export function commandRun(command: string, { exitCode, stdout, stderr }: ScriptOutput): CommandRun {
  const output = [stdout, stderr].filter((text) => text !== "").join("\n");
  return { command, passed: exitCode === 0, output: `exit code ${exitCode}\n${output}` };
}
