import { type Answer, callbackInteractor } from "@sluice/core";
import { againstRuns, graphOf, type LoadedWorkflow, readOutcomes, simulate, writeStatewright } from "@sluice/workflows";
import { describe, expect, test } from "vitest";
import { commandSession, node, PRINT_ARGUMENTS } from "../support/commands.ts";
import { bye, noting, select } from "../support/orchestrated.ts";
import { dataOf, eventsOf, eventually, noModel, session } from "../support/run-kit.ts";
import { pipelineOf } from "../support/statewright.ts";
import { loadDocument, loadTexts, ruleLines } from "../support/workflows.ts";

// States of workflow files that run no agent.

const person = (value: Answer) => callbackInteractor("Ada", () => value);
const final = { type: "final" };

/** The same machine in each format: sleeps, asks whether to publish, and ends by the answer. */
const asks = {
  question: "Publish {{ctx.task}}?",
  answer: { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] },
};
const statewright = {
  id: "publish",
  initial: "cool_down",
  states: {
    cool_down: { timer: { for: "5d" }, on: { success: "ask" } },
    ask: {
      human: asks,
      on: { success: [{ target: "done", guard: "agreed" }, { target: "refused" }], failure: "cancelled" },
    },
    done: final,
    refused: { ...final, outcome: "failed" },
  },
  guards: { agreed: { field: "output.ok", op: "eq", value: true } },
};
const flujo = {
  kind: "StateMachine",
  name: "publish",
  start_state: "cool_down",
  end_states: ["done", "refused", "cancelled"],
  states: {
    cool_down: [{ name: "sleep", timer: { for: "5d" } }],
    ask: [{ name: "publish", human: { ...asks, question: "Publish {{ input.task }}?" } }],
    refused: { outcome: "failed" },
  },
  transitions: [
    { from: "cool_down", on: "success", to: "ask" },
    { from: "ask", on: "success", when: "output.ok", to: "done" },
    { from: "ask", on: "success", to: "refused" },
    { from: "ask", on: "failure", to: "cancelled" },
  ],
};
const markdown = {
  "publish/pipeline.yaml": `id: publish
initial: cool_down
transitions:
  - { from: cool_down, to: ask }
  - { from: ask, when: output.ok, to: done }
  - { from: ask, to: refused }
  - { from: ask, on: failure, to: cancelled }
final: { refused: failed, cancelled: cancelled, done: completed }
`,
  "publish/cool_down.md": "---\nkind: timer\nfor: 5d\n---\nNobody publishes in a hurry.\n",
  "publish/ask.md": `---
kind: human
answer:
  type: object
  properties: { ok: { type: boolean } }
  required: [ok]
---
Publish {{ctx.task}}?
`,
};
const formats: readonly (readonly [name: string, load: () => Promise<LoadedWorkflow>])[] = [
  ["a Statewright document", () => loadDocument(statewright)],
  ["a Flujo machine", () => loadDocument(flujo)],
  ["a folder of Markdown stages", () => loadTexts("publish", markdown)],
];

describe.each(formats)("%s", (_name, load) => {
  test.each([
    ["completes where the person agrees", { kind: "value", value: { ok: true } }, "completed"],
    ["follows a condition on the answer", { kind: "value", value: { ok: false } }, "failed"],
    ["leaves by failure where no one answers", { kind: "deny" }, "cancelled"],
  ] as const)("sleeps for five days, asks a person, and %s", async (_what, answer, status) => {
    const loaded = await load();
    expect(ruleLines(loaded)).toEqual([]);
    const live = session({ model: noModel, interactors: [person(answer)] });
    const run = live.start(pipelineOf(loaded), { task: "the release" });
    await eventually(async () => live.clock.waiting() === 1);
    live.clock.turn(5 * 86_400_000);
    expect(await run).toMatchObject({ status });
    const [asked] = dataOf(await eventsOf(live.host, run.runId), "request.opened");
    expect(asked).toMatchObject({ body: { question: "Publish the release?" } });
  });
});

const child = {
  id: "child",
  initial: "ask",
  states: {
    ask: { human: { question: "{{ctx.task}} at {{ctx.run.input.level}}" }, on: { success: "done" } },
    done: final,
  },
};

