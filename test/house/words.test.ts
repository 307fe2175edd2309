import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { BANNED_IDENTIFIERS, BANNED_PHRASES } from "./banned-words.ts";
import { root } from "./sources.ts";

const SOURCES = [
  "packages/*/src/**/*.{ts,tsx}",
  "packages/*/bin/*.js",
  "scripts/*.mjs",
  "action/**/*.{mjs,yml}",
  "packages/cli/sample/**/*.{sample,yml,yaml}",
  "examples/**/*.{ts,md}",
  "bench/**/*.{ts,md}",
];
const DOCS = ["*.md", "docs/**/*.md", "packages/*/README.md", "test/**/*.md"];

const lines = globSync([...SOURCES, ...DOCS], { cwd: root, exclude: ["**/node_modules/**", "**/dist/**"] })
  .toSorted()
  .flatMap((file) =>
    readFileSync(join(root, file), "utf8")
      .split("\n")
      .map((text, index) => ({ place: `${file}:${index + 1}`, text })),
  );

test.each(BANNED_PHRASES.map((banned) => [String(banned.pattern), banned] as const))(
  "no line says %s",
  (_name, banned) => {
    const { pattern, allowed, instead } = banned;
    const found = lines.filter(({ text }) => pattern.test(text) && allowed?.test(text) !== true);
    expect(found.map(({ place, text }) => `${place}: ${text.trim()} (instead: ${instead})`)).toEqual([]);
  },
);

test("no identifier of the replaced vocabulary is used", () => {
  const banned = new RegExp(`\\b(?:${BANNED_IDENTIFIERS.join("|")})\\b`);
  const found = lines.filter(({ place, text }) => place.startsWith("packages/") && banned.test(text));
  expect(found.map(({ place, text }) => `${place}: ${banned.exec(text)?.[0]}`)).toEqual([]);
});

/** Options of agent states. Core defines them, and holds two under the names that journals record. */
const AGENT_OPTIONS = /\b(?:AgentSpec|completionSchema|maxOutputTokens|promptPaths|promptText|temperature|turnCap)\b/;
const AGENT_FILES =
  /^packages\/core\/src\/(?:definition\/(?:agents\/(?:stage|model-settings|orchestrator)|types|fingerprint\/part-changes)|schemas)\.ts:/;

test("core names no option of agent states outside stage(), so that every kind has the same abilities", () => {
  const found = lines.filter(
    ({ place, text }) => place.startsWith("packages/core/src/") && !AGENT_FILES.test(place) && AGENT_OPTIONS.test(text),
  );
  expect(found.map(({ place, text }) => `${place}: ${text.trim()}`)).toEqual([]);
  expect(lines.filter(({ place, text }) => AGENT_FILES.test(place) && AGENT_OPTIONS.test(text))).not.toEqual([]);
});

test("the rules find what they ban", () => {
  const [told] = BANNED_PHRASES;
  expect(told?.pattern.test("it is told so")).toBe(true);
  expect(told?.pattern.test("it is reported")).toBe(false);
});
