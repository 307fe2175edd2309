import { isSluiceError, type JournalRecord, type Json, type JsonObject } from "@sluice/core";
import { createMemoryJournals, GENESIS, hashRecord, type JournalStore } from "@sluice/core/host";
import { describe, expect, test } from "vitest";
import type { EventDraft } from "../../packages/core/src/journal/events.ts";
import {
  appendRecord,
  createIncarnations,
  draftCommit,
  genesisPosition,
  type RecordDraft,
  type RunPosition,
  readCost,
  readEvents,
  toRecordedValue,
  type UnhashedRecord,
  writeEvents,
} from "../../packages/core/src/journal/record.ts";
import { extendedData, redactedJson, redactedParts, sharedData } from "../../packages/core/src/journal/redaction.ts";
import { handClock } from "../support/hand-clock.ts";
import { changed } from "../support/journal.ts";

const unhashed: UnhashedRecord = {
  seq: 3,
  ordinal: 1,
  stepId: "plan#1/a1/enter",
  phase: "done",
  incarnation: "i1",
  value: '{"a":1}',
  events: "[]",
};
const record = (events: string): JournalRecord => ({ ...unhashed, events, hash: "" });
const clock = handClock();

function draft(events: readonly EventDraft[], more: Partial<RecordDraft> = {}): RecordDraft {
  return { ordinal: 0, stepId: "s", phase: "done", value: "null", events, ...more };
}
const commitOf = (events: readonly EventDraft[]) => draftCommit(genesisPosition("r1", "i1"), draft(events), clock);
const codeOf = (thrown: unknown): readonly string[] =>
  isSluiceError(thrown) ? [thrown.class, thrown.code] : [String(thrown)];
function thrownBy(fn: () => unknown): readonly string[] {
  try {
    fn();
  } catch (thrown) {
    return codeOf(thrown);
  }
  return [];
}

describe("the hash of a record", () => {
  test("is the same in every version, or journals of older ones would not verify", () => {
    expect(GENESIS).toBe("sluice-journal-1");
    expect(hashRecord(GENESIS, "r1", unhashed)).toBe(
      "9e5e1705101e0df33d127c620e73c583d68873460f06188dfd981ec87683cade",
    );
    expect(hashRecord("", "r1", { ...unhashed, value: "" })).toBe(
      "b881ba0aa61b97abf2d965eb188ad8553e282f5684c2032e0679c4ef909b8b5b",
    );
  });

  test("tells fields apart whose texts add up to the same", () => {
    const apart = { ...unhashed, stepId: "ab", phase: "open" as const, incarnation: "c", events: "d" };
    const hashes = [
      hashRecord("x", "r1", apart),
      hashRecord("xr", "1", apart),
      hashRecord("x", "r13", { ...apart, seq: 1 }),
      hashRecord("x", "r1", { ...apart, seq: 31, ordinal: 1 }),
      hashRecord("x", "r1", { ...apart, seq: 3, ordinal: 11 }),
      hashRecord("x", "r1", { ...apart, incarnation: "", events: "cd" }),
      hashRecord("x", "r1", { ...apart, incarnation: "cd", events: "" }),
    ];
    expect(new Set(hashes).size).toBe(hashes.length);
  });
});

