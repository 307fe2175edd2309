import type { PersonRequest, SluiceEvent } from "@sluice/core";
import { digestOf } from "@sluice/core/runtime";
import { codeReview } from "@sluice/stages/pipelines";
import { describe, expect, test } from "vitest";
import { TEST_KEY } from "../support/providers.ts";
import { eventsOf } from "../support/run-kit.ts";
import type { ServerReply } from "../support/sse-server.ts";
import { tempFolder } from "../support/tools.ts";
import { latestResults } from "../support/wire-request.ts";
import { wiredSession } from "../support/wired-session.ts";

const before = "export function login(name: string) {\n  return check(name);\n}\n";
const edit = { file_path: "src/auth.ts", old_string: "return check(name);", new_string: "return check(name.trim());" };

const planned = {
  summary: "login() trims the name it is given.",
  steps: ["src/auth.ts: trim name before check()"],
  files: ["src/auth.ts"],
  risks: [],
};
const changed = {
  summary: "login() trims the name.",
  changes: [{ file: "src/auth.ts", change: "name.trim() before check()" }],
  deviations: [],
};
const reviewed = { verdict: "approve", summary: "Does what was asked.", findings: [] };

/** What the model says, one entry a request. What it says aside is what no other stage may hear. */
const script: readonly ServerReply[] = [
  { text: "PLAN-ASIDE-1: I shall just do it.", calls: [{ name: "Edit", input: edit }] },
  {
    text: "PLAN-ASIDE-2: then I read.",
    calls: [{ name: "Grep", input: { pattern: "login", output_mode: "content" } }],
  },
  { text: "PLAN-ASIDE-3", calls: [{ name: "submit_plan", input: planned }] },
  { text: "EXECUTE-ASIDE-1", calls: [{ name: "Read", input: { file_path: "src/auth.ts" } }] },
  { text: "EXECUTE-ASIDE-2", calls: [{ name: "Edit", input: edit }] },
  { text: "EXECUTE-ASIDE-3", calls: [{ name: "submit_diff", input: changed }] },
  { text: "REVIEW-ASIDE-1", calls: [{ name: "submit_review", input: reviewed }] },
];

/** The events of a run as the steps of a story. */
function stepsOf(event: SluiceEvent): readonly string[] {
  const { type, executionId = "", data } = event;
  const at = `${executionId.replace(/#1$/, "")}: `;
  switch (type) {
    case "stage.setup":
    case "stage.init":
    case "stage.assert":
    case "stage.exit":
      return data.phase === "entered" ? [`${at}${type.slice("stage.".length)}`] : [];
    case "turn.started":
      return [`${at}asks the model`];
    case "grant.requested":
      return [`${at}grantStageTool request`];
    case "grant.answered":
      return [`${at}${String(data.answer)} by ${String(data.by)}`];
    case "call.decided":
      return [
        `${at}${String(data.tool)} ${String(data.verdict)}${data.by === undefined ? "" : ` by the ${String(data.by)}`}`,
      ];
    case "call.finished":
      return [`${at}${String(data.tool)} ${String(data.outcome)}`];
    case "completion.accepted":
      return [`${at}completion accepted`];
    case "route.decided":
      return [`${at}next ${String(data.to ?? data.choice)}`];
    case "run.finished":
      return [`run ${String(data.status)}`];
    default:
      return [];
  }
}

