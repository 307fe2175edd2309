import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { callbackInteractor, type Json, type JsonObject, type RunJournal } from "@sluice/core";
import type { ScriptedTurn } from "@sluice/stages";
import { againstRuns, type LoadedWorkflow, trialLines } from "@sluice/workflows";
import { expect, test } from "vitest";
import { session, type TestSessionOptions } from "../support/run-kit.ts";
import { type Talker, talker } from "../support/talker.ts";
import { tempFolder } from "../support/tools.ts";
import { loadDocument } from "../support/workflows.ts";

// Runs with a scripted model, then other versions of their documents on what was recorded.

const send = (event: string, data?: JsonObject): ScriptedTurn => ({
  calls: [{ tool: "transition", input: data === undefined ? { event } : { event, data } }],
});
const call = (tool: string, input: Json): ScriptedTurn => ({ calls: [{ tool, input }] });

function script(turns: Readonly<Record<string, readonly ScriptedTurn[]>>): Talker {
  const next = new Map<string, number>();
  return talker(({ stage }) => {
    const at = next.get(stage) ?? 0;
    next.set(stage, at + 1);
    return turns[stage]?.[at] ?? {};
  });
}
function specOf({ pipeline, diagnostics }: LoadedWorkflow) {
  if (pipeline === undefined) throw new Error(JSON.stringify(diagnostics));
  return pipeline;
}

/** The journals of a run of a document in a folder with `a.txt`, of which `file` is the path. */
async function recorded(
  document: object,
  turns: (file: string) => Readonly<Record<string, readonly ScriptedTurn[]>>,
  options: TestSessionOptions = {},
): Promise<readonly RunJournal[]> {
  const cwd = tempFolder().root;
  const file = join(cwd, "a.txt");
  writeFileSync(file, "one\n");
  const live = session({ model: script(turns(file)), cwd, ...options });
  const result = await live.run(specOf(await loadDocument(document)), { task: "Go." });
  return await live.host.journal(result.runId);
}

const END = { done: { type: "final" }, failed: { type: "final" } };
const work = (allowed_tools: readonly string[] | undefined, on: object = { DONE: "done", FAIL: "failed" }): object => ({
  ...(allowed_tools === undefined ? {} : { allowed_tools }),
  on,
});
const documentOf = (states: object, more: object = {}): object => ({
  id: "w",
  initial: "work",
  states: { ...states, ...END },
  ...more,
});

test("each recorded call is allowed, asked about or denied by the envelopes of another version", async () => {
  const deny = callbackInteractor("person", ({ body }) => ({
    kind: JSON.stringify(body).includes("Glob") ? "deny" : "approve",
  }));
  const journals = await recorded(
    documentOf({ work: work(["Read"]) }),
    (file) => ({
      work: [
        call("Read", { file_path: file }),
        call("Edit", { file_path: file, old_string: "one", new_string: "two" }),
        call("Glob", { pattern: "*" }),
        call("Read", {}),
        send("DONE"),
      ],
    }),
    { interactors: [deny] },
  );
  const trial = async (state: object) => {
    const [one] = await againstRuns(specOf(await loadDocument(documentOf({ work: state }))).spec, [journals]);
    return { ...one, calls: one?.calls.map(({ tool, was, now, changed }) => [tool, was, now, changed]) };
  };
  const same = await trial(work(["Read"]));
  expect(same).toMatchObject({ pipeline: "w", unjudged: 1, routes: [], decisions: 1, unknownStates: [] });
  expect(same.calls).toEqual([
    ["Read", "allowed", "allowed", false],
    ["Edit", "granted", "asked", false],
    ["Glob", "refused", "asked", false],
  ]);
  expect((await trial(work(["Edit", "Glob(src/**)"]))).calls).toEqual([
    ["Read", "allowed", "asked", true],
    ["Edit", "granted", "allowed", true],
    ["Glob", "refused", "asked", false],
  ]);
  // The session's mode decides where there is no envelope; in mode `ask`, built-in reads are allowed.
  expect((await trial(work(undefined))).calls).toEqual([
    ["Read", "allowed", "allowed", false],
    ["Edit", "granted", "asked", false],
    ["Glob", "refused", "allowed", true],
  ]);
  expect((await trial({ ...work(["Read", "Edit", "Glob"]), max_iterations: 1 })).calls).toEqual([
    ["Read", "allowed", "allowed", false],
    ["Edit", "granted", "denied", true],
    ["Glob", "refused", "denied", true],
  ]);
});