describe("the events of a record", () => {
  const drafts: readonly EventDraft[] = [
    { type: "run.started", data: {} },
    { type: "stage.init", executionId: "plan#1", attempt: 1, data: { n: 1 } },
    { type: "stage.exit", executionId: "plan#1", attempt: 2, data: { n: 2 } },
    { type: "stage.init", executionId: "test#1", attempt: 2, data: { n: 3 } },
    { type: "stage.exit", executionId: "test#1", data: { n: 4 } },
    { type: "run.finished", data: { n: 5 } },
  ];

  test("come back as they were, each with its id, the run, the time, its execution and its attempt", () => {
    const events = readEvents("r1", record(writeEvents(drafts, 1_234)));
    expect(events).toStrictEqual(drafts.map((each, at) => ({ id: `r1/3/${at}`, runId: "r1", at: 1_234, ...each })));
  });

  test("are written once where neighbours share them, and as null where there is none any more", () => {
    expect(writeEvents(drafts.slice(1), 7)).toBe(
      '[{"at":7,"type":"stage.init","executionId":"plan#1","attempt":1,"data":{"n":1}}' +
        ',{"type":"stage.exit","attempt":2,"data":{"n":2}}' +
        ',{"type":"stage.init","executionId":"test#1","data":{"n":3}}' +
        ',{"type":"stage.exit","attempt":null,"data":{"n":4}}' +
        ',{"type":"run.finished","executionId":null,"data":{"n":5}}]',
    );
    expect(writeEvents([], 7)).toBe("[]");
    expect(readEvents("r1", record("[]"))).toEqual([]);
  });

  test("follow what their step cost, which is numbers only and no event", () => {
    const cost = { inputTokens: 5, outputTokens: 1, costUsd: 1e-9, runMs: 7 };
    for (const events of [[], drafts]) {
      const text = writeEvents(events, 1_234, cost);
      expect(text).toMatch(/^\[{"cost":{"inputTokens":5,"outputTokens":1,"costUsd":1e-9,"runMs":7}}[,\]]/);
      expect(readCost(record(text))).toEqual(cost);
      expect(readEvents("r1", record(text))).toEqual(readEvents("r1", record(writeEvents(events, 1_234))));
    }
    expect(readCost(record(writeEvents(drafts, 1_234)))).toBeUndefined();
    const hostile = Object.assign({ inputTokens: Number.NaN }, { costUsd: "sk-secret", more: "sk-secret" });
    expect(writeEvents([], 1, Object.assign(cost, hostile))).toBe(
      '[{"cost":{"inputTokens":null,"outputTokens":1,"costUsd":null,"runMs":7}}]',
    );
    expect(readCost(record('[{"cost":{"inputTokens":null,"outputTokens":"1"}}]'))).toEqual({
      inputTokens: Number.NaN,
      outputTokens: Number.NaN,
    });
    for (const damaged of ['[{"cost":', '[{"cost":7}]', '[{"cost":[]}]'])
      expect(readCost(record(damaged))).toMatchObject({ outputTokens: Number.NaN, costUsd: Number.NaN });
  });

  test("of no known type are not written", () => {
    const unknown: EventDraft = JSON.parse('{"type":"run.exploded","data":{}}');
    expect(thrownBy(() => writeEvents([unknown], 7))).toEqual(["Validation", "event_unknown"]);
  });

  test.each(["", "[", "{}", "null", '"text"'])("that read %j are damage, not an empty list", (events) => {
    expect(thrownBy(() => readEvents("r1", record(events)))).toEqual(["Host", "journal_damaged"]);
  });

  test("that are damaged say of which record and run", () => {
    expect(() => readEvents("r1", record("["))).toThrow(
      expect.objectContaining({
        detail: { runId: "r1", seq: 3 },
        message: expect.stringContaining("record 3 of run r1"),
      }),
    );
  });
});

