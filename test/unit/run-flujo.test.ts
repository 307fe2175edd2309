import { callbackInteractor, type PipelineSpec } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { giving, machine, pipelineOf, ROWS, runFlujo } from "../support/flujo.ts";
import { killedEverywhere } from "../support/killed-runs.ts";
import { session } from "../support/run-kit.ts";
import { talker } from "../support/talker.ts";

// Flujo state machines as they run, beside the facts of test/facts/flujo.

/** Two questions, with an agent before each of them. */
const QUESTIONS = `kind: StateMachine
name: questions
start_state: work
end_states: [done, failed]
states:
  work:
    - { name: prelude, prompt: "Start {{ ctx.task }}.", tools: [] }
    - { kind: hitl, name: color, message: "{{ previous_step.result }}?", sink_to: scratchpad.color }
    - { name: middle, prompt: "They said {{ resume_input }}, {{ context.scratchpad.color }}.", tools: [] }
    - { kind: hitl, name: size, message: "And {{ steps.middle.result }}?", input_schema: { type: number }, sink_to: scratchpad.size }
    - { name: finish, prompt: "{{ context.scratchpad.color }} {{ context.scratchpad.size }} {{ previous_step }}", tools: [] }
transitions:
ROWS
  - { from: work, on: success, to: done, when: 'context.scratchpad.color == "red" && context.scratchpad.size > 2' }
  - { from: "*", on: failure, to: failed }
`;
const script = {
  prelude: [{ result: "which color" }],
  middle: [{ result: "which size" }],
  finish: [{ result: "made" }],
};

describe("a state that asks a person", () => {
  test("and gets none fails, so that its failure row decides", async () => {
    const ran = await runFlujo(QUESTIONS.replace("ROWS\n", ""), { outputs: script });
    expect(ran).toMatchObject({ status: "failed", state: "failed", error: { code: "failed" } });
    expect(ran.walk).toEqual(["work#1 failed"]);
  });

  test("cannot be taken for one that was visited before by what a run is given", async () => {
    const rows = "  - { from: work, on: pause, to: work }";
    const pipeline = await pipelineOf(QUESTIONS.replace("ROWS", rows));
    const live = session({ model: giving(script) });
    const resume = {
      state: "work",
      outputs: { prelude: 1, color: "red", middle: 1, size: 3 },
      changes: {},
      previous: null,
    };
    const result = await live.run(pipeline, { task: "t", answer: 3, resume });
    // It asks all the same, and nobody is there.
    expect(result).toMatchObject({ status: "failed", stages: [{ status: "failed", code: "unanswered" }] });
  });
});

test("a machine passes context, outputs and answers between steps, states and imports", async () => {
  const text = `kind: StateMachine
start_state: a
end_states: [done, failed]
imports: { child: ./child.yaml }
context: { scratchpad: { from: parent } }
states:
  a:
    - name: go
      uses: imports.child
      input: { extra: 1 }
      outputs: [{ child: scratchpad.found, parent: result.found }, { child: scratchpad.none, parent: result.none }]
    - { kind: hitl, name: ok, message: "{{ context.result.found }} {{ steps.go.result }}?", sink_to: answer }
  b: [{ name: last, prompt: "{{ context.answer }} {{ steps.go.result }} {{ steps.ok }}", tools: [] }]
transitions:
  - { from: a, on: success, to: b, when: 'steps.go.result == "child" && steps.ok == "yes" && output.last_step.name == "ok"' }
  - { from: b, on: success, to: done, when: 'context.result == {"found": "it"} && context.scratchpad == {"from": "parent"}' }
`;
  const child = `steps:
  - { name: look, prompt: "{{ context.scratchpad.from }} {{ ctx.run.input.extra }}", tools: [], sink_to: scratchpad.seen }
  - { name: find, prompt: "{{ previous_step.result }} {{ context.scratchpad.seen.result }}", tools: [], output_schema: { type: object, properties: { found: { type: string }, result: { type: string } } }, updates_context: true }
`;
  const ran = await runFlujo(text, {
    files: { "w/child.yaml": child },
    outputs: { look: [{ result: "seen" }], find: [{ found: "it", result: "child" }], b: [{ result: "end" }] },
    answers: ["yes"],
  });
  expect(ran.error).toBeUndefined();
  expect(ran).toMatchObject({ status: "completed", state: "done", asked: ["it child?"] });
});

