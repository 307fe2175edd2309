import type { RowSpec, StateSpec } from "@sluice/core";
import { type LoadedWorkflow, loadWorkflow } from "@sluice/workflows";
import { expect, test } from "vitest";
import { loadDocument, ruleLines } from "../support/workflows.ts";

const fixtures = new URL("../fixtures/workflows/statewright/", import.meta.url);

const END = { done: { type: "final" }, failed: { type: "final" } };

/** A document around one state, whose way out is `DONE` unless it has one. */
function around(state: object, more: object = {}): object {
  return {
    id: "w",
    initial: "working",
    states: { working: { allowed_tools: ["Read"], on: { DONE: "done", FAIL: "failed" }, ...state }, ...END },
    ...more,
  };
}

function stateOf({ pipeline, diagnostics }: LoadedWorkflow, id: string): StateSpec {
  const state = pipeline?.spec.states.get(id);
  if (state === undefined) throw new Error(`no state ${id}: ${JSON.stringify(diagnostics)}`);
  return state;
}

function rowsOf({ pipeline, diagnostics }: LoadedWorkflow): readonly RowSpec[] {
  const routes = pipeline?.spec.routes;
  if (routes?.kind !== "table") throw new Error(`no rows: ${JSON.stringify(diagnostics)}`);
  return routes.rows;
}

/** What a row leads to, without its guard's function. */
function facts({ from, on, to, when, approval, label }: RowSpec): object {
  return { from, on: typeof on === "object" ? on.event : on, to, when: when?.text, approval, label };
}

test.each([
  ["review", []],
  // Its only condition reads what only the refused event could set.
  [
    "deploy",
    [
      "guard-never states.testing.on.DEPLOY.guard (warning)",
      "never-entered states.deploying (warning)",
      "never-entered states.complete (warning)",
    ],
  ],
  ["deploy-full", []],
])("the complete document %s loads", async (name, warnings) => {
  const loaded = await loadWorkflow(new URL(`${name}.json`, fixtures).pathname);
  expect(ruleLines(loaded)).toEqual(warnings);
  expect(loaded.format).toBe("statewright");
  expect(loaded.pipeline?.id).toBe(loaded.id);
});

test("the complete reference example keeps its tools, limits, commands and variables", async () => {
  const loaded = await loadWorkflow(new URL("deploy-full.json", fixtures).pathname);
  expect(stateOf(loaded, "planning")).toMatchObject({
    kind: "agent",
    allowedTools: ["Read", "Grep", "Glob"],
    limits: { maxToolCalls: 10, maxResultBytes: 50_000 },
  });
  expect(stateOf(loaded, "testing")).toMatchObject({
    allowedTools: ["Read", "Bash(pytest *)", "Bash(npm test *)", "Bash(cargo test *)"],
    env: { block: ["PROD_DB_URL"] },
    limits: { maxToolCalls: 15 },
  });
  expect(stateOf(loaded, "fixing").limits).toEqual({ maxLinesPerEdit: 20, maxFiles: 3 });
  expect(stateOf(loaded, "deploying").env).toEqual({ set: { KUBECONFIG: "/etc/kube/staging.yaml" } });
  expect(stateOf(loaded, "complete").final).toEqual({ outcome: "completed" });
  expect(stateOf(loaded, "failed").final).toEqual({ outcome: "failed" });
  expect(loaded.pipeline?.spec.context).toEqual({ test_result: null, coverage: 0, approved: false });
  expect(loaded.meta).toEqual({ dangerLevel: "dangerous", captureOutput: true });
  expect(rowsOf(loaded).map(facts)).toEqual([
    { from: "planning", on: "READY", to: { kind: "to", state: "testing" }, label: "READY" },
    { from: "planning", on: "FAIL", to: { kind: "to", state: "failed" }, label: "FAIL" },
    { from: "planning", on: "*", to: { kind: "to", state: "testing" }, label: "safe_next" },
    {
      from: "testing",
      on: "EVALUATE",
      to: { kind: "to", state: "deploying" },
      when: 'deploy_ready (test_result equals "pass")',
      label: "EVALUATE[0]",
    },
    {
      from: "testing",
      on: "EVALUATE",
      to: { kind: "to", state: "fixing" },
      when: 'tests_failed (test_result equals "fail")',
      label: "EVALUATE[1]",
    },
    { from: "testing", on: "EVALUATE", to: { kind: "to", state: "failed" }, label: "EVALUATE[2]" },
    { from: "fixing", on: "DONE", to: { kind: "to", state: "testing" }, label: "DONE" },
    { from: "fixing", on: "FAIL", to: { kind: "to", state: "failed" }, label: "FAIL" },
    {
      from: "deploying",
      on: "DONE",
      to: { kind: "to", state: "complete" },
      approval: { message: "Deployment finished. Approve to mark complete?" },
      label: "DONE",
    },
    { from: "deploying", on: "FAIL", to: { kind: "to", state: "failed" }, label: "FAIL" },
  ]);
});

