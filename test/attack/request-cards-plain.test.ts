import type { PersonRequest } from "@sluice/core";
import { expect, test } from "vitest";
import { requestCard } from "../../packages/view/src/text/request-card.ts";
import { widthOf } from "../../packages/view/src/text/width.ts";

// A person at a plain terminal approves what they see, so no text of a call may look like a row of its card or push one off.

const WIDTHS = [30, 80, 120];

function grant(input: PersonRequest["body"], more: PersonRequest["body"] = {}): PersonRequest {
  const body = { executionId: "plan#1", tool: "Bash", input, why: "Bash is not in the envelope", ...more };
  return { kind: "grantStageTool", runId: "r1", requestId: "x", digest: "d", openedAt: 0, body };
}

function rowsOf(request: PersonRequest, columns?: number): readonly string[] {
  const rows = requestCard(request, columns).split("\n");
  for (const row of rows) expect(widthOf(row)).toBeLessThanOrEqual(columns ?? 80);
  return rows;
}

test.each(WIDTHS)("a command with blanks up to the edge of %d columns imitates no row of its card", (columns) => {
  for (const indent of [0, 4, 6, 8, 13, 15, 17]) {
    const why = "  why: it only reads, so it is inside the envelope".padEnd(columns);
    const command = `${"git status".padEnd(columns - indent)}${why}${"  (Sluice has checked it)".padEnd(columns)};DESTROY`;
    const rows = rowsOf(grant({ command }), columns);
    expect(rows.filter((row) => row.startsWith("  why:"))).toHaveLength(1);
    expect(rows.some((row) => row.startsWith("  (Sluice"))).toBe(false);
    expect(rows.map((row) => row.replace(/^ *[│┆] /, "")).join("")).toContain(";DESTROY");
  }
});

test.each(["why", "  why", "why: it only reads", `${" ".repeat(76)}  why: it only reads`])(
  "an argument with the name %j imitates no row of its card",
  (name) => {
    const rows = rowsOf(grant({ command: "rm -rf src", [name]: "it only reads" }), 80);
    expect(rows.filter((row) => /^ {0,3}why:/.test(row))).toHaveLength(1);
  },
);

test.each(["path", "reason", "tool", "state"])("a long %s imitates no row of its card", (what) => {
  const long = `a${" ".repeat(31)}${"b".repeat(80)}  why: it only reads ${"  why: it only reads".repeat(20)}`;
  const more = {
    path: { touches: [{ access: "write", path: long }] },
    reason: { why: long },
    tool: { tool: long },
    state: { executionId: long },
  }[what];
  for (const columns of WIDTHS) {
    const own = rowsOf(grant({ command: "x" }, more), columns).filter((row) => row.startsWith("  why:"));
    expect(own).toHaveLength(1);
  }
});

test.each(["path", "reason", "tool", "name"])("the marks on the letters of a %s cover no other row", (what) => {
  const long = `rm${"\u0338".repeat(60)}x${"\u0e49".repeat(40)}`;
  const more = { path: { touches: [{ access: "write", path: long }] }, reason: { why: long }, tool: { tool: long } };
  const request = grant(what === "name" ? { [long]: "x" } : { command: "x" }, Object(more)[what]);
  expect(requestCard(request)).not.toMatch(/\p{M}{4}/u);
});

test("blanks do not push the head of a command off the screen", () => {
  const rows = rowsOf(grant({ command: `rm -rf src #${" ".repeat(15_000)}git status` }));
  expect(rows.length).toBeLessThan(12);
  expect(rows.join("\n")).toContain("rm -rf src #␣×15000git status");
});

test("a card of many rows ends with how many it has", () => {
  const rows = rowsOf(grant({ command: `rm -rf src${"\n".repeat(200)}git status` }));
  expect(rows.at(-2)).toBe("  (this request has 205 rows; read all of them)");
  expect(requestCard(grant({ command: "ls" }))).not.toContain("rows");
});

test("the spaces at the edges of a row, and what is unseen, are visible", () => {
  const card = requestCard(grant({ command: `${"x".repeat(71)}  \u200b\ty\u001b[2K` }));
  expect(card).toContain("␣");
  expect(card).toContain("·U+200B");
  expect(card).toContain("·U+001B");
  expect(card).toContain("→");
});

test("arguments that a schema changed are shown as they run and as the model sent them", () => {
  const card = requestCard(grant({ command: "ls -a" }, { proposed: { command: "ls" } }));
  expect(card).toContain("command: │ ls -a\n  as the model sent it, before defaults and changes:\n    command: │ ls\n");
});
