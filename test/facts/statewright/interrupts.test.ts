import { expect } from "vitest";
import { dataOf } from "../../support/run-kit.ts";
import { documentOf, fact, ours, type Played, play, send, write } from "../../support/statewright.ts";
import { loadDocument, ruleLines } from "../../support/workflows.ts";

// Changes of files that detour a run.

const a = { allowed_tools: ["Read", "Write", "Bash"], on: { DONE: "done", FAIL: "failed" } };
const handler = { allowed_tools: [], on: { OK: "$return", FAIL: "failed" } };
function watching(...patterns: readonly string[]): object {
  const interrupts = patterns.map((file_pattern, at) => [
    `${"cab"[at]}_check`,
    { trigger: { file_pattern }, target: "handler" },
  ]);
  return documentOf({ a, handler }, { interrupts: Object.fromEntries(interrupts) });
}
const interruptsIn = ({ events }: Played): readonly unknown[] =>
  dataOf(events, "interrupt.started").map(({ interrupt, files }) => [interrupt, files]);
const handled = Array.from({ length: 3 }, () => send("OK"));

/** Whether writing this file starts the interrupt of the pattern. */
async function matches(pattern: string, path: string): Promise<boolean> {
  const played = await play(watching(pattern), { a: [write(path, "new\n"), send("DONE")], handler: handled });
  expect(played.result.status).toBe("completed");
  expect(played.folder.text(path)).toBe("new\n");
  return interruptsIn(played).length > 0;
}

fact(49, "file patterns match as globs", async () => {
  const cases: readonly (readonly [pattern: string, path: string, matches: boolean])[] = [
    ["src/main.rs", "src/main.rs", true],
    ["src/main.rs", "src/main.rss", false],
    ["src/*.rs", "src/a.rs", true],
    ["src/*.rs", "src/deep/a.rs", false],
    ["**/*.rs", "a.rs", true],
    ["**/*.rs", "src/deep/a.rs", true],
    ["site/pb/**/*.js", "site/pb/hooks/a.js", true],
    ["site/pb/**/*.js", "site/pb/a.js", true],
    ["site/pb/**/*.js", "site/a.js", false],
    ["a?.txt", "ab.txt", true],
    ["a?.txt", "a.txt", false],
    ["a?b.txt", "a/b.txt", false],
    ["**/*.env*", "app/.env.local", true],
    ["**/*.env*", ".env.local", true],
    ["db/**", "db/deep/a.sql", true],
    ["db/**", "other/a.sql", false],
  ];
  for (const [pattern, path, expected] of cases)
    expect(await matches(pattern, path), `${pattern} on ${path}`).toBe(expected);
  const loaded = await loadDocument(watching(""));
  expect(ruleLines(loaded).filter((line) => !line.includes("warning"))).toEqual([
    expect.stringContaining("interrupts.c_check"),
  ]);
});

fact(50, "a change starts the interrupt whose pattern matches, and no interrupt if none does", async () => {
  const some = { a: [write("db/a.sql", "x"), write("src/a.ts", "x"), send("DONE")], handler: handled };
  expect(interruptsIn(await play(watching("db/**", "docs/**"), some))).toEqual([["c_check", ["db/a.sql"]]]);
});

ours(51, "of several interrupts that match one change, each is handled, in the order of the document", async () => {
  const turns = { a: [write("db/a.sql", "x"), send("DONE")], handler: handled };
  const played = await play(watching("db/**", "**/*.sql", "docs/**"), turns);
  expect(interruptsIn(played)).toEqual([
    ["c_check", ["db/a.sql"]],
    ["a_check", ["db/a.sql"]],
  ]);
  expect(played.walked.toSorted()).toEqual(["a#1", "handler#1", "handler#2"]);
});