test("a document without a context starts with an empty one", async () => {
  expect((await loadDocument(around({}))).pipeline?.spec.context).toEqual({});
});

test("keys in camelCase mean the same as in snake_case, and aliases the same as their originals", async () => {
  const snake = around({
    max_iterations: 3,
    max_edit_lines: 4,
    max_files_per_state: 5,
    context_budget_bytes: 6,
    blocked_env: ["A"],
    env_overrides: { B: "1", C: 2 },
    on: { DONE: { target: "done", requires_approval: true, approval_message: "?" } },
    safe_next: "failed",
  });
  const camel = around({
    allowed_tools: undefined,
    allowedTools: ["Read"],
    maxIterations: 3,
    maxEditLines: 4,
    maxFilesPerState: 5,
    contextBudgetBytes: 6,
    denyEnv: ["A"],
    env: { B: "1", C: 2 },
    on: { DONE: { target: "done", requiresApproval: true, approvalMessage: "?" } },
    safeNext: "failed",
  });
  const [one, other] = await Promise.all([loadDocument(snake), loadDocument(camel)]);
  expect(other.diagnostics).toEqual([]);
  expect(one.pipeline?.spec.fingerprint).toBe(other.pipeline?.spec.fingerprint);
});

test("an alias beside its original is an error, in any spelling", async () => {
  for (const extra of [
    { deny_env: ["A"], blocked_env: ["A"] },
    { env: {}, env_overrides: {} },
    { maxIterations: 1, max_iterations: 1 },
    { denyEnv: ["A"], deny_env: ["A"] },
  ]) {
    const loaded = await loadDocument(around(extra));
    expect(ruleLines(loaded)).toEqual([`alias-twice states.working.${Object.keys(extra)[1]}`]);
  }
});

test("unknown keys are errors with a suggestion, but not in meta and context", async () => {
  const loaded = await loadDocument({
    ...around({ gaurd: 1, on: { DONE: { target: "done", require_approval: true } } }),
    meta: { owner: "x", task_type: "bugfix" },
    context: { anything: 1 },
    guard: {},
  });
  expect(loaded.diagnostics.map(({ rule, path, suggestion }) => [rule, path, suggestion])).toEqual([
    ["unknown-key", "states.working.on.DONE.require_approval", 'did you mean "requires_approval"?'],
    ["unknown-key", "states.working.gaurd", expect.stringContaining("use one of type")],
    ["unknown-key", "guard", 'did you mean "guards"?'],
  ]);
});

test("$schema is accepted, and whatever it names is not fetched", async () => {
  const loaded = await loadDocument({ $schema: "https://example.invalid/schema.json", ...around({}) });
  expect(loaded.diagnostics).toEqual([]);
});

test("no allowed_tools is no envelope and is said; an empty list allows none", async () => {
  const open = await loadDocument(around({ allowed_tools: undefined }));
  expect(ruleLines(open)).toEqual(["no-envelope states.working (warning)"]);
  expect(stateOf(open, "working").allowedTools).toBeUndefined();
  const none = await loadDocument(around({ allowed_tools: [] }));
  expect(none.diagnostics).toEqual([]);
  expect(stateOf(none, "working").allowedTools).toEqual([]);
});

