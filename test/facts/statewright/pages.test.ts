import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isJsonObject, type Json, type JsonObject } from "@sluice/core";
import type { GuardOperator } from "@sluice/workflows";
import { describe, expect, test } from "vitest";
import { blocksOf, digestOf, type PageBlock } from "../../support/page-blocks.ts";
import { documentOf, machineOf, oneState, play, send, systemOf } from "../../support/statewright.ts";
import { loadTexts } from "../../support/workflows.ts";

// Every block of the pages that describe Statewright documents, unchanged. What is no whole document stands in a wrapper.

const fixtures = new URL("../../fixtures/workflows/statewright/", import.meta.url);
const textOf = (name: string): string => readFileSync(new URL(name, fixtures), "utf8");

interface Page {
  readonly name: string;
  readonly file: string;
  /** Of all blocks in braces on the page, by `digestOf`. */
  readonly digest: string;
}
const PAGES: readonly Page[] = [
  {
    name: "Core Concepts",
    file: "core-concepts",
    digest: "492082e944c0db11d2507b080a46fe5563ee1e565e057f665b3a17f3957ea9ef",
  },
  {
    name: "Workflow Schema Reference",
    file: "workflow-schema",
    digest: "a2b321e105eed051a5e3872c62dc30856ab5394f7c9ac74db4fe84d33c4bc026",
  },
];

/** A folder with the pages as texts; the pages themselves are no part of this repository. */
const given = process.env.STATEWRIGHT_PAGES;

describe.each(PAGES)("$name", ({ file, digest }) => {
  const blocks: readonly PageBlock[] = JSON.parse(textOf(`blocks-of-${file}.json`));

  test("has all of its blocks here", () => {
    expect(digestOf(blocks)).toBe(digest);
  });

  if (given !== undefined)
    test("has the blocks of the page in the folder STATEWRIGHT_PAGES", () => {
      expect(blocksOf(readFileSync(`${given}/statewright-${file}.txt`, "utf8"))).toEqual(blocks);
    });

  for (const { line, block } of blocks) {
    const fields = isJsonObject(block) ? block : {};
    if ("event" in fields) test(`line ${line}: the call moves a machine that has the event`, () => callMoves(fields));
    else if ("op" in fields) test(`line ${line}: the guard holds as the page says`, () => guardHolds(fields));
    else if ("test_result" in fields) test(`line ${line}: the data becomes the context`, () => dataMerges(fields));
    else test(`line ${line}: the fragment loads in a document that has what it names`, () => fragmentLoads(fields));
  }
});

test("the complete documents are blocks of the reference", () => {
  const blocks: readonly PageBlock[] = JSON.parse(textOf("blocks-of-workflow-schema.json"));
  const documents = ["review.json", "deploy.json", "deploy-full.json"].map((name): Json => JSON.parse(textOf(name)));
  const at = [32, 46, 373].map((line) => blocks.find((block) => block.line === line)?.block);
  expect(documents).toEqual(at);
});

// Two blocks are no data: what an agent reads on every turn, and a call with an event that the state does not name.

test("an agent reads its phase, its tools, its transitions and its instructions", async () => {
  const state = {
    allowed_tools: ["Read", "Bash"],
    instructions: "Run the test suite. If all tests pass, transition DEPLOY.",
    on: { DEPLOY: "deploying", FAIL: "failed" },
  };
  const states = { testing: state, deploying: { allowed_tools: [], on: { DONE: "done" } } };
  const document = documentOf(states, { initial: "testing" });
  const { heard } = await play(document, { testing: [send("FAIL")] });
  const phase = systemOf(heard[0]);
  for (const words of [
    "Phase: testing",
    "Read, Bash",
    "DEPLOY -> deploying",
    "FAIL -> failed",
    "Run the test suite. If all tests pass, transition DEPLOY.",
  ])
    expect(phase).toContain(words);
});

test("statewright_transition(event='GO') leads to safe_next", async () => {
  const planning = { allowed_tools: ["Read"], safe_next: "b", on: { READY: "b", FAIL: "failed" } };
  const walk = await machineOf(documentOf({ a: planning, b: { allowed_tools: [], on: { DONE: "done" } } }));
  await walk.send("GO");
  expect(walk.at()).toBe("b");
});

test("data of an event becomes the context that the next state's guards check", async () => {
  const context = { test_result: "pending", attempts: 0 };
  const guards = { passed: { field: "test_result", op: "eq", value: "pass" } };
  const states = {
    a: { allowed_tools: [], on: { TEST_DONE: "b" } },
    b: { allowed_tools: [], on: { DEPLOY: { target: "done", guard: "passed" } } },
  };
  const walk = await machineOf(documentOf(states, { context, guards }));
  await walk.send("TEST_DONE", { test_result: "pass", attempts: 1 });
  expect(walk.context()).toEqual({ test_result: "pass", attempts: 1 });
  expect((await walk.send("DEPLOY")).effect.kind).toBe("end");
});