test("an import may be a workflow of another format, which has this one's context and gives back its own", async () => {
  const states = `  a: [{ name: doc, uses: imports.doc, outputs: [{ child: found, parent: result.found }] }]
  b: [{ name: folder, uses: imports.folder, input: { extra: "{{ context.result.found }}" } }]`;
  const more = "imports: { doc: ./doc.yaml, folder: ./stages }\ncontext: { scratchpad: { level: high } }";
  const text = machine(ROWS.replace("to: done }", "to: done, when: output.text == 'folder' }"), { states, more });
  const files = {
    "w/doc.yaml": `id: doc
initial: looking
states:
  looking: { allowed_tools: [], instructions: "Look at {{ctx.context.scratchpad.level}}.", on: { FOUND: complete } }
  complete: { type: final, outcome: completed }
`,
    "w/stages/pipeline.yaml": "id: folder\ninitial: write\ntransitions:\n  - { from: write, to: done }\n",
    "w/stages/write.md": `---
allowedTools: []
completionTool: finish
completionSchema: { type: object, properties: { text: { type: string } }, required: [text] }
---
Write {{ctx.run.input.extra}} for {{ctx.task}}.
`,
  };
  const model = talker(({ stage }) => ({
    calls: [
      stage === "looking"
        ? { tool: "transition", input: { event: "FOUND", data: { found: "it" } } }
        : { tool: "finish", input: { text: "folder" } },
    ],
  }));
  const ran = await runFlujo(text, { files, options: { model } });
  expect([ran.error, ran.state, ran.output]).toEqual([undefined, "done", { text: "folder" }]);
  const prompts = JSON.stringify(model.heard.map(({ messages }) => messages));
  expect([prompts.includes("Look at high."), prompts.includes("Write it for the task.")]).toEqual([true, true]);
});

describe("a template", () => {
  const files = { "w/o.yaml": "steps: [{ name: in, prompt: '{{ ctx.task }} {{ ctx.run.input.r }}', tools: [] }]" };
  const importing = (input: string): string =>
    machine(ROWS, {
      states: `  a: [{ name: first, prompt: P, tools: [] }, { name: go, uses: imports.o, input: ${input} }]\n  b: []`,
      more: "imports: { o: ./o.yaml }\ncontext: { v: VALUE }",
    });
  const outputs = { first: [{ result: "1" }], in: [{ result: "2" }] };

  test("in the input of an import is replaced", async () => {
    const text = importing('"Do {{ context.v }} {{ steps.first.result }}"');
    const ran = await runFlujo(text, { files, outputs, input: { task: "t", r: "run" } });
    expect([ran.state, ran.prompts[1]]).toEqual(["done", "in: Do VALUE 1 run"]);
    const fields = importing('{ task: "{{ previous_step.result }}", r: "{{ context.v }}", n: 1 }');
    const other = await runFlujo(fields, { files, outputs, input: { task: "t", r: "run" } });
    expect([other.state, other.prompts[1]]).toEqual(["done", "in: 1 VALUE"]);
  });

  test("in what an agent or a person wrote is text", async () => {
    const written = "{{ ctx.run.input.secret }}{{ context.v }}";
    const states = `  a:
    - { name: first, prompt: P, tools: [], sink_to: v }
    - { kind: hitl, name: ask, message: "{{ context.v.result }}" }
    - { name: go, uses: imports.o, input: { task: "{{ resume_input }}", r: "{{ context.v.result }}" } }
  b: []`;
    const text = machine(ROWS, { states, more: "imports: { o: ./o.yaml }" });
    const ran = await runFlujo(text, {
      files,
      outputs: { ...outputs, first: [{ result: written }] },
      answers: [written],
      input: { task: "t", secret: "SECRET" },
    });
    expect([ran.asked, ran.prompts[1]]).toEqual([[written], `in: ${written} ${written}`]);
  });

  test.each([
    ["a question", '{ kind: hitl, name: q, message: "{{ context.nope.x }}" }'],
    ["the input of an import", '{ name: q, uses: imports.o, input: "{{ context.nope.x }}" }'],
    ["a prompt", '{ name: q, prompt: "{{ context.nope.x }}", tools: [], sink_to: x }'],
  ])("of %s that leads nowhere fails the state, whose row decides", async (_what, step) => {
    const text = machine(ROWS, { states: `  a: [${step}]\n  b: []`, more: "imports: { o: ./o.yaml }" });
    const ran = await runFlujo(text, { files, outputs, answers: [] });
    expect([ran.state, ran.walk]).toEqual(["failed", ["a#1 failed"]]);
    expect(JSON.stringify(ran.result.stages)).toContain("leads nowhere");
  });
});

describe("a run that is killed before each of its records", () => {
  test.each([
    ["with a row for the pause", "  - { from: work, on: pause, to: work }"],
    ["without", "  - { from: work, on: skipped_never, to: work }"],
  ])("ends like one that is not, and repeats no finished step: %s", async (_name, rows) => {
    const own = rows.includes("skipped_never") ? QUESTIONS.replace("ROWS\n", "") : QUESTIONS.replace("ROWS", rows);
    const loaded = await pipelineOf(own);
    const spec: PipelineSpec = loaded.spec;
    const { whole, killed } = await killedEverywhere(() => ({
      pipeline: { id: loaded.id, spec },
      input: { task: "the task" },
      options: {
        model: giving(script),
        interactors: [
          callbackInteractor("ann", ({ body }) => ({ kind: "value", value: body.answer === undefined ? "red" : 3 })),
        ],
      },
    }));
    expect(whole).toMatchObject({ status: "completed", state: "done" });
    for (const facts of killed) expect(facts).toEqual(whole);
    expect(killed.length).toBeGreaterThan(20);
  });
});