test("allowed commands stand for a plain Bash, in its place", async () => {
  const loaded = await loadDocument(
    around({ allowed_tools: ["Read", "Bash", "Grep"], allowed_commands: ["pytest", "npm run *", " git status "] }),
  );
  expect(stateOf(loaded, "working").allowedTools).toEqual([
    "Read",
    "Bash(pytest *)",
    "Bash(npm run *)",
    "Bash(git status *)",
    "Grep",
  ]);
  const none = await loadDocument(around({ allowed_tools: ["Read", "Bash"], allowed_commands: [] }));
  expect(stateOf(none, "working").allowedTools).toEqual(["Read"]);
});

test("allowed commands that would limit nothing are reported", async () => {
  const commands = { allowed_commands: ["pytest"] };
  expect(ruleLines(await loadDocument(around({ ...commands })))).toEqual([
    "commands-without-tools states.working.allowed_commands (warning)",
  ]);
  expect(ruleLines(await loadDocument(around({ allowed_tools: undefined, ...commands })))).toContain(
    "commands-without-tools states.working.allowed_commands",
  );
  expect(ruleLines(await loadDocument(around({ allowed_tools: ["Bash(rm *)"], ...commands })))).toEqual([
    "commands-without-tools states.working.allowed_commands",
  ]);
});

test("a template in a command is an error that shows the variable form", async () => {
  const loaded = await loadDocument(around({ allowed_tools: ["Bash"], allowed_commands: ["pytest {{input.suite}}"] }));
  expect(ruleLines(loaded)).toEqual(["template-in-command states.working.allowed_commands[0]"]);
  expect(loaded.diagnostics[0]?.suggestion).toContain("$NAME");
});

test("a state has 50 turns unless it has a cap of its own", async () => {
  expect(stateOf(await loadDocument(around({})), "working").shape).toMatchObject({ turnCap: 50 });
  expect(stateOf(await loadDocument(around({ turn_cap: 7 })), "working").shape).toMatchObject({ turnCap: 7 });
});

test("{{input.x}} in instructions means {{ctx.input.x}}", async () => {
  const loaded = await loadDocument(
    around({ instructions: "Fix {{input.file}} and {{ ctx.task }}, not \\{{input}}." }),
  );
  expect(loaded.diagnostics).toEqual([]);
  expect(stateOf(loaded, "working").templates?.prompt?.map(({ path }) => path)).toEqual([["input", "file"], ["task"]]);
});

test("a name outside the grammar of ids gets an id, and the model reads the name", async () => {
  const loaded = await loadDocument({
    id: "deploy pipeline (v2)",
    initial: "in progress",
    states: {
      "in progress": { allowed_tools: [], on: { "all good": "über fertig", STOP: "$stop" } },
      "über fertig": { type: "final", outcome: "completed" },
      $stop: { type: "final", outcome: "cancelled" },
    },
  });
  expect(loaded.diagnostics).toEqual([]);
  expect(loaded.id).toBe("deploy-pipeline-v2");
  expect([...(loaded.pipeline?.spec.states.keys() ?? [])]).toEqual(["in-progress", "uber-fertig", "stop"]);
  expect(rowsOf(loaded).map(({ label }) => label)).toEqual(["all good", "STOP"]);
  expect(JSON.stringify(stateOf(loaded, "in-progress").parts)).toContain("in progress");
  expect(stateOf(loaded, "in-progress").shape).toMatchObject({ label: "in progress" });
  expect(stateOf(loaded, "stop").shape).toMatchObject({ label: "$stop" });
});

