import type { JsonObject, PipelineSpec } from "@sluice/core";
import { apply, initialState, legalEvents, type MachineInput, transition } from "@sluice/core/machine";
import { type LoadedWorkflow, writeStatewright } from "@sluice/workflows";
import fc from "fast-check";
import { expect, test } from "vitest";
import { plainDocument } from "../support/plain-document.ts";
import { ANY_NAMES, randomDocument } from "../support/random-documents.ts";
import { loadTexts } from "../support/workflows.ts";

const DOCUMENTS = Number(process.env.SLUICE_TEST_MACHINES ?? 120);
const TIMEOUT = 300_000 + 200 * DOCUMENTS;

const child = {
  id: "child",
  initial: "a",
  states: { a: { allowed_tools: [], on: { GO: "b" } }, b: { type: "final", outcome: "completed" } },
};
const CHILDREN = { "child.json": JSON.stringify(child), "two.json": JSON.stringify({ ...child, id: "two" }) };
const find = async (name: string): Promise<string | undefined> => (name === "child two" ? "two.json" : undefined);
/** What the documents write for the pipelines that they invoke, by key. */
const REFERENCES: Readonly<Record<string, string>> = { child: "./child.json", "child-two": "child two" };

/** Of names that are not ids. */
const IDS: Readonly<Record<string, string>> = {
  "my workflow": "my-workflow",
  "two words": "two-words",
  "check it": "check-it",
  "3": "state",
};

async function load(text: string): Promise<LoadedWorkflow> {
  return await loadTexts("w.json", { "w.json": text, ...CHILDREN }, { find });
}

/** What the machine does with the same things, step by step. */
async function walk(spec: PipelineSpec, moves: readonly Move[]): Promise<readonly unknown[]> {
  const state = initialState(spec, { input: {}, id: "run" });
  const seen: unknown[] = [];
  let input: MachineInput = { kind: "start" };
  for (const move of [...moves, undefined]) {
    const { effect, patch, trace } = await transition(spec, state, input);
    seen.push(JSON.parse(JSON.stringify({ effect, patch, trace })));
    if (effect.kind !== "approve") apply(state, patch);
    if (effect.kind === "end" || move === undefined) break;
    if (effect.kind === "approve" && (input.kind === "event" || input.kind === "children")) {
      input = { kind: "answer", of: input, decision: effect.decision, approved: move.yes };
    } else if (effect.kind === "fanOut") {
      const ended = effect.children.map(({ key }, index) => {
        const both = { key, turns: 1 };
        return move.fails && index === 0
          ? { ...both, status: "failed" as const, code: "model", message: "no" }
          : { ...both, status: "completed" as const, output: { key } };
      });
      input = { kind: "children", ended };
    } else {
      const interrupt = spec.interrupts[move.pick % Math.max(1, spec.interrupts.length)];
      const legal = legalEvents(spec, state.at?.state ?? "");
      const event = legal[move.pick % Math.max(1, legal.length)]?.event ?? "NEXT";
      input =
        move.interrupts && interrupt !== undefined
          ? { kind: "interrupt", name: interrupt.name, path: "src/a.sql" }
          : { kind: "event", event: move.odd ?? event, data: move.data };
    }
  }
  return seen;
}

const move = fc.record({
  pick: fc.nat(40),
  odd: fc.option(fc.constantFrom("unheard of", "toString", "1", "GO"), { freq: 8, nil: undefined }),
  data: fc.dictionary(fc.constantFrom("a", "b", "tags"), fc.constantFrom(null, 0, 1, 2, "a", "pass", ["a"]), {
    maxKeys: 2,
    noNullPrototype: true,
  }),
  yes: fc.boolean(),
  fails: fc.boolean(),
  interrupts: fc.integer({ min: 0, max: 2 }).map((n) => n === 0),
});
type Move = typeof move extends fc.Arbitrary<infer T> ? T : never;

test("a document that was loaded and written again is the same workflow: its fingerprint, its facts and what it decides", {
  timeout: TIMEOUT,
}, async () => {
  const seen = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(
      randomDocument(ANY_NAMES),
      fc.array(move, { minLength: 1, maxLength: 14, size: "max" }),
      async (document: JsonObject, moves) => {
        const first = await load(JSON.stringify(document));
        if (first.pipeline === undefined) throw new Error(JSON.stringify(first.diagnostics));
        const { pipelines, fingerprint } = first.pipeline.spec;
        const references = Object.fromEntries([...pipelines.keys()].map((key) => [key, REFERENCES[key] ?? key]));
        const written = writeStatewright(first.pipeline, { ...first, references });
        if (!("text" in written)) throw new Error(JSON.stringify(written.problems));
        // What the file says is what is written, field by field.
        expect(JSON.parse(written.text)).toEqual(plainDocument(document, (name) => IDS[name] ?? name));
        const again = await load(written.text);
        if (again.pipeline === undefined) throw new Error(JSON.stringify(again.diagnostics));
        expect(again.pipeline.spec.fingerprint).toBe(fingerprint);
        expect(again.meta ?? {}).toEqual(first.meta ?? {});
        expect(again.properties).toEqual(first.properties);
        expect(
          again.diagnostics
            .map(({ rule }) => rule)
            .filter((rule) => rule !== "final-outcome")
            .toSorted(),
        ).toEqual(
          first.diagnostics
            .map(({ rule }) => rule)
            .filter((rule) => !LOST.has(rule))
            .toSorted(),
        );
        const walked = await walk(first.pipeline.spec, moves);
        expect(await walk(again.pipeline.spec, moves)).toEqual(walked);
        for (const step of walked) {
          const kind = /"effect":\{"kind":"(\w+)"/u.exec(JSON.stringify(step))?.[1] ?? "";
          seen.set(kind, (seen.get(kind) ?? 0) + 1);
        }
        // Writing is at its end: what was written is written the same.
        expect(writeStatewright(again.pipeline, { ...again, references })).toEqual(written);
      },
    ),
    { numRuns: DOCUMENTS },
  );
  for (const kind of ["enter", "fanOut", "end", "stay", "approve", "return"])
    expect(seen.get(kind) ?? 0, kind).toBeGreaterThan(DOCUMENTS / 30);
});
/** Of what a pipeline does not keep: a final state's unwritten outcome, and a message that nobody is asked. */
const LOST: ReadonlySet<string> = new Set(["final-outcome", "approval-message"]);
