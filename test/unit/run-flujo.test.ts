import {
  type Answer,
  callbackInteractor,
  type Json,
  type PersonRequest,
  type Pipeline,
  type PipelineSpec,
} from "@sluice/core";
import { type Script, scriptedModel } from "@sluice/stages";
import { loadWorkflow, type WorkflowInput } from "@sluice/workflows";
import { describe, expect, test } from "vitest";
import { killedEverywhere } from "../support/killed-runs.ts";
import { dataOf, eventsOf, session } from "../support/run-kit.ts";
import { loadTexts } from "../support/workflows.ts";

// Flujo state machines as they run: with scripted agents, and people who answer.

const fixtures = new URL("../fixtures/workflows/flujo/", import.meta.url);

/** The turns of agents that complete with these outputs, one for each visit. */
function outputs(byStep: Readonly<Record<string, readonly Json[]>>): Script {
  const turns = Object.entries(byStep).map(
    ([step, all]) => [step, all.map((input) => ({ calls: [{ tool: "submit", input }] }))] as const,
  );
  return { stages: Object.fromEntries(turns) };
}

function answering(answers: readonly (Answer | Json)[], asked: PersonRequest[] = []) {
  let next = 0;
  return callbackInteractor("ann", (request) => {
    asked.push(request);
    const answer = answers[next];
    next += 1;
    const isAnswer =
      typeof answer === "object" && answer !== null && "kind" in answer && typeof answer.kind === "string";
    return isAnswer && answer.kind === "deny" ? { kind: "deny" } : { kind: "value", value: answer as Json };
  });
}

async function load(
  text: string,
  others: Readonly<Record<string, string>> = {},
): Promise<Pipeline<WorkflowInput, unknown>> {
  const { pipeline, diagnostics } = await loadTexts("w/m.yaml", { "w/m.yaml": text, ...others });
  if (pipeline === undefined) throw new Error(JSON.stringify(diagnostics, null, 2));
  return pipeline;
}

interface Ran {
  readonly status: string;
  readonly error: { readonly code: string; readonly message: string } | undefined;
  readonly state: string | undefined;
  readonly output: unknown;
  /** The states that were entered and how they ended. */
  readonly walk: readonly string[];
  readonly routes: readonly string[];
  readonly asked: readonly string[];
  readonly events: Awaited<ReturnType<typeof eventsOf>>;
}

async function run(
  pipeline: Pipeline<WorkflowInput, unknown>,
  {
    script = {},
    answers,
  }: { readonly script?: Readonly<Record<string, readonly Json[]>>; readonly answers?: readonly Json[] },
): Promise<Ran> {
  const asked: PersonRequest[] = [];
  const live = session({
    model: scriptedModel(outputs(script)),
    ...(answers === undefined ? {} : { interactors: [answering(answers, asked)] }),
  });
  const started = live.start(pipeline, { task: "the task" });
  const result = await started;
  const events = await eventsOf(live.host, started.runId);
  const own = events.filter(({ runId }) => runId === started.runId);
  const { status, error, state, output } = { error: undefined, state: undefined, output: undefined, ...result };
  return {
    status,
    error,
    state,
    output,
    walk: result.stages.map(({ executionId, status: ended }) => `${executionId} ${ended}`),
    routes: dataOf(own, "route.decided").map(({ from, to, choice }) => `${String(from)} -> ${String(to ?? choice)}`),
    asked: asked.map(({ body }) => String(body.question)),
    events,
  };
}

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
const answers = ["red", 3];

