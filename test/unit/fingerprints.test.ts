import { done, fail, fanOut, pipeline, route, stage, state, to } from "@sluice/core";
import { digestOf, pipelineParts } from "@sluice/core/runtime";
import { expect, test } from "vitest";

const input = { type: "object", properties: { task: { type: "string" } } } as const;
const verdict = {
  type: "object",
  properties: { ok: { type: "boolean" }, why: { type: "string", description: "at least one sentence, at most three" } },
  required: ["ok"],
} as const;
const list = { type: "object", properties: { files: { type: "array", items: { type: "string" } } } } as const;

const plain = stage({ prompt: "Work.", completionTool: "submit", completionSchema: verdict, turnCap: 3 });
const full = stage({
  inputSchema: list,
  prompt: () => "Work with what you have.",
  allowedTools: ["Read", { tool: "mcp__docs__*", optional: true }],
  visibility: "session",
  model: "scripted:a-file-whose-name-is-too-long-to-be-recorded-as-it-is-written.json",
  temperature: 0.5,
  maxOutputTokens: 500,
  completionTool: "finish",
  completionSchema: list,
  turnCap: 20,
  retryPolicy: { maxAttempts: 2 },
  limits: { maxTokens: 1000, timeoutMs: 60_000 },
  sandbox: { network: true, scratch: ["coverage"] },
  setup: () => ({ files: 3 }),
  precondition: () => "proceed",
  assert: () => "ok",
  exit: () => undefined,
  onCall: () => undefined,
});
const count = state({ kind: "count", output: list, options: { folder: "src" }, limits: { timeoutMs: 5 } });
const bare = state({ kind: "count", output: verdict });

const byFunctions = pipeline({
  id: "by-functions",
  input,
  stages: { count, plan: plain, left: full, right: bare, last: plain },
  initial: "count",
  context: { seen: [] },
  limits: { maxHops: 9 },
  onCall: () => undefined,
  next: {
    count: route(["plan"], () => to("plan")),
    plan: { completed: () => fanOut(["left", "right"], { join: "last" }), failed: route([], () => fail("no")) },
    last: () => done(1),
  },
});
const byTable = pipeline({
  id: "by-table",
  input,
  stages: { count, plan: stage({ ...large(12), prompt: "Read {{ctx.upstream.count.files}}." }) },
  initial: "count",
  transitions: [
    { from: "count", on: "success", when: () => true, to: "plan" },
    { from: "*", on: "success", to: done({ ok: true }) },
  ],
});
const tooLarge = pipeline({
  id: "too-large",
  input,
  stages: Object.fromEntries([...Array(14).keys()].map((at) => [`s${at}`, at === 0 ? count : stage(large(38))])),
  initial: "s0",
  transitions: [...Array(14).keys()].map((at) => ({
    from: `s${at}`,
    on: "success" as const,
    to: at === 13 ? done(1) : to(`s${at + 1}`),
  })),
});

function large(places: number) {
  const properties = Object.fromEntries([...Array(places).keys()].map((at) => [`field${at}`, { type: "string" }]));
  const completionSchema = { type: "object", properties } as const;
  return { prompt: "Fill it in.", allowedTools: [], completionTool: "fill", completionSchema, turnCap: 1 };
}

// Runs resume by these digests, so a change of one needs a new FORM, and with it a new journal version.
test.each([
  [
    "functions, all options of both kinds of state",
    byFunctions,
    "5b834136ccb330dd94ee4727e532a1be366372a90e64acca9690a1c851622c64",
    "846d4093aecd41789f2c3ed465a10e55fc9132b8462a51a001488458a0cf26b7",
  ],
  [
    "a table, a template and a schema of many places",
    byTable,
    "bc0688a75cc11fdd700adbc2a30167a4a6eb837eeb36059bcfcaa62b8aab7037",
    "c4f59e36abb4af7808a0a1eca309c5b7f7df2653d588b7a327163eca6a29cc32",
  ],
  [
    "more facts than a run records",
    tooLarge,
    "2390b0c334a0b5e83bb7079a00722b5c9286943cfaf1bb58126e5eb8dbbadced",
    "64e3d9b9d1a3af617b19097afed00ae1107f3ff1f923fea610204629efad66ea",
  ],
])("fingerprint and recorded parts are those that journals hold: %s", (_name, { spec }, fingerprint, parts) => {
  expect([spec.fingerprint, digestOf(pipelineParts(spec))]).toEqual([fingerprint, parts]);
});

test("a list of two entries and a list of one with a comma in it have different fingerprints", () => {
  const [two, one] = [["a", "b"], ["a,b"]].map((scratch) => {
    const work = stage({
      prompt: "Work.",
      completionTool: "submit",
      completionSchema: verdict,
      turnCap: 3,
      sandbox: { scratch },
    });
    return pipeline({ id: "lists", input, stages: { work }, initial: "work", next: { work: () => done(1) } }).spec
      .fingerprint;
  });
  expect(one).not.toBe(two);
});