test.each([
  ["completes", { kind: "value", value: "yes" }, "completed"],
  ["fails, which the file routes", { kind: "deny" }, "cancelled"],
] as const)("a state runs another workflow, which %s", async (_what, answer, status) => {
  const parent = {
    id: "parent",
    initial: "nested",
    states: {
      nested: {
        pipeline: { workflow: "./child.json", input: { level: "level {{ctx.task}}" } },
        on: { success: "done", failure: "cancelled" },
      },
      done: final,
    },
  };
  const loaded = await loadTexts("w.json", { "w.json": JSON.stringify(parent), "child.json": JSON.stringify(child) });
  expect(ruleLines(loaded)).toEqual([]);
  const questions: unknown[] = [];
  const live = session({
    model: noModel,
    interactors: [
      callbackInteractor("Ada", (request) => {
        questions.push(request.body.question);
        return answer;
      }),
    ],
  });
  expect(await live.run(pipelineOf(loaded), { task: "x" })).toMatchObject({ status });
  expect(questions).toEqual(["x at level x"]);
});

test("the ends failed and cancelled exist without being defined", async () => {
  const loaded = await loadDocument({
    id: "w",
    initial: "ask",
    states: { ask: { human: { question: "?" }, on: { success: "done", failure: "failed" } }, done: final },
  });
  expect(ruleLines(loaded)).toEqual([]);
  expect([...pipelineOf(loaded).spec.states.keys()]).toEqual(["ask", "done", "failed"]);
});

/** What is wrong with a document whose state `a` is this. */
async function rulesOf(state: object, more: object = {}): Promise<readonly string[]> {
  const document = { id: "w", initial: "a", states: { a: state, done: final, ...more } };
  return ruleLines(await loadDocument(document));
}
const on = { success: "done" };

describe("the fields of a kind", () => {
  test.each<readonly [what: string, state: object, rules: readonly string[]]>([
    ["two kinds in one state", { timer: { for: "1d" }, human: { question: "?" }, on }, ["two-kinds states.a.human"]],
    ["a field of agents", { timer: { for: "1d" }, allowed_tools: [], on }, ["unknown-key states.a.allowed_tools"]],
    [
      "a misspelled field",
      { poll: { command: ["x"], evry: "1m" }, on },
      ["missing-field states.a.poll", "unknown-key states.a.poll.evry"],
    ],
    [
      "an event that never happens",
      { timer: { for: "1d" }, on: { ...on, DONE: "done" } },
      ["unknown-event states.a.on.DONE"],
    ],
    ["a state without a way on", { timer: { for: "1d" } }, ["dead-end states.a"]],
    ["a success that leads nowhere", { timer: { for: "1d" }, on: { failure: "done" } }, ["dead-end states.a.on"]],
    ["a length of time that is none", { timer: { for: "5 weeks" }, on }, ["duration states.a.timer.for"]],
    ["both for and until", { timer: { for: "1d", until: "2027-01-31" }, on }, ["missing-field states.a.timer"]],
    [
      "a shell line with a template",
      { script: { shell: "echo {{ctx.task}}" }, on },
      ["template-in-command states.a.script.shell"],
    ],
    ["a list and a line", { script: { shell: "x", command: ["x"] }, on }, ["missing-field states.a.script"]],
    ["neither a list nor a line", { script: { timeout: "1m" }, on }, ["missing-field states.a.script"]],
    [
      "a template that is none",
      { script: { command: ["x", "{{ctx.}}"] }, on },
      ["bad-template states.a.script.command[1]"],
    ],
    [
      "a secret by its value",
      { script: { command: ["x"], secrets: ["ghp 12"] }, on },
      ["secret-name states.a.script.secrets[0]"],
    ],
    [
      "a deadline's answer without a deadline",
      { human: { question: "?", on_deadline: "fail" }, on },
      ["no-effect states.a.human.on_deadline"],
    ],
    [
      "an answer that does not fit",
      { human: { question: "?", deadline: "1d", on_deadline: { answer: 3 } }, on },
      ["definition states.a.human.on_deadline.answer"],
    ],
    [
      "a workflow that does not exist",
      { pipeline: { workflow: "other" }, on },
      ["invoke-unknown states.a.pipeline.workflow"],
    ],
    [
      "a target that does not exist",
      { router: { targets: ["dne", "done"], prompt: "?" } },
      ["unknown-target states.a.router.targets[0]"],
    ],
  ])("%s", async (_what, state, rules) => {
    expect(await rulesOf(state)).toEqual(rules);
  });

  test("a text that is no name of a secret is not repeated in the diagnostic", async () => {
    const script = { command: ["x"], secrets: ["ghp 1234567890"] };
    const { diagnostics } = await loadDocument({ id: "w", initial: "a", states: { a: { script, on }, done: final } });
    expect(JSON.stringify(diagnostics)).not.toContain("1234567890");
  });

  test("a shell line with a template is refused with another way to pass the value", async () => {
    const script = { shell: "echo {{ctx.task}}" };
    const { diagnostics } = await loadDocument({ id: "w", initial: "a", states: { a: { script, on }, done: final } });
    expect(diagnostics).toMatchObject([
      {
        message: "A shell line holds no template: its value would be read as shell text.",
        suggestion: 'pass the value in a variable: "env": { "VALUE": "{{ctx.task}}" }, and write "$VALUE" in the line',
        line: 7,
      },
    ]);
  });

  test("a state cannot be called interrupted", async () => {
    const more = { interrupted: { timer: { for: "1d" }, on } };
    expect(await rulesOf({ timer: { for: "1d" }, on: { success: "interrupted" } }, more)).toEqual([
      "wrong-name states.interrupted",
    ]);
  });
});