describe("a state that asks a person", () => {
  test("without a row for its pause waits, and goes on in the same execution", async () => {
    const ran = await run(await load(QUESTIONS.replace("ROWS\n", "")), { script, answers });
    expect(ran).toMatchObject({ status: "completed", state: "done", output: { result: "made" } });
    expect(ran.walk).toEqual(["work#1 completed"]);
    expect(ran.asked).toEqual(["which color?", "And which size?"]);
  });

  test("with a row to itself goes on in a further visit, and repeats nothing", async () => {
    const rows = "  - { from: work, on: pause, to: work }";
    // The script has one turn for each agent: a repeated step would have none.
    const ran = await run(await load(QUESTIONS.replace("ROWS", rows)), { script, answers });
    expect(ran).toMatchObject({ status: "completed", state: "done", output: { result: "made" } });
    expect(ran.walk).toEqual(["work#1 paused", "work#2 paused", "work#3 completed"]);
    expect(ran.routes).toEqual(["work -> work", "work -> work", "work -> done"]);
    expect(ran.asked).toEqual(["which color?", "And which size?"]);
  });

  test("with a row to another state gives it the answer, and merges nothing", async () => {
    const text = `kind: StateMachine
start_state: ask
end_states: [done, failed]
states:
  ask:
    - { name: before, prompt: Start., tools: [], updates_context: true }
    - { kind: hitl, name: color, message: "Which?", sink_to: scratchpad.color }
    - { name: never, prompt: Never., tools: [] }
  use: [{ name: use_it, prompt: "Use {{ resume_input }} and {{ previous_step }}.", tools: [] }]
transitions:
  - { from: ask, on: pause, to: use, when: 'output.last_output == "red"' }
  - { from: ask, on: pause, to: ask }
  - { from: use, on: success, to: done, when: "!context.scratchpad" }
  - { from: use, on: success, to: failed }
  - { from: ask, on: success, to: done }
`;
    const ran = await run(await load(text), {
      script: { before: [{ result: "b" }], use: [{ result: "used" }] },
      answers: ["red"],
    });
    expect(ran).toMatchObject({ status: "completed", state: "done", output: { result: "used" } });
    expect(ran.walk).toEqual(["ask#1 paused", "use#1 completed"]);
  });

  test("and gets none fails, so that its failure row decides", async () => {
    const ran = await run(await load(QUESTIONS.replace("ROWS\n", "")), { script });
    expect(ran).toMatchObject({ status: "failed", state: "failed", error: { code: "failed" } });
    expect(ran.walk).toEqual(["work#1 failed"]);
  });

  test("cannot be taken for one that was visited before by what a run is given", async () => {
    const rows = "  - { from: work, on: pause, to: work }";
    const pipeline = await load(QUESTIONS.replace("ROWS", rows));
    const live = session({ model: scriptedModel(outputs(script)) });
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

describe("a machine", () => {
  test("of the specification runs to its end", async () => {
    const { pipeline } = await loadWorkflow(new URL("orchestrate.yaml", fixtures).pathname);
    if (pipeline === undefined) throw new Error("it does not load");
    const ran = await run(pipeline, {
      script: {
        draft_question: [{ question: "Which cohort?" }],
        discover: [{ concepts: ["age"] }],
        review: [{ verdict: "approve" }],
      },
      answers: ["adults"],
    });
    expect(ran).toMatchObject({ status: "completed", state: "done", output: { verdict: "approve" } });
    expect(ran.walk).toEqual(["clarification#1 completed", "concept_discovery#1 completed", "review#1 completed"]);
    expect(ran.asked).toEqual(["Which cohort?"]);
  });

  const TWO = `kind: StateMachine
start_state: a
end_states: [done, failed]
context: { scratchpad: { level: 2 } }
states:
  a: [{ name: one, prompt: "One of {{ ctx.task }}.", tools: [] }]
  b: [{ name: two, prompt: "After {{ previous_step.result }} and {{ steps.one.result }}.", tools: [] }]
transitions:
`;
  test("hands the output of a state to the next, and ends in the state that its rows say", async () => {
    const rows =
      "  - { from: a, on: success, to: b }\n  - { from: b, on: success, to: done }\n  - { from: '*', on: failure, to: failed }\n";
    const ran = await run(await load(TWO + rows), { script: { a: [{ result: "x" }], b: [{ result: "y" }] } });
    expect(ran).toMatchObject({ status: "completed", state: "done", output: { result: "y" } });
    expect(ran.routes).toEqual(["a -> b", "b -> done"]);
    const prompts = ran.events.filter(({ type }) => type === "stage.init");
    expect(JSON.stringify(prompts)).not.toContain("previous_step");
  });

  test("takes the first row that holds, and records why the others do not", async () => {
    const rows = `  - { from: a, on: success, to: failed, when: context.scratchpad.level > 2 }
  - { from: a, on: success, to: failed, when: context.nope.deeper == 1 }
  - { from: a, on: success, to: b, when: context.scratchpad.level == 2 }
  - { from: a, on: success, to: failed }
  - { from: b, on: success, to: done }
`;
    const ran = await run(await load(TWO + rows), { script: { a: [{ result: "x" }], b: [{ result: "y" }] } });
    expect(ran).toMatchObject({ status: "completed", state: "done" });
    const own = dataOf(ran.events, "route.decided")[0];
    expect(own).toMatchObject({
      why: {
        by: "table",
        row: 2,
        rejectedRows: [
          { row: 0, why: "context.scratchpad.level > 2 is false" },
          { row: 1, why: expect.stringContaining("cannot be evaluated") },
        ],
      },
    });
  });

  test("whose state fails without a row for it fails", async () => {
    const rows = "  - { from: a, on: success, to: b }\n  - { from: b, on: success, to: done }\n";
    const ran = await run(await load(TWO + rows), { script: { a: [{ wrong: 1 }] } });
    expect(ran).toMatchObject({ status: "failed", state: undefined });
    expect(ran.walk).toEqual(["a#1 failed"]);
  });

  test("whose failure row leads to an end called failed has failed", async () => {
    const rows =
      "  - { from: a, on: success, to: b }\n  - { from: b, on: success, to: done }\n  - { from: '*', on: failure, to: failed }\n";
    const ran = await run(await load(TWO + rows), { script: { a: [{ wrong: 1 }] } });
    expect(ran).toMatchObject({ status: "failed", state: "failed", error: { message: "ended in state failed" } });
  });

  test("with a success that no row is for fails and says so", async () => {
    const rows = "  - { from: a, on: failure, to: b }\n  - { from: b, on: success, to: done }\n";
    const ran = await run(await load(TWO + rows), { script: { a: [{ result: "x" }] } });
    expect(ran).toMatchObject({
      status: "failed",
      error: { message: "a completed, and no transition leads on from it" },
    });
  });

  test("that loops without an end fails at its cap", async () => {
    const rows = `  - { from: a, on: success, to: b }
  - { from: b, on: success, to: done, when: context.never }
  - { from: b, on: success, to: a }
`;
    const turns = Array.from({ length: 30 }, () => ({ result: "x" }));
    const text = (TWO + rows).replace("context:", "limits: { max_hops: 5 }\ncontext:");
    const ran = await run(await load(text), { script: { a: turns, b: turns } });
    expect(ran).toMatchObject({ status: "failed", error: { code: "limit_hops" } });
  });

  test("stops inside a state at the step that fails", async () => {
    const text = `kind: StateMachine
start_state: a
end_states: [done, failed]
states:
  a:
    - { name: bad, prompt: Bad., tools: [] }
    - { name: after, prompt: After., tools: [], updates_context: true }
transitions:
  - { from: a, on: success, to: done }
  - { from: a, on: failure, to: failed, when: 'output.last_step.feedback.startsWith("bad failed") && !context.scratchpad' }
`;
    const ran = await run(await load(text), { script: { bad: [{ wrong: 1 }], after: [{ result: "x" }] } });
    expect(ran).toMatchObject({ status: "failed", state: "failed" });
    expect(ran.events.some(({ runId }) => runId.endsWith("/after"))).toBe(false);
  });

  test("has states without steps, which succeed", async () => {
    const text = `kind: StateMachine
start_state: a
end_states: [done, failed]
states: { a: [], b: { steps: [] } }
transitions:
  - { from: a, on: success, to: b, when: output == null }
  - { from: b, on: success, to: done }
`;
    expect(await run(await load(text), {})).toMatchObject({ status: "completed", state: "done", output: null });
  });

  test("passes context, outputs and answers between steps, states and imports", async () => {
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
    const ran = await run(await load(text, { "w/child.yaml": child }), {
      script: { look: [{ result: "seen" }], find: [{ found: "it", result: "child" }], b: [{ result: "end" }] },
      answers: ["yes"],
    });
    expect(ran.error).toBeUndefined();
    expect(ran).toMatchObject({ status: "completed", state: "done", asked: ["it child?"] });
  });

  test("may be inside another one's state, and followed by steps", async () => {
    const text = `name: outer
steps:
  - kind: StateMachine
    name: first
    start_state: x
    end_states: [done, failed]
    states:
      x:
        - kind: StateMachine
          name: inner
          start_state: x
          end_states: [done]
          states: { x: [{ name: deep, prompt: Deep., tools: [], sink_to: scratchpad.deep }] }
          transitions: [{ from: x, on: success, to: done }]
    transitions:
      - { from: x, on: success, to: done, when: 'context.scratchpad.deep.result == "d"' }
      - { from: x, on: success, to: failed }
  - { name: after, prompt: "{{ steps.first.result }} {{ context.scratchpad.deep.result }}", tools: [] }
`;
    const ran = await run(await load(text), { script: { deep: [{ result: "d" }], after: [{ result: "a" }] } });
    expect(ran).toMatchObject({ status: "completed", state: "done", output: { result: "a" } });
    expect(ran.walk).toEqual(["first#1 completed", "after#1 completed"]);
  });

  test("inside another one fails its state when it fails", async () => {
    const text = `name: outer
steps:
  - kind: StateMachine
    name: first
    start_state: x
    end_states: [done, failed]
    states: { x: [{ name: deep, prompt: Deep., tools: [] }] }
    transitions:
      - { from: x, on: success, to: done, when: context.never }
      - { from: x, on: success, to: failed }
  - { name: after, prompt: After., tools: [] }
`;
    const ran = await run(await load(text), { script: { x: [{ result: "d" }], after: [{ result: "a" }] } });
    expect(ran).toMatchObject({ status: "failed", walk: ["first#1 failed"] });
  });
});

describe("a run that is killed before each of its records", () => {
  test.each([
    ["with a row for the pause", "  - { from: work, on: pause, to: work }"],
    ["without", "  - { from: work, on: skipped_never, to: work }"],
  ])("ends like one that is not, and repeats no finished step: %s", async (_name, rows) => {
    const own = rows.includes("skipped_never") ? QUESTIONS.replace("ROWS\n", "") : QUESTIONS.replace("ROWS", rows);
    const loaded = await load(own);
    const spec: PipelineSpec = loaded.spec;
    const { whole, killed } = await killedEverywhere(() => ({
      pipeline: { id: loaded.id, spec },
      input: { task: "the task" },
      options: {
        model: scriptedModel(outputs(script)),
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
