import type { Json, OpenRequest, PersonRequest } from "@sluice/core";
import { expect } from "vitest";
import {
  answering,
  differs,
  errorsOf,
  fact,
  giving,
  machine,
  type Outputs,
  pipelineOf,
  promptsOf,
  runFlujo,
} from "../../support/flujo.ts";
import { eventsOf, eventually, session, twoHosts } from "../../support/run-kit.ts";

// Questions to people: what waits, what an answer does, and what runs again.

/** Two questions, with an agent before each of them and one after. */
const questions = (rows: string): string => `kind: StateMachine
name: questions
start_state: work
end_states: [done, failed]
states:
  work:
    - { name: prelude, prompt: "Start {{ ctx.task }}.", tools: [] }
    - { kind: hitl, name: color, message: "{{ previous_step.result }}?", input_schema: { type: string }, sink_to: scratchpad.color }
    - { name: middle, prompt: "They said {{ resume_input }}, {{ context.scratchpad.color }}.", tools: [] }
    - { kind: hitl, name: size, message: "And {{ steps.middle.result }}?", input_schema: { type: number }, sink_to: scratchpad.size }
    - { name: finish, prompt: "{{ resume_input }} {{ context.scratchpad.color }} {{ previous_step }}", tools: [] }
transitions:
${rows}  - { from: work, on: success, to: done, when: 'context.scratchpad.color == "red" && context.scratchpad.size > 2' }
  - { from: "*", on: failure, to: failed }
`;
const SELF = "  - { from: work, on: pause, to: work }\n";
const outputs: Outputs = {
  prelude: [{ result: "which color" }],
  middle: [{ result: "which size" }],
  finish: [{ result: "made" }],
};
const answers = ["red", 3];
const PROMPTS = ["prelude: Start the task.", "middle: They said red, red.", "finish: 3 red 3"];

/** A state that asks in the middle of its work, and a state that its pause leads to. */
const ASKING = `kind: StateMachine
start_state: ask
end_states: [done, failed]
states:
  ask:
    - { name: before, prompt: Start., tools: [], updates_context: true }
    - { kind: hitl, name: color, message: "Which?", sink_to: scratchpad.color }
    - { name: never, prompt: Never., tools: [] }
  use: [{ name: use_it, prompt: "Use {{ resume_input }}, {{ ctx.input.answer }} and {{ previous_step }}.", tools: [] }]
transitions:
  - { from: ask, on: pause, to: use, when: 'output.last_output == "red"' }
  - { from: ask, on: pause, to: ask }
  - { from: use, on: success, to: done, when: "!context.scratchpad" }
  - { from: use, on: success, to: failed }
  - { from: ask, on: success, to: done }
`;

/** Runs a machine in one process until it asks, and what is there then. */
async function untilAsked(text: string, given: Outputs) {
  const { clock, first, second } = twoHosts();
  const pipeline = await pipelineOf(text);
  const model = giving(given);
  const live = session({ model, wait: true, clock, host: first });
  const handle = live.start(pipeline, { task: "the task" }, { answers: "any" });
  const open = async (): Promise<readonly OpenRequest[]> => await live.host.requests(handle.runId);
  await eventually(async () => (await open()).length === 1);
  const [request] = await open();
  if (request === undefined) throw new Error("nothing is asked");
  return { clock, second, pipeline, model, live, handle, request, open };
}

fact(21, "a question stops the run, which neither fails nor completes", async () => {
  const { live, handle, request } = await untilAsked(questions(SELF), outputs);
  expect(request).toMatchObject({ kind: "humanState", body: { question: "which color?" } });
  await handle.suspend();
  expect(await handle).toMatchObject({ status: "suspended", waitingFor: [{ requestId: request.requestId }] });
  const events = await eventsOf(live.host, handle.runId);
  const own = events.filter(({ runId }) => runId === handle.runId);
  expect(own.map(({ type }) => type)).not.toContain("run.finished");
  expect(own.map(({ type }) => type)).not.toContain("route.decided");
});

differs(
  22,
  "a row for the pause decides when the answer is there, with the answer, and is recorded like any other",
  async () => {
    const ran = await runFlujo(ASKING, {
      outputs: { before: [{ result: "b" }], use: [{ result: "u" }] },
      answers: ["red"],
    });
    expect(ran).toMatchObject({ status: "completed", state: "done", output: { result: "u" } });
    expect(ran.walk).toEqual(["ask#1 paused", "use#1 completed"]);
    expect(ran.routes).toEqual(["ask -> use", "use -> done"]);
    // The state that the row leads to has the answer, and the context is what it was before the question.
    expect(ran.prompts).toEqual(["before: Start.", "use: Use red, red and red."]);
  },
);