describe("a router", () => {
  const choose = { router: { targets: ["fix", "done"], prompt: "Is {{ctx.task}} fixed?", fallback: "failed" } };
  const routed = {
    id: "w",
    initial: "choose",
    states: { choose, fix: { timer: { for: "1d" }, on: { success: "choose" } }, done: final },
  };

  test("leads to the states that its model may choose, and to its fallback", async () => {
    const loaded = await loadDocument(routed);
    expect(ruleLines(loaded)).toEqual([]);
    const { edges, nodes } = graphOf(pipelineOf(loaded).spec);
    const labelOf = (id: string): string => nodes.find((one) => one.id === id)?.label ?? id;
    expect(edges.map(({ from, to, label }) => `${labelOf(from)} -> ${labelOf(to)}: ${label}`)).toEqual([
      "choose -> fix: chosen by the model",
      "choose -> done: chosen by the model",
      "choose -> failed: chosen by the model",
      "fix -> choose: success",
    ]);
  });

  test("is simulated with its choice", async () => {
    const outcomes = [
      { output: { to: "fix" } },
      { output: { elapsedMs: 1, timestamp: 1 } },
      { output: { to: "done" } },
    ];
    const { hops, end } = await simulate(pipelineOf(await loadDocument(routed)).spec, outcomes);
    expect(hops.map(({ follows }) => follows)).toEqual([
      "enters choose",
      "enters fix",
      "enters choose",
      "the run completes in done",
    ]);
    expect(end).toMatchObject({ status: "completed" });
  });

  test("is proven over all its targets", async () => {
    const loaded = await loadDocument({ ...routed, properties: ["never: done before fix"] });
    expect(ruleLines(loaded)).toEqual(["property-broken properties[0]"]);
  });

  test("cannot be routed by its success", async () => {
    expect(await rulesOf({ ...choose, router: { targets: ["done"], prompt: "?" }, on: { success: "done" } })).toEqual([
      "unknown-event states.a.on.success",
    ]);
  });
});