describe("data that many events share", () => {
  const shared = sharedData({ a: 1, token: "t", deep: { password: "p" } });

  test("has the text that any data like it has, with secrets replaced", () => {
    const text = '{"a":1,"token":"[redacted:token]","deep":{"password":"[redacted:password]"}}';
    expect(redactedJson(shared)).toBe(text);
    expect(redactedJson({ a: 1, token: "t", deep: { password: "p" } })).toBe(text);
    expect(writeEvents([{ type: "stage.init", data: shared }], 7)).toContain(`"data":${text}`);
  });

  test("is the data itself, cannot be changed, and spread into other data is like any other", () => {
    expect(shared).toEqual({ a: 1, token: "t", deep: { password: "p" } });
    expect(Reflect.set(shared, "a", 2)).toBe(false);
    expect(redactedJson({ ...shared, a: 2 })).toContain('"a":2');
  });

  const started = (data: JsonObject) =>
    writeEvents(
      [
        { type: "run.started", data },
        { type: "stage.init", data: { z: 1 } },
      ],
      7,
    );
  test.each([
    ["members of its own", shared, { b: 2, flag: "--token=abcdefgh" }],
    ["a member that replaces a shared one", shared, { a: 2, b: 3 }],
    ["no members of its own", shared, {}],
    ["a beginning without members", sharedData({}), { b: 2 }],
    ["a beginning that is not shared", { a: 1, token: "t" }, { b: 2 }],
  ])("with %s has the text of ordinary data", (_name, beginning, own) => {
    const data = extendedData(beginning, own);
    expect(data).toEqual({ ...beginning, ...own });
    expect(started(data)).toBe(started({ ...beginning, ...own }));
    expect(started(data)).not.toContain("abcdefgh");
  });

  test("keeps one text for all that begin with it", () => {
    const parts = redactedParts(extendedData(shared, { b: 2 }));
    expect(parts).toEqual(['{"a":1,"token":"[redacted:token]","deep":{"password":"[redacted:password]"}', ',"b":2}']);
  });
});

describe("values of a record", () => {
  test("are seen as they will be read back", () => {
    const when = new Date(0);
    expect(toRecordedValue({ when, gone: undefined }, "x")).toStrictEqual({
      text: '{"when":"1970-01-01T00:00:00.000Z"}',
      value: { when: "1970-01-01T00:00:00.000Z" },
    });
    const plain = { a: [1, null] };
    expect(toRecordedValue(plain, "x").value).toBe(plain);
  });

  test("that have no JSON text are refused, with what they were and why", () => {
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    expect(() => toRecordedValue(circle, "the value of step a")).toThrow(
      expect.objectContaining({
        class: "Validation",
        code: "not_json",
        message: expect.stringMatching(/^the value of step a is not JSON: .*circular/i),
        cause: expect.any(TypeError),
      }),
    );
    expect(() => toRecordedValue(undefined, "the value of step a")).toThrow(
      expect.objectContaining({ class: "Validation", code: "not_json", message: expect.stringContaining("undefined") }),
    );
  });
});

describe("requests that a record opens and closes", () => {
  const asked = { requestId: "plan#1/a1/t1.c0", digest: "d1" };

  test.each([
    ["grant.requested", "grantStageTool"],
    ["request.opened", "askUser"],
    ["request.opened", "approveTransition"],
    ["request.opened", "humanState"],
  ] as const)("%s opens one of kind %s, with its body as it is, where the event is redacted", (type, kind) => {
    const body = { password: "hunter2", n: 1 };
    const { opened, closed, record } = commitOf([{ type, data: { ...asked, kind, body } }]);
    expect(opened).toEqual([{ ...asked, runId: "r1", kind, body, openedAt: clock.now() }]);
    expect(record.events).toContain('"password":"[redacted:password]"');
    expect(closed).toEqual([]);
  });

  test("a body that is none is empty", () => {
    for (const body of [undefined, null, "text", ["a"]]) {
      const data = { ...asked, kind: "askUser", ...(body === undefined ? {} : { body }) };
      expect(commitOf([{ type: "request.opened", data }]).opened).toMatchObject([{ body: {} }]);
    }
  });

  test.each<readonly [string, Json, Json, Json]>([
    ["an id", 7, "d1", "askUser"],
    ["a digest", "q1", null, "askUser"],
    ["a known kind", "q1", "d1", "confirmAll"],
    ["a kind that is a text", "q1", "d1", ["askUser"]],
  ])("an event without %s opens nothing", (_, requestId, digest, kind) => {
    expect(commitOf([{ type: "request.opened", data: { requestId, digest, kind } }]).opened).toEqual([]);
  });

  test.each(["grant.answered", "grant.expired", "request.answered", "request.expired"] as const)(
    "%s closes the one it names",
    (type) => {
      const { opened, closed } = commitOf([
        { type, data: { requestId: "q1" } },
        { type, data: { requestId: 7 } },
        { type: "run.finished", data: { requestId: "q2" } },
      ]);
      expect([opened, closed]).toEqual([[], ["q1"]]);
    },
  );

  test("one record may open and close several, and other events do neither", () => {
    const other: EventDraft = { type: "stage.init", data: { ...asked, kind: "askUser" } };
    expect(commitOf([other])).toMatchObject({ opened: [], closed: [] });
    const { opened, closed } = commitOf([
      other,
      { type: "request.answered", data: { requestId: "q1" } },
      { type: "request.opened", data: { ...asked, kind: "askUser", body: {} } },
      { type: "grant.expired", data: { requestId: "q2" } },
    ]);
    expect(opened.map(({ requestId }) => requestId)).toEqual([asked.requestId]);
    expect(closed).toEqual(["q1", "q2"]);
  });
});