async function callMoves({ event, data = {} }: JsonObject): Promise<void> {
  if (typeof event !== "string" || !isJsonObject(data)) throw new Error("it is no call");
  const walk = await machineOf(oneState({ on: { [event]: "a", DONE: "done", FAIL: "failed" } }));
  await walk.send(event, data);
  expect([walk.moves(), walk.context()]).toEqual([1, data]);
}

async function dataMerges(data: JsonObject): Promise<void> {
  const walk = await machineOf(oneState({ on: { SET: "a", DONE: "done", FAIL: "failed" } }));
  await walk.send("SET", data);
  expect(walk.context()).toEqual(data);
}

async function guardHolds(guard: JsonObject): Promise<void> {
  const found = Object.entries(fieldsFor(guard.value ?? null)).find(([op]) => op === guard.op);
  if (found === undefined || typeof guard.field !== "string") throw new Error("it is no guard");
  const [, [holds, fails]] = found;
  for (const value of [holds, fails]) {
    const on = { GO: { target: "done", guard: "it" }, SET: "a", FAIL: "failed" };
    const walk = await machineOf(oneState({ on }, { guards: { it: guard } }));
    await walk.send("SET", { [guard.field]: value });
    expect((await walk.send("GO")).effect.kind, JSON.stringify(value)).toBe(value === holds ? "end" : "stay");
  }
}

/** By operator, a value of the field for which a guard with this value holds, and one for which it does not. */
function fieldsFor(value: Json): Readonly<Record<GuardOperator, readonly [holds: Json, fails: Json]>> {
  const number = typeof value === "number" ? value : 0;
  return {
    eq: [value, "another"],
    neq: ["another", value],
    gt: [number + 1, number],
    gte: [number, number - 1],
    lt: [number - 1, number],
    lte: [number, number + 1],
    in: [Array.isArray(value) ? (value[0] ?? null) : null, "another"],
    contains: [["draft", value], ["draft"]],
    exists: ["x", null],
    not_exists: [null, "x"],
  };
}

async function fragmentLoads(fragment: JsonObject): Promise<void> {
  const child = fileURLToPath(new URL("review.json", fixtures));
  const document = JSON.stringify(wrapped(fragment));
  const loaded = await loadTexts(
    "w.json",
    { "w.json": document, [child]: textOf("review.json") },
    { find: async (name) => (name === "test-suite" ? child : undefined) },
  );
  expect(loaded.diagnostics.filter(({ severity }) => severity === "error")).toEqual([]);
  expect(loaded.pipeline).toBeDefined();
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? Object.fromEntries(Object.entries(value)) : {};
}

/**
 * The document around a fragment. A fragment is a part of a document, a state's `on`, or states. The run starts in `start`, which
 * leads to every state; states and guards that the fragment names and does not have are added: branches with a way to their
 * terminal, handlers with `$return`, the others final.
 */
function wrapped(fragment: Fields): object {
  const parts = ["$schema", "id", "initial", "context", "guards", "interrupts", "meta", "states"];
  const isDocument = Object.keys(fragment).some((key) => parts.includes(key));
  const own = isDocument
    ? fieldsOf(fragment.states)
    : "on" in fragment
      ? { given: { allowed_tools: [], ...fragment } }
      : fragment;
  const states: Record<string, unknown> = { ...own };
  const guards: Record<string, unknown> = { ...fieldsOf(fragment.guards) };
  const isMissing = (name: unknown): name is string =>
    typeof name === "string" && name !== "$return" && !(name in states);
  const look = (value: unknown): void => {
    if (Array.isArray(value)) for (const entry of value) look(entry);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return;
    const fields = fieldsOf(value);
    const { initial, terminal, guard, guards: names, target, trigger } = fields;
    if (isMissing(initial) && terminal !== undefined) states[initial] = { allowed_tools: [], on: { DONE: terminal } };
    if (isMissing(target) && trigger !== undefined) states[target] = { allowed_tools: [], on: { OK: "$return" } };
    for (const name of [guard, ...(Array.isArray(names) ? names : [])])
      if (typeof name === "string") guards[name] ??= { field: name, op: "exists" };
    for (const [key, member] of Object.entries(fields)) {
      look(member);
      const leads = ["target", "on_complete", "on_fail", "safe_next", "terminal"].includes(key);
      if (leads && isMissing(member)) states[member] = { type: "final", outcome: "completed" };
      if (key !== "on") continue;
      for (const next of Object.values(fieldsOf(member)))
        if (isMissing(next)) states[next] = { type: "final", outcome: "completed" };
    }
  };
  look({ ...fragment, states: own });
  states.end ??= { type: "final", outcome: "completed" };
  const first = fragment.initial;
  const start = { allowed_tools: [], on: Object.fromEntries(Object.keys(states).map((name) => [`TO_${name}`, name])) };
  const initial = typeof first === "string" && first in own ? {} : { initial: "start", states: { ...states, start } };
  return { id: "fragment", states, ...(isDocument ? fragment : {}), guards, ...initial };
}