// Two protocols that share nothing; the others run the same pipeline elsewhere.
describe.each(["anthropic", "openai-compatible"] as const)("the trace of codeReview over %s", (provider) => {
  async function trace() {
    const workspace = tempFolder();
    workspace.put("src/auth.ts", before);
    workspace.put("src/other.ts", "export const other = 1;\n");
    const asked: PersonRequest[] = [];
    const onDisk: string[] = [];
    const { live, requests } = await wiredSession(
      provider,
      (_request, n) => {
        onDisk.push(workspace.text("src/auth.ts"));
        return script[n] ?? { status: 400, error: { message: "one more than was scripted" } };
      },
      {
        cwd: workspace.root,
        interactors: [
          {
            name: "the user",
            answer: async (request) => {
              asked.push(request);
              return { kind: "deny" };
            },
          },
        ],
      },
    );
    const result = await live.run(codeReview, { task: "refactor auth module" });
    return { workspace, asked, onDisk, result, requests: requests(), events: await eventsOf(live.host, result.runId) };
  }

  test("happens step by step", async () => {
    const { result, events } = await trace();
    expect(result).toMatchObject({
      status: "completed",
      output: { verdict: "approve", changes: changed.changes, plan: planned.summary },
      denied: [{ executionId: "plan#1", callId: "t1.c0", tool: "Edit", cause: "denied" }],
    });
    expect(events.flatMap(stepsOf)).toEqual([
      "plan: setup",
      "plan: init",
      "plan: asks the model",
      "plan: grantStageTool request",
      "plan: deny by the user",
      "plan: Edit refused",
      "plan: asks the model",
      "plan: Grep approved by the envelope",
      "plan: Grep ok",
      "plan: asks the model",
      "plan: completion accepted",
      "plan: assert",
      "plan: exit",
      "plan: next execute",
      "execute: setup",
      "execute: init",
      "execute: asks the model",
      "execute: Read approved by the envelope",
      "execute: Read ok",
      "execute: asks the model",
      "execute: Edit approved by the envelope",
      "execute: Edit ok",
      "execute: asks the model",
      "execute: completion accepted",
      "execute: assert",
      "execute: exit",
      "execute: next review",
      "review: setup",
      "review: init",
      "review: asks the model",
      "review: completion accepted",
      "review: assert",
      "review: exit",
      "review: next done",
      "run completed",
    ]);
  });

  test("asks the person for exactly that proposal", async () => {
    const { asked } = await trace();
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatchObject({
      kind: "grantStageTool",
      digest: digestOf(edit),
      body: {
        executionId: "plan#1",
        attempt: 1,
        proposalId: "t1.c0",
        tool: "Edit",
        input: edit,
        argsDigest: digestOf(edit),
        argsSummary: expect.stringContaining("src/auth.ts"),
      },
    });
  });

  test("gives the typed denial as the result of that call, in the very next request of the same transcript", async () => {
    const { requests, onDisk } = await trace();
    const [first, second] = requests;
    expect(second?.system).toBe(first?.system);
    expect(second?.messages.slice(0, 1)).toEqual(first?.messages);
    const [, proposal, results] = second?.messages ?? [];
    expect(proposal).toMatchObject({
      role: "assistant",
      text: "PLAN-ASIDE-1: I shall just do it.",
      calls: [{ name: "Edit", input: edit }],
    });
    expect(results?.results).toEqual([
      {
        id: proposal?.calls[0]?.id,
        value: {
          code: "tool_call_denied",
          cause: "denied",
          tool: "Edit",
          reason: expect.stringContaining("the user"),
          allowedTools: ["Read", "Grep", "Glob"],
          completionTool: "submit_plan",
          state: "plan",
        },
      },
    ]);
    expect(second?.messages).toHaveLength(3);
    expect(onDisk[1]).toBe(before);
  });

  test("lets Grep run on the real files, and gives what it found", async () => {
    const { requests } = await trace();
    const [found] = latestResults(requests[2]);
    expect(found).toContain("src/auth.ts");
    expect(found).toContain("export function login");
    expect(found).not.toContain("src/other.ts");
  });

  test("edits the file for real, in Execute and not before", async () => {
    const { onDisk, workspace } = await trace();
    const after = before.replace(edit.old_string, edit.new_string);
    expect(onDisk).toEqual([before, before, before, before, before, after, after]);
    expect(workspace.text("src/auth.ts")).toBe(after);
    expect(workspace.text("src/other.ts")).toBe("export const other = 1;\n");
  });

  test("offers each stage its own tools, and Review nothing but its completion tool", async () => {
    const { requests } = await trace();
    const plan = ["Read", "Grep", "Glob", "submit_plan"];
    const execute = ["Read", "Grep", "Glob", "Edit", "Write", "submit_diff"];
    expect(requests.map(({ tools }) => tools)).toEqual([
      plan,
      plan,
      plan,
      execute,
      execute,
      execute,
      ["submit_review"],
    ]);
  });

  test("begins every stage with its prompt and one message: nothing that was said in an earlier one", async () => {
    const { requests } = await trace();
    for (const [stage, n] of [
      ["PLAN", 0],
      ["EXECUTE", 3],
      ["REVIEW", 6],
    ] as const) {
      const request = requests[n];
      expect(
        request?.messages.map(({ role }) => role),
        stage,
      ).toEqual(["user"]);
      expect(request?.messages[0]?.text, stage).toContain("refactor auth module");
      expect(JSON.stringify(request), stage).not.toContain("ASIDE");
      expect(JSON.stringify(request?.messages), stage).not.toContain("tool_call_denied");
    }
    // What is handed over is the accepted output, and for the review the file as it is.
    expect(requests[3]?.system).toContain(planned.steps[0]);
    expect(requests[6]?.system).toContain(changed.changes[0]?.change);
    expect(requests[6]?.system).toContain("name.trim()");
    // Within a stage the transcript only grows.
    for (const n of [1, 2, 4, 5]) {
      const earlier = requests[n - 1]?.messages ?? [];
      expect(requests[n]?.messages.slice(0, earlier.length)).toEqual(earlier);
    }
  });

  test("leaves no key in events, result or journal", async () => {
    const { events, result } = await trace();
    expect(JSON.stringify([events, result])).not.toContain(TEST_KEY);
  });
});
