import type { Answer } from "@sluice/core";
import { expect } from "vitest";
import { asking, feedbackOf, type Written, write } from "../../support/authored.ts";
import { defect, fact, ours } from "../../support/duet.ts";
import { pipelineOf } from "../../support/statewright.ts";
import { loadDocument, loadTexts, ruleLines } from "../../support/workflows.ts";

// Definitions that a model writes, and the same definitions in files.

const final = { type: "final" };
const on = { success: "done" };
const kinds = ["agent", "human", "timer", "poll", "script"] as const;
const of = (a: object, more: object = {}) => ({ id: "w", initial: "a", states: { a, done: final }, ...more });
const asks = (human: object) => of({ human: { question: "?", ...human }, on });
const polls = (every: unknown) => of({ poll: { command: ["true"], every, max_attempts: 2 }, on });
const sleeps = (timer: object) => of({ timer, on });
const rejects = { person: (): Answer => ({ kind: "value", value: "reject" }) };

/** Lets a model write this document up to three times; a person rejects what is accepted. */
async function written(document: unknown, floor: "15m" | "30s" = "15m"): Promise<Written> {
  return await write(
    [document, document, document],
    { allow: { tools: [], commands: [["true"]], kinds, floor } },
    rejects,
  );
}
const accepts = async (document: unknown, floor?: "15m" | "30s"): Promise<boolean> =>
  (await written(document, floor)).asked.length === 1;
/** What the model reads about a document that is refused. */
async function refusal(document: unknown): Promise<string> {
  const made = await written(document);
  expect(made.asked).toEqual([]);
  return feedbackOf(made);
}

fact(1, "a model that creates a definition names its states and the first of them, which ends its work", async () => {
  const made = await write([asking]);
  expect(made.model.heard).toHaveLength(1);
  expect(made.output).toMatchObject({ pipeline: "asking", output: "yes" });
});

fact(2, "failed and cancelled are there although the definition does not have them", async () => {
  expect(await accepts(of({ human: { question: "?" }, on: { success: "done", failure: "failed" } }))).toBe(true);
  const loaded = await loadDocument(of({ human: { question: "?" }, on: { success: "done", failure: "cancelled" } }));
  expect(pipelineOf(loaded).spec.states.get("cancelled")?.final).toEqual({ outcome: "cancelled" });
});

fact(3, "a state of the definition's own with such a name is kept", async () => {
  const own = {
    ...of({ human: { question: "?" }, on: { success: "done", failure: "failed" } }),
    states: {
      a: { human: { question: "?" }, on: { success: "done", failure: "failed" } },
      done: final,
      failed: { ...final, outcome: "cancelled" },
    },
  };
  expect(await accepts(own)).toBe(true);
  expect(pipelineOf(await loadDocument(own)).spec.states.get("failed")?.final).toEqual({ outcome: "cancelled" });
});

fact(4, "a definition that cannot complete is refused", async () => {
  const stuck = { id: "w", initial: "a", states: { a: { human: { question: "?" }, on: { success: "failed" } } } };
  expect(await refusal(stuck)).toContain("no route leads to a completed end");
  expect(ruleLines(await loadDocument(stuck))).toEqual(["definition states"]);
});

ours(5, "states of files have no schema of their input; an invalid schema of an answer is refused", async () => {
  expect(await accepts(asks({ answer: { type: "boolean" } }))).toBe(true);
  expect(await refusal(asks({ answer: { type: "bool" } }))).toContain("answer");
});

ours(6, "and so is one that is invalid deep inside", async () => {
  const nested = { type: "object", properties: { list: { type: "array", items: { type: "bool" } } } };
  expect(await refusal(asks({ answer: nested }))).toContain("answer");
});

fact(7, "a poll needs a time above 0 between its attempts", async () => {
  for (const every of [undefined, 0, -1, "0s", "", null]) expect(await accepts(polls(every))).toBe(false);
});

ours(8, "the floor of what a model schedules is 15 minutes, or what its author sets: at least 30 seconds", async () => {
  expect(await accepts(polls("14m"))).toBe(false);
  expect(await accepts(polls("29s"), "30s")).toBe(false);
  expect(await accepts(sleeps({ for: "29s" }), "30s")).toBe(false);
});