fact(23, "while a question is open, exactly one execution has run", async () => {
  const { handle, model, live } = await untilAsked(questions(SELF), outputs);
  const started = (await eventsOf(live.host, handle.runId)).filter(
    ({ type, runId }) => type === "attempt.started" && runId === handle.runId,
  );
  expect(started.map(({ executionId }) => executionId)).toEqual(["work#1"]);
  expect(promptsOf(model)).toEqual(["prelude: Start the task."]);
  await handle.suspend();
});

fact(29, "a run that waits shows its state, its question and the schema of the answer", async () => {
  const { request, handle, live } = await untilAsked(questions(SELF), outputs);
  expect(request.body).toMatchObject({
    question: "which color?",
    answer: { type: "string" },
    executionId: "work#1",
  });
  await handle.suspend();
  const summary = await live.host.get(handle.runId);
  expect(summary?.end).toBeUndefined();
});

fact(51, "a run that waits is resumed with the answer", async () => {
  for (const rows of ["", SELF]) {
    const ran = await runFlujo(questions(rows), { outputs, answers });
    expect(ran).toMatchObject({ status: "completed", state: "done", output: { result: "made" } });
    expect(ran.asked).toEqual(["which color?", "And which size?"]);
  }
});

fact(52, "an answer that fits its schema is a value of that type, in the context and in conditions", async () => {
  const schemas: readonly (readonly [string, Json, string])[] = [
    ["{ type: number }", 3.5, "context.scratchpad.x == 3.5 && context.scratchpad.x > 3"],
    ["{ type: integer }", 3, "context.scratchpad.x + 1 == 4"],
    ["{ type: boolean }", true, "context.scratchpad.x == true && output"],
    ["{ type: array, items: { type: string } }", ["a"], "output[0] == 'a' && size(context.scratchpad.x) == 1"],
    ["{ type: object, properties: { n: { type: number } } }", { n: 4 }, "output.n == 4 && steps.ask.n == 4"],
  ];
  for (const [schema, answer, when] of schemas) {
    const states = `  a: [{ kind: hitl, name: ask, message: M, input_schema: ${schema}, sink_to: scratchpad.x }]\n  b: []`;
    const rows = `  - { from: a, on: success, to: done, when: "${when}" }\n  - { from: a, on: success, to: failed }\n`;
    expect([when, (await runFlujo(machine(rows, { states }), { answers: [answer] })).state]).toEqual([when, "done"]);
  }
});

fact(53, "two questions of a state are asked one after the other, and each pauses", async () => {
  const ran = await runFlujo(questions(SELF), { outputs, answers });
  expect(ran.walk).toEqual(["work#1 paused", "work#2 paused", "work#3 completed"]);
  expect(ran.routes).toEqual(["work -> work", "work -> work", "work -> done"]);
  expect(ran.asked).toEqual(["which color?", "And which size?"]);
  const waiting = await runFlujo(questions(""), { outputs, answers });
  expect(waiting.walk).toEqual(["work#1 completed"]);
});

fact(54, "an answer updates the context when its state completes", async () => {
  const cases = [
    ["sink_to: scratchpad", { a: 1, b: 2 }, "context.scratchpad == {'a': 1, 'b': 2}"],
    ["updates_context: true", { a: 1 }, "context.scratchpad.a == 1 && context.scratchpad.before == 0"],
    ["updates_context: other", { a: 1 }, "context.other.a == 1 && context.scratchpad == {'before': 0}"],
    ["updates_context: false", { a: 1 }, "context.scratchpad == {'before': 0}"],
  ] as const;
  for (const [field, answer, when] of cases) {
    const states = `  a: [{ kind: hitl, name: ask, message: M, ${field} }]\n  b: []`;
    const rows = `  - { from: a, on: success, to: done, when: "${when}" }\n  - { from: a, on: success, to: failed }\n`;
    const text = machine(rows, { states, more: "context: { scratchpad: { before: 0 } }" });
    expect([field, (await runFlujo(text, { answers: [answer] })).state]).toEqual([field, "done"]);
  }
});