test("names that every object has are names like others", async () => {
  const loaded = await loadDocument({
    id: "toString",
    initial: "valueOf",
    context: { hasOwnProperty: 1 },
    states: {
      valueOf: { allowed_tools: [], on: { toString: { target: "toString", guard: "isPrototypeOf" }, X: "toString" } },
      toString: { type: "final", outcome: "completed" },
    },
    guards: { isPrototypeOf: { field: "toString", op: "exists" } },
  });
  expect(ruleLines(loaded)).toEqual(["guard-never states.valueOf.on.toString.guard (warning)"]);
  expect(rowsOf(loaded).map(({ when }) => when?.text)).toEqual(["isPrototypeOf (toString exists)", undefined]);
  const missing = await loadDocument(
    around({ on: { DONE: "valueOf", FAIL: { target: "failed", guard: "toString" } } }),
  );
  expect(ruleLines(missing)).toEqual([
    "unknown-target states.working.on.DONE",
    "unknown-guard states.working.on.FAIL.guard",
  ]);
});

test("a state that ends a branch is not said to end a run", async () => {
  const fork = { branches: { a: { initial: "run", terminal: "run_over" } }, on_complete: "done" };
  const states = {
    start: { allowed_tools: [], on: { GO: { fork }, FAIL: "failed" } },
    run: { allowed_tools: [], on: { OVER: "run_over" } },
    run_over: { type: "final" },
    ...END,
  };
  expect(ruleLines(await loadDocument({ id: "w", initial: "start", states }))).toEqual([]);
});

test("names that would share an id get different ones, and valid names keep theirs", async () => {
  const loaded = await loadDocument({
    id: "w",
    initial: "a b",
    states: {
      "a b": { allowed_tools: [], on: { X: "a.b", Y: "a-b" } },
      "a.b": { type: "final", outcome: "failed" },
      "a-b": { type: "final", outcome: "completed" },
    },
  });
  expect(loaded.diagnostics).toEqual([]);
  expect([...(loaded.pipeline?.spec.states.keys() ?? [])]).toEqual(["a-b-2", "a-b-3", "a-b"]);
});

test("final states end with their outcome, else with that of their name", async () => {
  const loaded = await loadDocument({
    id: "w",
    initial: "a",
    states: {
      a: {
        allowed_tools: [],
        on: { A: "failed", B: "error", C: "cancelled", D: "done", E: "blocked", F: "Failed", G: "given", H: "end" },
      },
      failed: { type: "final" },
      error: { type: "final" },
      cancelled: { type: "final" },
      done: { type: "final" },
      blocked: { type: "final" },
      Failed: { type: "final" },
      end: { type: "final" },
      given: { type: "final", outcome: "failed" },
    },
  });
  const outcomes = ["failed", "error", "cancelled", "done", "blocked", "Failed", "given"].map(
    (id) => stateOf(loaded, id).final?.outcome,
  );
  expect(outcomes).toEqual(["failed", "failed", "cancelled", "completed", "completed", "failed", "failed"]);
  expect(ruleLines(loaded)).toEqual(["final-outcome states.blocked (warning)"]);
});

test("what a final state has besides its outcome never runs, and is reported", async () => {
  const final = { done: { type: "final", instructions: "Celebrate.", allowed_tools: ["Bash"], on: { MORE: "done" } } };
  const loaded = await loadDocument({
    id: "w",
    initial: "a",
    states: { a: { allowed_tools: [], on: { X: "done" } }, ...final },
  });
  expect(ruleLines(loaded)).toEqual([
    "final-body states.done.instructions (warning)",
    "final-body states.done.allowed_tools (warning)",
    "final-body states.done.on (warning)",
  ]);
  expect(stateOf(loaded, "done").final).toEqual({ outcome: "completed" });
});

test("requires_human_approval without an edge that asks is a warning", async () => {
  const meta = { meta: { requires_human_approval: true } };
  expect(ruleLines(await loadDocument(around({}, meta)))).toEqual([
    "approval-missing meta.requires_human_approval (warning)",
  ]);
  const asks = { on: { DONE: { target: "done", requires_approval: true } } };
  expect(ruleLines(await loadDocument(around({ ...asks, on: { ...asks.on, FAIL: "failed" } }, meta)))).toEqual([]);
});

test("an approval message on an edge that asks for none is a warning", async () => {
  const on = { DONE: { target: "done", approval_message: "Deploy?" }, FAIL: "failed" };
  expect(ruleLines(await loadDocument(around({ on })))).toEqual([
    "approval-message states.working.on.DONE.approval_message (warning)",
  ]);
});

