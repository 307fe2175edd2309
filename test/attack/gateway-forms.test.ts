import { existsSync } from "node:fs";
import { field, type PersonRequest } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { expect, test } from "vitest";
import { questionOf } from "../../packages/gateway/src/run/words.ts";
import { widthOf } from "../../packages/view/src/text/width.ts";
import { gatewayRun, pipelineOf } from "../support/gateway.ts";
import { gateway } from "../support/gateway-clients.ts";
import { modernCall, type RawAnswer } from "../support/gateway-raw.ts";
import { tempFolder } from "../support/tools.ts";

// With `--elicitation approve`, a person approves what a form shows: a call is in it whole, or cannot be approved there.

const WORKFLOW = {
  id: "look-only",
  initial: "look",
  states: {
    look: { instructions: "Look.", allowed_tools: ["Read"], on: { DONE: "done" } },
    done: { type: "final" },
  },
};

function grant(input: PersonRequest["body"]): PersonRequest {
  const body = {
    executionId: "look#1",
    tool: "Bash",
    input,
    why: "Bash is not in the envelope",
    argsSummary: "Bash(…)",
  };
  return { kind: "grantStageTool", runId: "r1", requestId: "x", digest: "d".repeat(64), openedAt: 0, body };
}

test.each([
  [
    "the middle of a long argument",
    `git status${" ".repeat(130)}; rm -rf src; : ${" ".repeat(200)}# only a check of the work tree, nothing is changed`,
  ],
  ["text that looks like a secret", `echo '"token":"' ; rm -rf src; echo '"'`],
])("a form shows %s", (_what, command) => {
  const { whole = "" } = questionOf(grant({ command }));
  expect(whole.replaceAll(/\n *[│┆] /g, "")).toContain("; rm -rf src;");
  for (const row of whole.split("\n")) expect(widthOf(row)).toBeLessThanOrEqual(64);
});

test.each([
  ["of many lines", `ls${"\n".repeat(30)}rm -rf src`],
  ["of many characters", `ls ${"x".repeat(2_000)}; rm -rf src`],
  ["of very many characters", `ls ${" ".repeat(200_000)}; rm -rf src`],
])("a call %s is in no form", (_what, command) => {
  expect(questionOf(grant({ command })).whole).toBeUndefined();
});

/** An agent that writes a file, in a run whose forms may approve. */
async function writing(content: string) {
  const folder = tempFolder();
  const host = createHost(createMemoryJournals().connect());
  const run = gatewayRun({ pipeline: await pipelineOf(WORKFLOW), root: folder.root, host, wait: true });
  const server = await gateway(run, { elicitation: "approve", patienceMs: 40 });
  const write = (more = {}): Promise<RawAnswer> =>
    modernCall(server, "Write", { file_path: "a.txt", content }, { elicits: true, more });
  const asked = (await write()).message;
  const result = field(asked, "result");
  const params = field(field(field(result, "inputRequests"), "decision"), "params");
  const approve = async (): Promise<boolean> => {
    const inputResponses = { decision: { action: "accept", content: { decision: "approve" } } };
    await write({ requestState: field(result, "requestState") ?? null, inputResponses });
    return existsSync(folder.path("a.txt"));
  };
  return {
    message: String(field(params, "message")),
    choices: field(field(field(field(params, "requestedSchema"), "properties"), "decision"), "enum"),
    approve,
  };
}

test("a call that its form shows whole is approved by it", async () => {
  const { message, choices, approve } = await writing(`{"token":"' + run() + '"}`);
  expect(message).toContain(`content: │ {"token":"' + run() + '"}`);
  expect(choices).toEqual(["approve", "deny", "leave it open"]);
  expect(await approve()).toBe(true);
});

test("a call that is too long for its form is not approved by it, even if the client says so", async () => {
  const { message, choices, approve } = await writing("line\n".repeat(40));
  expect(message).toContain("This form cannot approve it. See and answer it with: sluice show");
  expect(choices).toEqual(["deny", "leave it open"]);
  expect(await approve()).toBe(false);
});