fact(55, "an answer from another process has to fit input_schema: one that does not, answers nothing", async () => {
  for (const [value, state] of [
    [7, "failed"],
    ["red", "done"],
  ] as const) {
    const text = questions(SELF).replace("context.scratchpad.size > 2", "true");
    const { second, handle, request } = await untilAsked(
      text.replace(/ {4}- \{ name: middle[\s\S]*?(?=transitions)/u, ""),
      outputs,
    );
    const { requestId, digest } = request;
    const payload = { kind: "value", value, digest };
    await second.signal(handle.runId, { name: `request/${requestId}`, payload, digest, by: "elsewhere" });
    expect((await handle).state).toBe(state);
  }
  // A schema that is none is a mistake of the file.
  const states = "  a: [{ kind: hitl, name: ask, message: M, input_schema: { type: strng } }]\n  b: []";
  expect(await errorsOf(machine("  - { from: a, on: success, to: done }\n", { states }))).toHaveLength(1);
});

fact(
  57,
  "resume_input is the newest answer of the run, in every step and state, and null before the first one",
  async () => {
    const states = `  a:
    - { name: one, prompt: "[{{ resume_input }}]", tools: [] }
    - { kind: hitl, name: first, message: "[{{ resume_input }}]" }
    - { name: two, prompt: "[{{ resume_input }}]", tools: [] }
    - { kind: hitl, name: second, message: "[{{ resume_input }}]" }
    - { name: three, prompt: "[{{ resume_input }}]", tools: [] }
  b: [{ name: four, prompt: "[{{ resume_input }}]", tools: [] }]
  c: [{ name: five, prompt: "[{{ resume_input }}]", tools: [], sink_to: x }, { name: go, uses: imports.other }]`;
    const rows = `  - { from: a, on: success, to: b }
  - { from: b, on: success, to: c }
  - { from: c, on: success, to: done }
`;
    const files = { "w/other.yaml": 'steps:\n  - { name: six, prompt: "[{{ resume_input }}]", tools: [] }\n' };
    const steps = ["one", "two", "three", "b", "five", "six"];
    const given = Object.fromEntries(steps.map((step) => [step, [{ result: step }]]));
    for (const pause of ["  - { from: a, on: pause, to: a }\n", ""]) {
      const text = machine(`${pause}${rows}`, { states, more: "imports: { other: ./other.yaml }" });
      const ran = await runFlujo(text, { files, outputs: given, answers: ["x", "y"] });
      expect(ran.error).toBeUndefined();
      expect(ran.prompts).toEqual(["one: [null]", "two: [x]", "three: [y]", "b: [y]", "five: [y]", "six: [y]"]);
      expect(ran.asked).toEqual(["[null]", "[x]"]);
    }
    // The first state is no exception, and neither is one that is entered again.
    const first = machine(
      "  - { from: a, on: success, to: b }\n  - { from: b, on: success, to: a }\n  - { from: a, on: failure, to: done }\n",
      {
        states: `  a: [{ name: one, prompt: "[{{ resume_input }}][{{ previous_step }}]", tools: [] }]\n  b: [{ kind: hitl, name: ask, message: "?" }]`,
      },
    );
    const again = await runFlujo(first, { outputs: { one: [{ result: "1" }, { result: "2" }] }, answers: ["x", "y"] });
    expect(again.prompts).toEqual(["one: [null][null]", "one: [x][x]", "one: [y][y]"]);
  },
);

fact(58, "sink_to writes to a path at any depth, and keeps what is beside it", async () => {
  const states = "  a: [{ kind: hitl, name: ask, message: M, sink_to: scratchpad.deep.er.still }]\n  b: []";
  const when = "context.scratchpad == {'deep': {'kept': 1, 'er': {'still': 'x'}}, 'also': 2}";
  const rows = `  - { from: a, on: success, to: done, when: "${when}" }\n  - { from: a, on: success, to: failed }\n`;
  const more = "context: { scratchpad: { deep: { kept: 1 }, also: 2 } }";
  expect((await runFlujo(machine(rows, { states, more }), { answers: ["x"] })).state).toBe("done");
});

fact(
  "L1",
  "a pause that leads to the state itself is resumed and completes, in this process or in another",
  async () => {
    const here = await runFlujo(questions(SELF), { outputs, answers });
    expect(here).toMatchObject({ status: "completed", state: "done", prompts: PROMPTS });

    const { clock, second, pipeline, model, handle } = await untilAsked(questions(SELF), outputs);
    await handle.suspend();
    await handle;
    const asked: PersonRequest[] = [];
    const other = session({ model, clock, host: second, interactors: [answering(answers, asked)] });
    expect(await other.resume(pipeline, handle.runId)).toMatchObject({
      status: "completed",
      state: "done",
      output: { result: "made" },
      stages: [{ executionId: "work#1" }, { executionId: "work#2" }, { executionId: "work#3" }],
    });
    expect(asked.map(({ body }) => body.question)).toEqual(["which color?", "And which size?"]);
    expect(promptsOf(model)).toEqual(PROMPTS);
  },
);

fact("L2", "finished work is not repeated: each agent is asked once, however often its state is entered", async () => {
  // The model has one output for each agent, and fails when it is asked for more.
  const ran = await runFlujo(questions(SELF), { outputs, answers });
  expect(ran.prompts).toEqual(PROMPTS);
  const again = questions(SELF)
    .replace(
      "    - { kind: hitl, name: color",
      "    - { name: second, prompt: P, tools: [] }\n    - { kind: hitl, name: color",
    )
    .replace("{{ previous_step.result }}?", "Which?");
  const more = await runFlujo(again, { outputs: { ...outputs, second: [{ result: "2" }] }, answers });
  expect([more.state, more.prompts.length]).toEqual(["done", 4]);
});