describe("where a journal stands", () => {
  const end = { status: "completed" as const, value: 1 };

  test("the first record is chained to the beginning, the next to the one before it", () => {
    const first = draftCommit(genesisPosition("r1", "i1"), draft([]), clock).record;
    expect(first).toMatchObject({ seq: 0, incarnation: "i1" });
    const { hash, ...rest } = first;
    expect(hash).toBe(hashRecord(GENESIS, "r1", rest));
    const next = draftCommit({ runId: "r1", incarnation: "i1", seq: 1, head: hash }, draft([], { end }), clock);
    const { hash: second, ...others } = next.record;
    expect(second).toBe(hashRecord(hash, "r1", others));
    expect(next.end).toEqual(end);
    expect(draftCommit(genesisPosition("r1", "i1"), draft([]), clock)).not.toHaveProperty("end");
  });

  test.each([
    ["at once", (): void => undefined],
    ["later", (): Promise<void> => Promise.resolve()],
  ])("moves on when a record is written %s", async (_, append) => {
    const store: JournalStore = changed(createMemoryJournals().connect(), { append });
    const at: RunPosition = { runId: "r1", epoch: 1, incarnation: "i1", seq: 4, head: "h" };
    const { record: next } = draftCommit(at, draft([]), clock);
    await appendRecord(store, at, draft([]), clock);
    expect(at).toMatchObject({ seq: 5, head: next.hash });
  });

  test("a record is written to its run, in the name of the claim it was made under", async () => {
    const commits: unknown[] = [];
    const store = changed(createMemoryJournals().connect(), { append: (commit) => void commits.push(commit) });
    const at: RunPosition = { runId: "r1", epoch: 3, incarnation: "i1", seq: 4, head: "h" };
    const { record } = draftCommit(at, draft([]), clock);
    await appendRecord(store, at, draft([]), clock);
    expect(commits).toEqual([{ runId: "r1", epoch: 3, record, opened: [], closed: [] }]);
  });

  test.each([
    [
      "at once",
      (): void => {
        throw new Error("disk full");
      },
    ],
    ["later", (): Promise<void> => Promise.reject(new Error("disk full"))],
  ])("stays when a record is refused %s", async (_, append) => {
    const store: JournalStore = changed(createMemoryJournals().connect(), { append });
    const at: RunPosition = { runId: "r1", epoch: 1, incarnation: "i1", seq: 4, head: "h" };
    await expect((async () => appendRecord(store, at, draft([]), clock))()).rejects.toThrow("disk full");
    expect(at).toMatchObject({ seq: 4, head: "h" });
  });

  test("no two stays of runs have one name, in a process or in two", () => {
    const [one, other] = [createIncarnations(), createIncarnations()];
    const names = Array.from({ length: 100 }, () => [one(), other()]).flat();
    expect(new Set(names).size).toBe(200);
    for (const name of names) expect(name).toMatch(/^[0-9a-f]{12}-[0-9a-z]{1,2}$/);
  });
});