test("safe_next may have guards and an approval of its own", async () => {
  const safe_next = { target: "done", guard: "ok", requires_approval: true };
  const guards = { ok: { field: "x", op: "exists" } };
  const row = rowsOf(await loadDocument(around({ safe_next }, { guards }))).at(-1);
  expect(row?.when?.text).toBe("ok (x exists)");
  expect(row?.approval).toEqual({});
});

test("a fork edge has its branches, its join, what follows and its approval", async () => {
  const states = {
    building: {
      allowed_tools: [],
      on: {
        BUILD_DONE: {
          fork: {
            branches: {
              lint: { initial: "lint_run", terminal: "lint_done" },
              types: { initial: "types_run", terminal: "types_done" },
            },
            join: "any",
            on_complete: "done",
            on_fail: "failed",
          },
          requires_approval: true,
        },
      },
    },
    lint_run: { allowed_tools: [], on: { DONE: "lint_done" } },
    lint_done: { type: "final", outcome: "completed" },
    types_run: { allowed_tools: [], on: { DONE: "types_done" } },
    types_done: { type: "final", outcome: "completed" },
    ...END,
  };
  const loaded = await loadDocument({ id: "w", initial: "building", states });
  expect(ruleLines(loaded)).toEqual([]);
  expect(rowsOf(loaded)[0]).toMatchObject({
    to: {
      kind: "fork",
      branches: {
        lint: { initial: "lint_run", terminal: "lint_done" },
        types: { initial: "types_run", terminal: "types_done" },
      },
      join: "any",
      onComplete: "done",
      onFail: "failed",
    },
    approval: {},
  });
});

const HANDLED = {
  id: "w",
  initial: "working",
  states: {
    working: { allowed_tools: ["Edit"], on: { DONE: "done", FAIL: "failed" } },
    checking: {
      allowed_tools: ["Bash"],
      allowed_commands: ["task test:hooks"],
      on: { VALIDATED: "$return", FAIL: "failed" },
    },
    ...END,
  },
  interrupts: { pb_check: { trigger: { file_pattern: "site/pb/**/*.js" }, target: "checking" } },
};

test("an interrupt names its files and its handler, which goes back with $return and counts as reached", async () => {
  const loaded = await loadDocument(HANDLED);
  expect(ruleLines(loaded)).toEqual(["write-without-review states.working (warning)"]);
  expect(loaded.pipeline?.spec.interrupts).toEqual([
    { name: "pb_check", files: "site/pb/**/*.js", target: "checking" },
  ]);
  expect(rowsOf(loaded)[2]?.to).toEqual({ kind: "return" });
});

