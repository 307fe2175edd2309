import { expect } from "vitest";
import { billedModel } from "../../support/billed-model.ts";
import { differs, machine, ROWS, runFlujo } from "../../support/flujo.ts";

// Caps on tokens and money. There are no quotas that are split: a run and all its children have one budget.

const STATES = `  a: [{ name: one, prompt: P, tools: [] }, { name: two, prompt: P, tools: [] }]
  b: [{ name: three, prompt: P, tools: [] }]`;
const NO_FAILURE = ROWS.split("\n").slice(0, 2).join("\n");
const spending = (input: number) =>
  billedModel(() => ({ kind: "answer", tool: "submit", input: { result: "x" }, used: { input, output: 10 } }));

differs(63, "a child that reaches a cap of tokens or of money fails its state: no other step of it runs", async () => {
  const caps = ["max_tokens: 20000", "max_cost_usd: 20"] as const;
  for (const cap of caps) {
    const model = spending(30_000);
    const prices = { "billed/model": { input: 1000, output: 1000 } };
    const text = machine(NO_FAILURE, { states: STATES, more: `limits: { ${cap} }` });
    const ran = await runFlujo(text, { options: { model, prices } });
    expect(ran).toMatchObject({ status: "failed", state: undefined, walk: ["a#1 failed"] });
    expect(ran.events.some(({ type }) => type === "limit.reached")).toBe(true);
    expect(model.asked.map(({ stage }) => stage)).toEqual(["one"]);
  }
  const handled = await runFlujo(machine(ROWS, { states: STATES, more: "limits: { max_tokens: 20000 }" }), {
    options: { model: spending(30_000) },
  });
  expect(handled).toMatchObject({ status: "failed", state: "failed", routes: ["a -> failed"] });
});

differs(64, "a call that the rest of the budget may not cover is not made", async () => {
  const model = spending(15_000);
  const text = machine(NO_FAILURE, { states: STATES, more: "limits: { max_tokens: 20000 }" });
  const ran = await runFlujo(text, { options: { model } });
  expect(ran).toMatchObject({ status: "failed", walk: ["a#1 failed"] });
  expect(ran.error?.message).toContain("two failed");
  expect(ran.result.usage.inputTokens).toBe(15_000);
  expect(model.asked.map(({ stage }) => stage)).toEqual(["one"]);
});

differs(65, "nothing is split: what one child leaves, the next one may use", async () => {
  const model = spending(300);
  const text = machine(ROWS, { states: STATES, more: "limits: { max_tokens: 20000 }" });
  const ran = await runFlujo(text, { options: { model } });
  expect(ran).toMatchObject({ status: "completed", state: "done" });
  expect(ran.result.usage).toMatchObject({ inputTokens: 900, outputTokens: 30 });
});