describe("a command of a file", () => {
  const ends = { ok: final, small: { ...final, outcome: "cancelled" } };
  const document = (states: object, guards: object = {}) => ({
    id: "w",
    initial: "a",
    states: { ...states, ...ends },
    guards,
  });
  const count = node(
    "console.log(JSON.stringify({ words: process.argv[1].split(' ').length, by: process.env.BY }))",
    "{{ctx.task}}",
  );
  const counting = document(
    {
      a: {
        script: {
          command: count,
          env: { BY: "{{input.by}}" },
          timeout: "1m",
          output: { properties: { words: { type: "number" } } },
        },
        on: { success: [{ target: "ok", guard: "many" }, { target: "small" }] },
      },
    },
    { many: { field: "output.parsed.words", op: "gt", value: 3 } },
  );

  test.each([
    ["a b; echo $(id) `id`", "completed"],
    ["a b c d", "completed"],
    ["a", "cancelled"],
  ])("prints, and a guard reads what it printed: %s", async (task, status) => {
    const live = commandSession();
    const result = await live.run(pipelineOf(await loadDocument(counting)), { task, by: "me" });
    expect(result).toMatchObject({ status });
  });

  test.each([
    [3, "ok"],
    [4, "failed"],
  ])("that ends with %i is routed by what its failure says", async (code, end) => {
    const failing = document(
      {
        a: {
          script: { shell: `echo no; exit ${code}` },
          on: { success: "small", failure: [{ target: "ok", guard: "three" }, { target: "failed" }] },
        },
      },
      { three: { field: "output.detail.exitCode", op: "eq", value: 3 } },
    );
    const live = commandSession();
    const { status } = await live.run(pipelineOf(await loadDocument(failing)), {});
    expect(status).toBe(end === "ok" ? "completed" : "failed");
  });

  test("of a Flujo step and of a Markdown stage gives its output to the next", async () => {
    const machine = {
      kind: "StateMachine",
      name: "m",
      start_state: "a",
      end_states: ["done", "other"],
      states: {
        a: [
          {
            name: "first",
            script: { command: node("console.log(JSON.stringify({ n: 7 }))") },
            sink_to: "scratchpad.first",
          },
          {
            name: "second",
            script: { command: node(PRINT_ARGUMENTS, "{{ steps.first.parsed.n }}", "{{ context.k }}") },
          },
        ],
        other: { outcome: "failed" },
      },
      context: { k: "v" },
      transitions: [
        {
          from: "a",
          on: "success",
          when: "context.scratchpad.first.exitCode == 0 && output.parsed[1] == 'v'",
          to: "done",
        },
        { from: "a", on: "success", to: "other" },
      ],
    };
    const flujo = await loadDocument(machine);
    expect(ruleLines(flujo)).toEqual([]);
    expect(await commandSession().run(pipelineOf(flujo), {})).toMatchObject({ status: "completed" });

    const folder = await loadTexts("p", {
      "p/pipeline.yaml": `id: p
initial: print
transitions:
  - { from: print, to: check }
  - { from: check, when: 'output.parsed.n == 7 && output.attempts == 1', to: done }
`,
      "p/print.md": "---\nkind: script\nshell: echo 7\n---\nPrints a number.\n",
      "p/check.md": `---\nkind: poll\ncommand: [/bin/sh, -c, 'test "$0" = 7 && echo "{\\"n\\": 7}"', '{{ctx.upstream.print.parsed.result}}']\nevery: 1s\nmaxAttempts: 1\n---\n`,
    });
    expect(ruleLines(folder)).toEqual([]);
    expect(await commandSession().run(pipelineOf(folder), {})).toMatchObject({ status: "completed" });
  });
});

describe("writing a document", () => {
  const child = { id: "child", initial: "ask", states: { ask: { human: { question: "?" }, on }, done: final } };
  const all = {
    id: "all",
    initial: "run it",
    states: {
      "run it": {
        script: {
          command: ["npm", "test", "{{ctx.task}}"],
          env: { A: "{{ctx.run.input.a}}" },
          timeout: "15m",
          success_codes: [0, 2],
          secrets: ["TOKEN"],
          output: { properties: { n: { type: "number" } } },
          repeat: true,
        },
        on: { success: [{ target: "poll", guard: "fast" }, { target: "line" }], failure: "failed" },
      },
      line: { script: { shell: "npm test", stdin: "upstream", cwd: "packages" }, on: { success: "poll" } },
      poll: {
        poll: { command: ["gh", "run"], every: "15m", not_yet_codes: [8], total_timeout: "3h", max_attempts: 9 },
        on: { success: "sleep" },
      },
      sleep: { timer: { for: "5d" }, on: { success: "until" } },
      until: { timer: { until: "{{ctx.run.input.at}}" }, on: { success: "ask" } },
      ask: {
        human: {
          question: "{{ctx.task}}?",
          answer: { type: "boolean" },
          deadline: "1d",
          on_deadline: { answer: false },
        },
        on: { success: { target: "nested", requires_approval: true } },
      },
      nested: { pipeline: { workflow: "./child.json", input: { level: 3 } }, on: { success: "choose" } },
      choose: {
        router: { targets: ["done", "run it"], prompt: "?", tries: 2, fallback: "failed" },
        on: { failure: "failed" },
      },
      done: final,
      failed: { ...final, outcome: "failed" },
    },
    guards: { fast: { field: "output.parsed.n", op: "lt", value: 3 } },
  };

  test("writes states of every kind, which load as the same pipeline", async () => {
    const loaded = await loadTexts("w.json", { "w.json": JSON.stringify(all), "child.json": JSON.stringify(child) });
    expect(ruleLines(loaded)).toEqual([]);
    const written = writeStatewright(pipelineOf(loaded), { references: { child: "./child.json" } });
    const text = "text" in written ? written.text : JSON.stringify(written.problems);
    const again: unknown = JSON.parse(text);
    expect(again).toMatchObject({ states: all.states, guards: all.guards });
  });
});