const refused: Readonly<Record<string, readonly [document: object, rules: readonly string[]]>> = {
  "no initial state": [
    { id: "w", states: { a: { allowed_tools: [], on: { X: "done" } }, ...END } },
    ["missing-field "],
  ],
  "a state without a way out": [
    around({ on: { GO: "stuck", DONE: "done", FAIL: "failed" } }, {}),
    ["unknown-target states.working.on.GO"],
  ],
  "$return as what follows a fork": [
    around({
      on: {
        GO: { fork: { branches: { a: { initial: "working", terminal: "done" } }, on_complete: "$return" } },
        FAIL: "failed",
      },
    }),
    ["unknown-target states.working.on.GO.fork.on_complete"],
  ],
  "a numeric operator with a text": [
    around({}, { guards: { g: { field: "x", op: "gte", value: "80" } } }),
    ["guard-operand guards.g.value"],
  ],
  "in without a list": [
    around({}, { guards: { g: { field: "x", op: "in", value: "a" } } }),
    ["guard-operand guards.g.value"],
  ],
  "exists with a value": [
    around({}, { guards: { g: { field: "x", op: "exists", value: 1 } } }),
    ["guard-operand guards.g.value"],
  ],
  "a comparison with nothing": [around({}, { guards: { g: { field: "x", op: "eq" } } }), ["guard-operand guards.g.op"]],
  "an operator that does not exist": [
    around({}, { guards: { g: { field: "x", op: "matches", value: "a" } } }),
    ["wrong-type guards.g.op"],
  ],
  "an event called *": [around({ on: { "*": "done", FAIL: "failed" } }), ['wrong-name states.working.on["*"]']],
  "a state called $return": [
    {
      ...around({}),
      states: {
        working: { allowed_tools: [], on: { A: "done", B: "$return" } },
        $return: { type: "final" },
        done: END.done,
      },
    },
    ["wrong-name states.$return", "final-outcome states.$return (warning)"],
  ],
  "an initial state that is final": [
    { ...around({}), initial: "done" },
    ["definition initial", "unreachable states.working", "unreachable states.failed"],
  ],
  "a parallel state": [around({ type: "parallel" }), ["wrong-type states.working.type"]],
  "limits of zero": [
    around({ max_iterations: 0, max_edit_lines: 1.5 }),
    ["wrong-type states.working.max_iterations", "wrong-type states.working.max_edit_lines"],
  ],
  "a reserved key of the context": [around({}, { context: { _fork: {} } }), ["context-key context._fork"]],
  "a tool pattern that cannot be read": [
    around({ allowed_tools: ["Read", "Bash(rm"] }),
    ["tool-pattern states.working.allowed_tools[1]"],
  ],
  "a command that cannot be a pattern": [
    around({ allowed_tools: ["Read", "Bash"], allowed_commands: ["npm test", "echo 'open"] }),
    ["tool-pattern states.working.allowed_commands[1]"],
  ],
  "a variable that loaders obey": [
    around({ env: { LD_PRELOAD: "x" } }),
    ["variable-name states.working.env.LD_PRELOAD"],
  ],
  "a template that is no path": [
    around({ instructions: "Read {{file}}." }),
    ["bad-template states.working.instructions"],
  ],
  "a template of a state that is not there": [
    around({ instructions: "Read {{ctx.upstream.plan}}." }),
    ["bad-template states.working.instructions"],
  ],
};

for (const [what, [document, rules]] of Object.entries(refused)) {
  test(`${what}: refused`, async () => {
    const loaded = await loadDocument(document);
    expect(ruleLines(loaded)).toEqual(rules);
    expect(loaded.pipeline).toBeUndefined();
  });
}

test("a listed tool that the session does not have is an error, if its tools are known", async () => {
  const document = around({ allowed_tools: ["Read", "Raed"] });
  expect(ruleLines(await loadDocument(document))).toEqual([]);
  const loaded = await loadDocument(document, { tools: ["Read", "Grep"] });
  expect(ruleLines(loaded)).toEqual(["unknown-tool states.working.allowed_tools[1]"]);
  expect(loaded.diagnostics[0]?.suggestion).toContain("Read");
});

test("a field that does not fit is one mistake: it is not reported as missing as well", async () => {
  const mistaken = around({ allowed_tools: "Read", allowed_commands: ["pytest"], on: ["DONE"] });
  expect(ruleLines(await loadDocument(mistaken))).toEqual([
    "wrong-type states.working.allowed_tools",
    "wrong-type states.working.on",
  ]);
  const transitions = around({ allowed_tools: undefined, allowedTools: 1, on: { DONE: 5 } });
  expect(ruleLines(await loadDocument(transitions))).toEqual([
    "wrong-type states.working.on.DONE",
    "wrong-type states.working.allowedTools",
  ]);
  const empty = around({ on: {} });
  expect(ruleLines(await loadDocument(empty))).toEqual(["dead-end states.working"]);
});

test("a fork has at least one branch", async () => {
  const on = (branches: object) => ({ GO: { fork: { branches, on_complete: "done" } }, FAIL: "failed" });
  const none = await loadDocument(around({ on: on({}) }));
  expect(none.diagnostics.map(({ message }) => message)).toEqual([
    '"branches" is an empty object, but must be an object with at least one entry.',
  ]);
  const broken = await loadDocument(around({ on: on({ one: { initial: "working" } }) }));
  expect(ruleLines(broken)).toEqual(["missing-field states.working.on.GO.fork.branches.one"]);
});