fact(9, "a time of exactly the floor is accepted", async () => {
  expect(await accepts(polls("15m"))).toBe(true);
  expect(await accepts(polls("30s"), "30s")).toBe(true);
  expect(await accepts(sleeps({ for: "30s" }), "30s")).toBe(true);
});

fact(10, "a timer does not wake sooner than the floor", async () => {
  expect(await accepts(sleeps({ until: new Date(1_000 + 899_999).toISOString() }))).toBe(false);
  expect(await accepts(sleeps({ until: new Date(1_000 + 900_000).toISOString() }))).toBe(true);
});

fact(11, "a time that is not finite is refused", async () => {
  for (const until of ["Infinity", "NaN", "1e400"]) expect(await accepts(sleeps({ until }))).toBe(false);
});

ours(12, "a command that a model writes runs in the workspace: it names no folder, be it there or not", async () => {
  const script = (cwd: object) => of({ script: { command: ["true"], ...cwd }, on });
  expect(await accepts(script({}))).toBe(true);
  expect(await accepts(script({ cwd: "missing" }))).toBe(false);
});

ours(13, "and nothing overrides it: a definition has no overrides", async () => {
  const script = (cwd: string) => of({ script: { command: ["true"], cwd }, on });
  expect(await accepts(script("."))).toBe(false);
  expect(await accepts({ ...asking, override: { state: "ask" } })).toBe(false);
});

fact(17, "the tool that creates a definition is only there while one is written", async () => {
  const working = of({ allowed_tools: [], on: { DONE: "done" } });
  const say = () => ({ calls: [{ tool: "transition", input: { event: "DONE" } }] });
  const { model, output } = await write([working], {}, { say });
  expect(output).toMatchObject({ pipeline: "w" });
  expect(model.heard.map(({ tools }) => tools)).toEqual([["create_pipeline"], ["get_state", "transition"]]);
});

defect("D4", "a first state that does not exist is found when the definition is checked", async () => {
  expect(await refusal({ ...of({ human: { question: "?" }, on }), initial: "b" })).toContain("There is no state");
});

defect("D5", "two states of one name are refused", async () => {
  const text = `id: w
initial: a
states:
  a: { human: { question: "?" }, on: { success: done } }
  a: { timer: { for: 1d }, on: { success: done } }
  done: { type: final }
`;
  expect(ruleLines(await loadTexts("w.yaml", { "w.yaml": text }))).toEqual(["duplicate-key "]);
});

defect(
  "D6",
  "a field that a definition does not have is refused, and no kind is hidden behind another one",
  async () => {
    for (const more of [
      { model: "opus" },
      { kind: "script", command: "id" },
      { override: {} },
      { script: { shell: "id" } },
    ])
      expect(await accepts(of({ allowed_tools: [], on: { DONE: "done" }, ...more }))).toBe(false);
  },
);

defect("D7", "the floor holds for every field that schedules, in every unit", async () => {
  for (const every of [1, 899_999, "899s", "14.99m", "0.2h", "1ms"]) expect(await accepts(polls(every))).toBe(false);
  for (const length of [1, 899_999, "899s", "14.99m", "0.2h"])
    expect(await accepts(sleeps({ for: length }))).toBe(false);
  for (const until of [1, 899_999, "899999", "1970-01-01T00:14:00Z"])
    expect(await accepts(sleeps({ until }))).toBe(false);
});

defect("D17", "a definition in a file is checked as one that a model writes, and has the same ends", async () => {
  const broken: readonly object[] = [
    { ...of({ human: { question: "?" }, on }), initial: "b" },
    { id: "w", initial: "a", states: { a: { human: { question: "?" }, on: { success: "failed" } } } },
    asks({ answer: { type: "bool" } }),
    polls(0),
    sleeps({ until: "NaN" }),
    of({ allowed_tools: [], on: { DONE: "dnoe" } }),
  ];
  for (const document of broken) {
    expect((await loadDocument(document)).pipeline).toBeUndefined();
    expect(await accepts(document)).toBe(false);
  }
  const sound = of({ human: { question: "?" }, on: { success: "done", failure: "failed" } });
  expect(pipelineOf(await loadDocument(sound)).spec.states.get("failed")?.final).toEqual({ outcome: "failed" });
});