describe("a check of a document with commands and questions", () => {
  const document = (more = 3) => ({
    id: "w",
    initial: "count",
    states: {
      count: {
        script: { shell: "echo 5" },
        on: { success: [{ target: "ask", guard: "many" }, { target: "done" }], failure: "failed" },
      },
      ask: { human: { question: "Go on?", deadline: "1d" }, on: { success: "done", failure: "cancelled" } },
      done: final,
    },
    guards: { many: { field: "output.parsed.result", op: "gt", value: more } },
  });
  const result = { exitCode: 0, stdout: "5", stderr: "", parsed: { result: 5 } };
  const outcomes = (...all: readonly unknown[]) => readOutcomes(JSON.parse(JSON.stringify(all))).outcomes;

  test.each([
    ["success and an answer", [{ output: result }, { output: "yes" }], "completed"],
    ["success below what a guard asks", [{ output: { ...result, parsed: { result: 1 } } }], "completed"],
    ["a failure", [{ failure: "script" }], "failed"],
    ["a question without an answer", [{ output: result }, { failure: "unanswered" }], "cancelled"],
  ])("simulates %s", async (_what, given, status) => {
    const { end, fault } = await simulate(pipelineOf(await loadDocument(document())).spec, outcomes(...given));
    expect([fault, end?.status]).toEqual([undefined, status]);
  });

  test("tries its routes on recorded runs", async () => {
    const live = commandSession({ interactors: [person({ kind: "value", value: "yes" })] });
    const run = await live.run(pipelineOf(await loadDocument(document())), {});
    const journals = await live.host.journal(run.runId);
    const trial = async (more?: number) =>
      (await againstRuns(pipelineOf(await loadDocument(document(more))).spec, [journals]))[0];
    expect(await trial()).toMatchObject({ routes: [], decisions: 2, unknownStates: [] });
    expect((await trial(9))?.routes).toMatchObject([{ state: "count", was: "ask", now: "done" }]);
  });

  test("proves what holds whether a command succeeds or fails", async () => {
    const rules = async (property: string): Promise<readonly string[]> =>
      ruleLines(await loadDocument({ ...document(), properties: [property] }));
    expect(await rules("never: ask before count")).toEqual([]);
    expect(await rules("never: cancelled before ask")).toEqual([]);
    expect(await rules("always: ask after count")).toEqual(["property-broken properties[0]"]);
  });

  test("warns of a row that never applies after one without a condition", async () => {
    const shadowed = {
      id: "w",
      initial: "a",
      states: { a: { timer: { for: "1d" }, on: { success: [{ target: "done" }, { target: "failed" }] } }, done: final },
    };
    expect(ruleLines(await loadDocument(shadowed))).toEqual([
      "never-entered states.failed (warning)",
      "shadowed-row states.a.on.success[1] (warning)",
    ]);
  });
});