test("routes that would differ are named, and the walk stays on the recorded path", async () => {
  const guards = (value: number): object => ({
    guards: { enough: { field: "score", op: "gte", value } },
    context: { score: 0 },
  });
  const review = { OK: { target: "done", guard: "enough" }, AGAIN: "work", FAIL: "failed" };
  const states = (on: object): object => ({ work: work(["Read"], { READY: "review" }), review: work([], on) });
  const journals = await recorded(documentOf(states(review), guards(5)), () => ({
    work: [send("READY", { score: 3 }), send("READY", { score: 7 })],
    review: [send("OK"), send("AGAIN"), send("OK")],
  }));
  const trial = async (document: object) => await againstRuns(specOf(await loadDocument(document)).spec, [journals]);
  expect(await trial(documentOf(states(review), guards(5)))).toMatchObject([{ routes: [], decisions: 5 }]);
  const strict = await trial(documentOf(states(review), guards(9)));
  expect(trialLines(strict).slice(1)).toEqual(["  review#2 event OK: led to done, would lead to refused"]);
  const lax = await trial(
    documentOf(states({ ...review, AGAIN: { target: "work", requires_approval: true } }), guards(1)),
  );
  expect(lax[0]?.routes.map(({ executionId, was, now }) => [executionId, was, now])).toEqual([
    ["review#1", "refused", "done"],
    ["review#1", "work", "work, with an approval"],
  ]);
  const other = await trial(documentOf({ work: work([], { READY: "done", FAIL: "failed" }) }));
  expect(other).toMatchObject([
    {
      routes: [
        { executionId: "work#1", now: "done" },
        { executionId: "work#2", now: "done" },
      ],
      unknownStates: ["review"],
    },
  ]);
});

test("approvals, interrupts and branches of a run are on its path", async () => {
  const branch = { initial: "lint", terminal: "linted" };
  const states = {
    work: work(["Read", "Edit"], {
      GO: { fork: { branches: { one: branch }, on_complete: "ship", on_fail: "failed" } },
    }),
    lint: work(["Read"], { OK: { target: "linted", guard: "audited" }, BAD: "failed" }),
    linted: { type: "final", outcome: "completed" },
    ship: work([], { SHIP: { target: "done", guard: "audited", requires_approval: true }, FAIL: "failed" }),
    audit: work(["Read"], { OK: "$return", FAIL: "failed" }),
  };
  const more = {
    guards: { audited: { field: "audited", op: "eq", value: true } },
    interrupts: { changed: { trigger: { file_pattern: "*.txt" }, target: "audit" } },
  };
  const journals = await recorded(
    documentOf(states, more),
    (file) => ({
      work: [
        call("Read", { file_path: file }),
        call("Edit", { file_path: file, old_string: "one", new_string: "two" }),
        send("GO"),
      ],
      audit: [send("OK", { audited: true })],
      lint: [call("Read", { file_path: file }), send("OK")],
      ship: [send("SHIP")],
    }),
    { interactors: [callbackInteractor("person", () => ({ kind: "approve" }))] },
  );
  expect(journals.at(0)?.end?.status).toBe("completed");
  const [same] = await againstRuns(specOf(await loadDocument(documentOf(states, more))).spec, [journals]);
  expect(same).toMatchObject({ routes: [], decisions: 4, unknownStates: [] });
  expect(same?.calls.map(({ executionId, tool, now }) => [executionId, tool, now])).toEqual([
    ["work#1", "Read", "allowed"],
    ["work#1", "Edit", "allowed"],
    ["lint#1", "Read", "allowed"],
  ]);
  const changed = {
    ...states,
    lint: work([], { OK: "linted", BAD: "failed" }),
    audit: work(["Read"], { OK: "failed", BACK: "$return" }),
  };
  const [other] = await againstRuns(specOf(await loadDocument(documentOf(changed, more))).spec, [journals]);
  expect(other?.routes.map(({ executionId, was, now }) => [executionId, was, now])).toEqual([
    ["audit#1", "back to the interrupted state", "failed"],
  ]);
  expect(trialLines(other === undefined ? [] : [other])).toHaveLength(3);
});

test("a journal that does not begin with its start is left out", async () => {
  const { spec } = specOf(await loadDocument(documentOf({ work: work([]) })));
  const cut: RunJournal = { runId: "r1", input: null, records: [], claimed: { records: 0, head: "" } };
  expect(await againstRuns(spec, [[], [cut]])).toEqual([]);
});
