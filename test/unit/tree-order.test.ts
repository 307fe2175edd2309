import { inTreeOrder, type OrderedRecord, TreeReader } from "@sluice/core/host";
import { describe, expect, test } from "vitest";

interface Journal {
  readonly runId: string;
  readonly parentId?: string;
  readonly records: readonly OrderedRecord[];
}

/** A journal of records such as `open fan`, each with the incarnation after an `@`. */
function journal(runId: string, parentId: string | undefined, ...records: readonly string[]): Journal {
  return {
    runId,
    ...(parentId === undefined ? {} : { parentId }),
    records: records.map((text, seq): OrderedRecord => {
      const [phase, stepId = "", incarnation = "i"] = text.split(/[ @]/);
      if (phase !== "open" && phase !== "done" && phase !== "lifecycle") throw new Error(text);
      return { seq, phase, stepId, incarnation };
    }),
  };
}
const root = (...records: readonly string[]): Journal => journal("r", undefined, "lifecycle start", ...records);

async function orderOf(journals: readonly Journal[]): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { runId, depth, record } of inTreeOrder(journals)) found.push(`${depth} ${runId} ${record.stepId}`);
  return found;
}

describe("journals that no run leaves", () => {
  test("are read whole: a child that nothing started, one without its parent, and one that occurs twice", async () => {
    const twice = journal("r/fan/a", "r", "lifecycle start", "lifecycle end");
    const found = await orderOf([
      root("open fan", "done fan", "lifecycle end"),
      twice,
      twice,
      journal("r/other/b", "r", "lifecycle start"),
      journal("x/fan/c", "x", "lifecycle start"),
    ]);
    expect(found).toEqual([
      "0 r start",
      "0 r fan",
      ...["1 r/fan/a start", "1 r/fan/a end", "1 r/fan/a start", "1 r/fan/a end"],
      "0 r fan",
      "0 r end",
      "1 r/other/b start",
      "1 x/fan/c start",
    ]);
  });

  test("are read whole however deep they claim to lie below each other", async () => {
    const deep: Journal[] = [root()];
    for (let { runId } = root(); deep.length < 3_000; runId = `${runId}/x/1`)
      deep.push(journal(`${runId}/x/1`, runId, "open x"));
    expect(await orderOf(deep)).toHaveLength(deep.length);
  });

  test("of hundreds of resumes and hundreds of children are read whole", async () => {
    const many = Array.from({ length: 500 }, (_, index) => index);
    const resumes = many.map((index) => `lifecycle resume@i${index}`);
    const children = many.map((index) => journal(`r/x/${index}`, "r", `done s@i${many.length - 1}`));
    const found = await orderOf([root("open x", ...resumes), ...children]);
    expect(found).toHaveLength(2 + 2 * many.length);
  });

  test("have an end, whatever parents and numbers they claim", async () => {
    const found = await orderOf([
      journal("a", "b", "lifecycle start"),
      journal("b", "a", "lifecycle start"),
      journal("c", "c", "lifecycle start"),
      {
        runId: "d",
        records: [-1, 1e9, -1e9, 0].map((seq) => ({ seq, phase: "open", stepId: `${seq}`, incarnation: "i" })),
      },
    ]);
    expect(found).toEqual([
      "0 a start",
      "1 b start",
      "1 c start",
      "1 d -1",
      "1 d 1000000000",
      "1 d -1000000000",
      "1 d 0",
    ]);
  });

  test("a join comes after its children although they name a later resume", async () => {
    const child = journal("r/fan/a", "r", "lifecycle start@later", "lifecycle end@later");
    const found = await orderOf([root("open fan", "done fan", "lifecycle resume@later", "lifecycle end@later"), child]);
    expect(found.indexOf("1 r/fan/a end")).toBeLessThan(found.lastIndexOf("0 r fan"));
  });
});

test("what a child recorded after each of many resumes comes right after it", async () => {
  const times = Array.from({ length: 950 }, (_, index) => `p${index}`);
  const found = await orderOf([
    root("open fan", ...times.map((time) => `lifecycle resume@${time}`)),
    journal("r/fan/a", "r", "lifecycle start", ...times.map((time) => `done ${time}@${time}`)),
    journal("r/fan/b", "r", "lifecycle start@p949"),
  ]);
  const expected = times.flatMap((time) => ["0 r resume", `1 r/fan/a ${time}`]);
  expect(found).toEqual(["0 r start", "0 r fan", "1 r/fan/a start", ...expected, "1 r/fan/b start"]);
});

describe("a reader of a tree that grows", () => {
  const whole = [
    root("open fan", "done fan", "lifecycle end"),
    journal("r/fan/a", "r", "lifecycle start", "lifecycle end"),
  ];
  const recordsOf = (runId: string, from: number, limit: number): readonly OrderedRecord[] =>
    (whole.find((one) => one.runId === runId)?.records ?? []).slice(from, from + limit);
  const counts = (ofRoot: number, ofChild: number) => [
    { runId: "r", records: ofRoot },
    ...(ofChild === 0 ? [] : [{ runId: "r/fan/a", parentId: "r", records: ofChild }]),
  ];

  test("reads no record that was not counted, since those that come before it were not counted either", async () => {
    const reader = new TreeReader(recordsOf);
    const seen: string[] = [];
    for (const [ofRoot, ofChild] of [
      [2, 0],
      [2, 1],
      [4, 2],
    ] as const) {
      for await (const { runId, record } of reader.read(counts(ofRoot, ofChild)))
        seen.push(`${runId} ${record.stepId}`);
      seen.push("-");
    }
    expect(seen).toEqual(["r start", "r fan", "-", "r/fan/a start", "-", "r/fan/a end", "r fan", "r end", "-"]);
  });

  test("continues after a read that failed with the first record that it did not deliver", async () => {
    let failing = true;
    const reader = new TreeReader((runId, from, limit) => {
      if (failing && runId !== "r") throw new Error("busy");
      return recordsOf(runId, from, limit);
    });
    const seen: string[] = [];
    const read = async (): Promise<void> => {
      for await (const { runId, record } of reader.read(counts(4, 2))) seen.push(`${runId} ${record.stepId}`);
    };
    await expect(read()).rejects.toThrow("busy");
    expect(seen).toEqual(["r start", "r fan"]);
    failing = false;
    await read();
    expect(seen).toEqual(["r start", "r fan", "r/fan/a start", "r/fan/a end", "r fan", "r end"]);
  });
});
