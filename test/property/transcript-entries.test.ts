import { isJson, type JournalRecord, type Json } from "@sluice/core";
import { type TranscriptEntry, transcriptEntries } from "@sluice/stages";
import fc from "fast-check";
import { expect, test } from "vitest";

const deep = (levels: number): string => `${'{"a":['.repeat(levels)}1${"]}".repeat(levels)}`;

const anything = fc.jsonValue({ maxDepth: 3 }).map((value): Json => JSON.parse(JSON.stringify(value)));
/** Mostly as it should be. */
function mostly(arbitrary: fc.Arbitrary<Json>): fc.Arbitrary<Json> {
  return fc.oneof({ weight: 9, arbitrary }, { weight: 1, arbitrary: anything });
}
/** An object like those of our records: members may be missing, or anything. */
function like(members: Readonly<Record<string, fc.Arbitrary<Json>>>): fc.Arbitrary<Json> {
  const each = Object.fromEntries(Object.entries(members).map(([key, member]) => [key, mostly(member)]));
  return mostly(fc.record(each, { requiredKeys: [] }).map((value): Json => JSON.parse(JSON.stringify(value))));
}
function some(item: fc.Arbitrary<Json>): fc.Arbitrary<Json> {
  return mostly(fc.array(item, { maxLength: 4 }));
}

const id = fc.constantFrom("t1.c0", "a", "__proto__", "");
const words = fc.constantFrom("", "  ", "said", "Look");
const part = like({
  type: fc.constantFrom("text", "reasoning", "tool-call", "tool-call", "tool-result", "file"),
  text: words,
  toolCallId: id,
  toolName: words,
  input: anything,
  providerExecuted: fc.constantFrom(true, false),
  output: like({ type: fc.constantFrom("text", "error-json"), value: anything }),
});
const ran = like({ ok: fc.boolean(), output: anything });
const turn = like({
  reply: like({ content: some(part), calls: some(like({ index: fc.nat(3), tool: words, inputError: anything })) }),
  completions: some(like({ index: fc.nat(3), ok: fc.boolean(), output: anything, issues: some(anything) })),
  messages: some(like({ by: words, text: words })),
});
const tree = fc.oneof(
  turn,
  some(like({ id, verdict: like({ kind: fc.constantFrom("refused", "approved"), output: anything }) })),
  some(ran),
  like({ kind: words, ran }),
  some(like({ type: fc.constant("call.finished"), data: like({ callId: id }) })),
);
const text = fc.oneof(
  { weight: 20, arbitrary: tree.map((value) => JSON.stringify(value)) },
  fc.constantFrom("", "{", "null", "[]", "[null]", deep(300), deep(50_000)),
  fc.string(),
);
const stepId = fc.oneof(
  {
    weight: 20,
    arbitrary: fc.constantFrom(
      ...[
        "model",
        "model/2",
        "completion",
        "0/verdicts",
        "0/approvals",
        "1/call",
        "0/question",
        "0/answer",
        "0/else",
      ].map((about) => `one#1/a1/turn/3/${about}`),
      ...["", "start", "one#1/a1/enter", `one#1/a1/turn/${"9".repeat(400)}/model`, "one/a1/turn/1/model"],
    ),
  },
  fc.string(),
);
function recordOf(
  id: fc.Arbitrary<string>,
  phase: fc.Arbitrary<JournalRecord["phase"]>,
  value: fc.Arbitrary<string>,
): fc.Arbitrary<JournalRecord> {
  const place = { seq: fc.nat(), ordinal: fc.nat(), incarnation: fc.constant("x"), hash: fc.constant("") };
  return fc.record({ ...place, stepId: id, phase, value, events: text });
}
const record = fc.oneof(
  recordOf(stepId, fc.constantFrom("done", "done", "done", "open", "lifecycle"), text),
  // What a model said, where it belongs.
  recordOf(
    fc.constant("one#1/a1/turn/3/model"),
    fc.constant("done"),
    turn.map((value) => JSON.stringify(value)),
  ),
);

function isSound(entry: TranscriptEntry): boolean {
  switch (entry.kind) {
    case "text":
    case "reasoning":
      return typeof entry.text === "string";
    case "call":
      return typeof entry.callId === "string" && typeof entry.tool === "string";
    case "result":
      return typeof entry.callId === "string" && typeof entry.ok === "boolean" && isJson(entry.output);
    case "message":
      return typeof entry.by === "string" && typeof entry.text === "string";
  }
}

test("records of any content give entries that can be shown, or none, and never throw", () => {
  const kinds = new Set<string>();
  fc.assert(
    fc.property(fc.array(record, { maxLength: 5 }), (records) => {
      for (const entry of transcriptEntries("r1", records)) {
        kinds.add(entry.kind);
        expect(isSound(entry)).toBe(true);
      }
    }),
    { numRuns: 2_000 },
  );
  expect([...kinds].sort()).toEqual(["call", "message", "reasoning", "result", "text"]);
});

test("arguments and results nested deeper than any stack are left out", () => {
  const at = (about: string, value: string): JournalRecord => {
    const events = '[{"type":"call.finished","data":{"callId":"t1.c0"}}]';
    const place = { seq: 1, ordinal: 1, stepId: `one#1/a1/turn/1/${about}`, phase: "done", incarnation: "x" } as const;
    return { ...place, value, events, hash: "" };
  };
  const call = `{"content":[{"type":"tool-call","input":${deep(50_000)}}],"calls":[{"index":0,"tool":"Look"}]}`;
  const entries = transcriptEntries("r1", [
    at("model", `{"reply":${call},"completions":[{"index":0,"ok":false,"issues":[${deep(50_000)}]}]}`),
    at("0/call", `[{"ok":true,"output":${deep(50_000)}}]`),
  ]);
  expect(entries).toMatchObject([{ kind: "call", callId: "t1.c0", input: undefined }]);
});
