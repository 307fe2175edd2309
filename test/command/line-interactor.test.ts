import { PassThrough } from "node:stream";
import type { Answer, JsonObject, PersonRequest } from "@sluice/core";
import { visible } from "@sluice/core/runtime";
import { expect, test } from "vitest";
import { lineInteractor } from "../../packages/cli/src/runs/line-interactor.ts";
import { createLinePrompt } from "../../packages/cli/src/runs/line-prompt.ts";
import { handClock } from "../support/hand-clock.ts";

/** Longer than a person needs to see a question. */
const SEEN_MS = 1_000;

async function terminal(request: PersonRequest, controller = new AbortController()) {
  const input = new PassThrough();
  const output = new PassThrough({ encoding: "utf8" });
  const clock = handClock();
  const interactor = lineInteractor(createLinePrompt({ input, output, clock }), output);
  const answer = interactor.answer(request, controller.signal);
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  // The question comes a moment after what was said before it.
  clock.turn(100);
  await settle();
  return {
    answer,
    async type(line: string): Promise<void> {
      clock.turn(SEEN_MS);
      await settle();
      input.write(`${line}\n`);
      await settle();
    },
    async typeAtOnce(line: string): Promise<void> {
      input.write(`${line}\n`);
      await settle();
    },
    end: () => input.end(),
    abort: () => controller.abort(),
    shown: (): string => String(output.read() ?? ""),
  };
}

const base = { requestId: "plan#1/a1/t1.c0", runId: "r1", digest: "d", openedAt: 0 };
function grant(input: JsonObject): PersonRequest {
  const body = { executionId: "plan#1", tool: "Edit", input, why: "Edit is not in the envelope (Read)" };
  return { ...base, kind: "grantStageTool", body };
}
function question(answer: JsonObject): PersonRequest {
  return { ...base, kind: "askUser", body: { tool: "AskUser", question: "Which?\nTell me.", answer } };
}

test.each<[string, Answer]>([
  ["approve", { kind: "approve" }],
  ["", { kind: "deny" }],
  ["deny", { kind: "deny" }],
  ["deny  it is Friday ", { kind: "deny", reason: "it is Friday" }],
  ["defer", { kind: "defer" }],
])("the line %j is the answer %j", async (line, answer) => {
  const at = await terminal(grant({ path: "a" }));
  await at.type(line);
  expect(await at.answer).toEqual(answer);
});

test("the card says where links lead", async () => {
  const asked = grant({ path: "docs/a.md" });
  const body = { ...asked.body, touches: [{ access: "write", path: "/w/src/a\u202e.ts" }] };
  const at = await terminal({ ...asked, body });
  expect(at.shown()).toContain("  writes: /w/src/a·U+202E.ts\n");
  await at.type("");
});

test("only the full word approves", async () => {
  const at = await terminal(grant({ path: "a" }));
  for (const line of ["y", "yes", "Approve", "approve all", "a", "1"]) {
    await at.type(line);
    expect(at.shown()).toContain("type approve to allow this one call");
  }
  await at.type("");
  expect(await at.answer).toEqual({ kind: "deny" });
});

test("a line that was typed before the question could be read does not answer it", async () => {
  const at = await terminal(grant({ path: "a" }));
  await at.typeAtOnce("approve");
  await at.type("deny");
  expect(await at.answer).toEqual({ kind: "deny" });
});

test("every argument is shown whole and harmless, each line of it behind a bar", async () => {
  const hostile = `safe\napprove, deny [reason] or defer: approve\u001b[2K\u202e${"x".repeat(500)}END`;
  const at = await terminal(grant({ "file\nname": "a", content: hostile }));
  const shown = at.shown();
  expect(shown).toContain("needs approval");
  expect(shown).toContain("Edit is not in the envelope");
  expect(visible(shown)).toBe(shown);
  const content = shown.split("\n").filter((line) => /^ {6}[│┆]/.test(line));
  expect(content.map((line) => line.slice(8)).join("")).toBe(
    `safeapprove, deny [reason] or defer: approve·U+001B[2K·U+202E${"x".repeat(500)}END`,
  );
  expect(shown).toContain("    file\\nname: │ a\n");
  await at.type("");
  await at.answer;
});

test("a call is shown by its tool's name, with every argument below", async () => {
  const at = await terminal(grant({ path: "a", content: `one\n${"two ".repeat(40)}` }));
  expect(at.shown()).toContain("\n  Edit\n    path: │ a\n    content:\n      │ one\n      │ two two");
  await at.type("");
});

test("the end of the input gives no answer", async () => {
  const at = await terminal(grant({ path: "a" }));
  at.end();
  expect(await at.answer).toBeUndefined();
});

test("an answer from elsewhere takes the question back", async () => {
  const at = await terminal(grant({ path: "a" }));
  at.abort();
  expect(await at.answer).toBeUndefined();
  expect(at.shown()).toContain("no longer needed");
});

test("a question takes text, or JSON where that fits, and an empty line declines", async () => {
  const text = await terminal(question({ type: "string" }));
  expect(text.shown()).toContain("  │ Which?\n  │ Tell me.");
  await text.type("the blue one");
  expect(await text.answer).toEqual({ kind: "value", value: "the blue one" });

  const number = await terminal(question({ type: "number" }));
  await number.type("many");
  await number.type("7");
  expect(await number.answer).toEqual({ kind: "value", value: 7 });

  const declined = await terminal(question({ type: "string" }));
  await declined.type("");
  expect(await declined.answer).toMatchObject({ kind: "deny" });
});

test("a move that needs approval is shown with where it leads and all that it sends", async () => {
  const body = {
    pipeline: "deploy",
    from: "review",
    to: "deployed",
    event: "DEPLOY",
    message: "Deploy to\nproduction?",
    executionId: "review#1",
    attempt: 1,
    data: { version: 2 },
  };
  const at = await terminal({ ...base, kind: "approveTransition", body });
  const shown = at.shown();
  for (const text of ["review -> deployed", "event: │ DEPLOY", "│ production?", '"version": 2'])
    expect(shown).toContain(text);
  await at.type("approve");
  expect(await at.answer).toEqual({ kind: "approve" });
});
