import { final, type JsonObject } from "@sluice/core";
import { router } from "@sluice/stages";
import { expect, test } from "vitest";
import { completed, type Definition, effectOf, enteredBy, failed, result, started } from "../support/machine-kit.ts";
import { work } from "../support/run-kit.ts";

// A state that chooses what follows, one transition after the other. It is `a`.

const fallback = { to: "b", input: { calm: true } } as const;
const choosing = (own: { readonly fallback?: typeof fallback } = {}) =>
  router({ targets: ["b", "ok"], prompt: "Choose.", ...own });
const stages = { a: choosing(), b: work(), c: work(), ok: final("completed") };
const transitions: Definition["transitions"] = [
  { from: "b", on: "success", to: "a" },
  { from: "a", on: "skipped", to: "c" },
  { from: "c", on: "success", to: "ok" },
];
const machine = (more: Partial<Definition> = {}) => started({ stages, transitions, ...more });

test.each<[JsonObject, string]>([
  [{ end: "completed" }, "it ended the run, but only an orchestrator may do that"],
  [{ end: "failed", reason: "no way" }, "it ended the run, but only an orchestrator may do that"],
  [{ return: true }, 'a choice has no "return"'],
])("a router cannot choose %j", async (choice, why) => {
  const { step } = await machine();
  const { trace } = await step(completed(choice));
  expect(trace.rejected).toBe(`the choice of a cannot be followed: ${why}`);
});

test("a router that fails takes its fallback each time", async () => {
  const { step, state } = await machine({ stages: { ...stages, a: choosing({ fallback }) } });
  for (const hops of [1, 3]) {
    const { patch } = await step(failed("no choice"));
    expect(patch).toStrictEqual({
      turns: [{ state: "a", turns: 2 }],
      hops: 1,
      enter: { state: "b", input: { calm: true } },
    });
    expect(state.hops).toBe(hops);
    await step(completed(1));
  }
});

test("a router that is skipped takes no fallback", async () => {
  const { step } = await machine({ stages: { ...stages, a: choosing({ fallback }) } });
  expect(enteredBy(await step(result({ status: "skipped" })))).toBe("c");
});

test("a router that handles an interrupt and fails ends the run", async () => {
  const { step } = await machine({ initial: "b", interrupts: { any: { files: "**", target: "a" } } });
  await step({ kind: "interrupt", name: "any", path: "x" });
  expect(effectOf(await step(failed("no choice")), "end").end).toMatchObject({ status: "failed", code: "tool" });
});
