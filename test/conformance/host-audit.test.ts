import { join } from "node:path";
import type { RunJournal } from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore, verifyJournal } from "@sluice/core/host";
import { openJournalStore } from "@sluice/sqlite";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { completed, endOf, start } from "../support/journal.ts";
import { scratch } from "../support/sqlite-store.ts";

type Leaf = string | number | boolean | null;
interface Place {
  readonly path: readonly (string | number)[];
  readonly value: Leaf;
}

/** A finished run with nested forks, intents, events, a long value and an odd one. */
async function journalsIn(store: JournalStore): Promise<readonly RunJournal[]> {
  const host = createHost(store);
  const options = { onFailure: "settle" as const, failed: () => false, open: { events: [] }, joined: () => [] };
  const task = await start(host, async (steps) => {
    const depth = steps.runId.split("/fan/").length;
    await steps.run("odd", () => ["\ufffd", "é", 1.5, -0, null, { a: { b: [] } }]);
    await steps.run(
      "write",
      ({ event }) => {
        event({ type: "call.finished", data: { callId: "c1" } });
        return "x".repeat(300_000 / depth ** 6);
      },
      {
        open: {
          events: [{ type: "call.started", executionId: "plan#1", attempt: 1, data: { callId: "c1" } }],
          intent: { file: "a" },
        },
      },
    );
    const children = ["a", "b"].map((key) => ({ key, input: { key, depth }, events: [] }));
    if (depth < 3) await steps.runChildren("fan", children, options);
    return completed({ depth, list: [1, "two"] });
  });
  await endOf(task);
  return await host.journal("r1");
}

function leaves(value: unknown, path: readonly (string | number)[] = []): readonly Place[] {
  if (typeof value !== "object" || value === null) {
    return typeof value === "string" || typeof value === "number" || typeof value === "boolean" || value === null
      ? [{ path, value }]
      : [];
  }
  const members: (readonly [string | number, unknown])[] = Array.isArray(value)
    ? [...value.entries()]
    : Object.entries(value);
  return members.flatMap(([key, member]) => leaves(member, [...path, key]));
}

function replaced<T>(value: T, path: readonly (string | number)[], leaf: Leaf): T {
  const copy = structuredClone(value);
  let at: unknown = copy;
  for (const key of path.slice(0, -1)) at = Reflect.get(Object(at), key);
  Reflect.set(Object(at), path.at(-1) ?? "", leaf);
  return copy;
}

/** Another value of the same kind: what an editor, or a bit that flipped, would leave. */
function otherLeaf(value: Leaf): fc.Arbitrary<Leaf> {
  switch (typeof value) {
    case "number":
      return fc.integer().filter((other) => other !== value);
    case "string": {
      const text: string = value;
      const edits = [
        fc.string({ unit: "binary" }),
        fc.nat({ max: text.length }).map((at) => text.slice(0, at)),
        fc
          .nat({ max: text.length })
          .chain((at) =>
            fc.string({ minLength: 1, maxLength: 3 }).map((added) => text.slice(0, at) + added + text.slice(at)),
          ),
        fc.nat({ max: text.length }).map((at) => text.slice(0, at) + text.slice(at + 1)),
        fc.constant(text.replace("\ufffd", "\ud800")),
        fc.constant(text.toUpperCase()),
      ];
      return fc.oneof(...edits).filter((other) => other !== text);
    }
    default:
      return fc.constant(value === true ? false : "other");
  }
}

const stores: Readonly<Record<string, () => JournalStore>> = {
  "in memory": () => createMemoryJournals().connect(),
  SQLite: () => openJournalStore(join(scratch(), "store")),
};

describe.each(Object.entries(stores))("%s", (_name, open) => {
  test("an edit of any value anywhere in a journal is found", async () => {
    const store = open();
    const journals = await journalsIn(store);
    await store.close();
    expect(verifyJournal(journals).faults).toEqual([]);
    const { head } = verifyJournal(journals);
    const places = leaves(journals);
    expect(places.length).toBeGreaterThan(300);
    const edit = fc
      .constantFrom(...places)
      .chain(({ path, value }) => otherLeaf(value).map((other) => ({ path, other })));
    fc.assert(
      fc.property(edit, ({ path, other }) => {
        expect(verifyJournal(replaced(journals, path, other), head).faults).not.toEqual([]);
      }),
      { numRuns: 400 },
    );
  });

  test("records that are removed, added, moved between places or between runs are found", async () => {
    const store = open();
    const journals = await journalsIn(store);
    await store.close();
    const { head } = verifyJournal(journals);
    const place = fc
      .nat({ max: journals.length - 1 })
      .chain((run) =>
        fc.record({ run: fc.constant(run), at: fc.nat({ max: (journals[run]?.records.length ?? 1) - 1 }) }),
      );
    const move = fc.record({ from: place, to: place, keep: fc.boolean(), put: fc.boolean(), claim: fc.boolean() });
    fc.assert(
      fc.property(fc.array(move, { minLength: 1, maxLength: 3 }), (moves) => {
        const changed = journals.map((journal) => ({ ...journal, records: [...journal.records] }));
        for (const { from, to, keep, put } of moves) {
          const source = changed[from.run]?.records;
          const record = keep ? source?.[from.at] : source?.splice(from.at, 1)[0];
          if (put && record !== undefined) changed[to.run]?.records.splice(to.at, 0, record);
        }
        const ids = (each: readonly RunJournal[]): string =>
          JSON.stringify(each.map(({ records }) => records.map(({ hash }) => hash)));
        fc.pre(ids(changed) !== ids(journals));
        // Someone who moves records may also make the row say what is there.
        const claiming = changed.map((journal) => ({
          ...journal,
          claimed: { records: journal.records.length, head: journal.records.at(-1)?.hash ?? "" },
        }));
        for (const each of [changed, claiming]) expect(verifyJournal(each, head).faults).not.toEqual([]);
      }),
      { numRuns: 300 },
    );
  });
});