describe("a document with an orchestrator", () => {
  const directed = {
    id: "directed",
    initial: "plan",
    orchestrator: { instructions: "Finish {{ctx.run.input.what}}.", max_turns_per_choice: 4, fallback: "ask" },
    states: {
      plan: { allowed_tools: [], instructions: "Plan.", output_schema: { properties: { n: { type: "number" } } } },
      wait: { timer: { until: 500 } },
      ask: { human: { question: "Well?" } },
    },
  };

  test("goes where its model chooses, and its agents complete with an output", async () => {
    const loaded = await loadDocument(directed);
    expect(ruleLines(loaded)).toEqual([]);
    const { model, prompts } = noting([select("wait"), select("ask"), select("completed", { ok: true }), bye], {
      plan: [{ calls: [{ tool: "submit", input: { n: 3 } }] }],
    });
    const live = session({ model, interactors: [person({ kind: "value", value: "good" })] });
    const result = await live.run(pipelineOf(loaded), { task: "T", what: "it" });
    expect(result).toMatchObject({ status: "completed", output: { ok: true } });
    for (const part of ["Finish it.", "plan#1 completed", "good"]) expect(prompts.at(-1)).toContain(part);
  });

  test("is drawn, and its states lead back to the orchestrator", async () => {
    const { edges, nodes } = graphOf(pipelineOf(await loadDocument(directed)).spec);
    const labelOf = (id: string): string => nodes.find((one) => one.id === id)?.label ?? id;
    const lines = edges.map(({ from, to }) => `${labelOf(from)} -> ${labelOf(to)}`);
    for (const line of ["plan -> orchestrator", "orchestrator -> ask", "ask -> orchestrator"])
      expect(lines).toContain(line);
  });

  test.each<readonly [what: string, change: object, rules: readonly string[]]>([
    ["transitions", { states: { plan: { allowed_tools: [], on: { DONE: "plan" } } } }, ["no-effect states.plan.on"]],
    [
      "transitions of a kind",
      { states: { plan: { timer: { for: "1d" }, on: { success: "plan" } } } },
      ["no-effect states.plan.on"],
    ],
    [
      "a fallback that does not exist",
      { orchestrator: { instructions: "x", fallback: "pla" } },
      ["unknown-target orchestrator.fallback"],
    ],
    ["no instructions", { orchestrator: {} }, ["missing-field orchestrator"]],
    [
      "an output that is no object",
      { states: { plan: { allowed_tools: [], output_schema: { type: "number" } } } },
      ["wrong-type states.plan.output_schema.type"],
    ],
  ])("reports %s", async (_what, change, rules) => {
    expect(ruleLines(await loadDocument({ ...directed, orchestrator: { instructions: "x" }, ...change }))).toEqual(
      rules,
    );
  });

  test("an output of an agent that leaves by events is reported", async () => {
    expect(await rulesOf({ allowed_tools: [], output_schema: {}, on: { DONE: "done" } })).toEqual([
      "no-effect states.a.output_schema",
    ]);
  });
});

describe("an orchestrator of other formats", () => {
  const machine = {
    kind: "StateMachine",
    name: "directed",
    start_state: "plan",
    orchestrator: { instructions: "Finish {{ context.what }}." },
    context: { what: "it" },
    states: {
      plan: [{ name: "draft", prompt: "Plan.", tools: [] }],
      ask: [{ name: "question", human: { question: "Well?" } }],
    },
  };
  const folder = {
    "d/pipeline.yaml":
      "id: directed\ninitial: plan\norchestrator: { instructions: 'Finish {{ctx.context.what}}.' }\ncontext: { what: it }\nstages: [plan, ask]\n",
    "d/plan.md":
      "---\nallowedTools: []\ncompletionTool: submit\ncompletionSchema: { properties: { result: { type: string } } }\n---\nPlan.\n",
    "d/ask.md": "---\nkind: human\n---\nWell?\n",
  };
  test.each<readonly [name: string, load: () => Promise<LoadedWorkflow>]>([
    ["a Flujo machine", () => loadDocument(machine)],
    ["a folder of Markdown stages", () => loadTexts("d", folder)],
  ])("chooses among the states of %s", async (_name, load) => {
    const loaded = await load();
    expect(ruleLines(loaded)).toEqual([]);
    const { model, prompts } = noting([select("ask"), select("completed", { ok: true }), bye], {
      plan: [{ calls: [{ tool: "submit", input: { result: "a plan" } }] }],
    });
    const live = session({ model, interactors: [person({ kind: "value", value: "good" })] });
    const result = await live.run(pipelineOf(loaded), { task: "T" });
    expect(result).toMatchObject({ status: "completed", output: { ok: true } });
    for (const part of ["Finish it.", "a plan", "good"]) expect(prompts.at(-1)).toContain(part);
  });

  test.each<readonly [what: string, change: object, rules: readonly string[]]>([
    ["transitions", { transitions: [{ from: "plan", on: "success", to: "ask" }] }, ["no-effect transitions"]],
    [
      "a fallback that does not exist",
      { orchestrator: { instructions: "x", fallback: "aks" } },
      ["unknown-target orchestrator.fallback"],
    ],
  ])("reports %s of a machine", async (_what, change, rules) => {
    expect(ruleLines(await loadDocument({ ...machine, ...change }))).toEqual(rules);
  });

  test("reports transitions beside it, and stages without it, in a folder", async () => {
    const rows = "transitions:\n  - { from: plan, to: done }\n";
    const both = { ...folder, "d/pipeline.yaml": `${folder["d/pipeline.yaml"]}${rows}` };
    expect(ruleLines(await loadTexts("d", both))).toEqual(["no-effect transitions"]);
    const none = { ...folder, "d/pipeline.yaml": `id: x\ninitial: plan\nstages: [plan, ask]\n${rows}` };
    expect(ruleLines(await loadTexts("d", none))).toContain("no-effect stages");
  });
});
