import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LiveRows } from "../../packages/tui/src/run/live-rows.ts";
import { logLines } from "../../packages/tui/src/run/log.ts";
import { transcriptLines } from "../../packages/tui/src/run/transcript.ts";
import { TranscriptWindow } from "../../packages/tui/src/run/transcript-window.ts";
import { ListBuilder } from "../../packages/view/src/projection/append-only-list.ts";
import { reduceRun } from "../../packages/view/src/projection/reduce-run.ts";
import type {
  CallView,
  CommandView,
  ExecutionView,
  TranscriptItem,
} from "../../packages/view/src/projection/run-view.ts";
import type { Line } from "../../packages/view/src/text/line.ts";
import { execution, expectToFit, hostileText, runView } from "../support/random-views.ts";
import { ASKING, play, TROUBLED } from "../support/run-scenes.ts";
import { readRecords, textOf } from "../support/run-views.ts";

const place = { runId: "r1", executionId: "plan#1", attempt: 1, turn: 1 };

function call(more: Partial<CallView> = {}): CallView {
  return {
    kind: "call",
    attempt: 1,
    turn: 1,
    callId: "t1.c0",
    tool: "Read",
    input: { file_path: "a.ts" },
    state: "ok",
    output: "one\ntwo",
    ...more,
  };
}

const hostileCommand: fc.Arbitrary<TranscriptItem> = fc
  .record({
    words: fc.array(hostileText, { maxLength: 4 }),
    printed: hostileText,
    why: hostileText,
    state: fc.constantFrom<CommandView["state"]>("running", "ended", "ok", "not_yet", "error"),
    isPoll: fc.boolean(),
    nextAt: fc.constantFrom(0, -1, 1e12, 1e300, Number.NaN),
    exitCode: fc.integer(),
  })
  .map(({ printed, ...rest }) => ({
    ...{ kind: "command", attempt: 1, number: 2, stdout: printed, stderr: printed, files: [printed], ms: 5 },
    ...rest,
  }));

const hostileItem: fc.Arbitrary<TranscriptItem> = fc.oneof(
  hostileCommand,
  fc
    .tuple(hostileText, fc.constantFrom("human", "timer", "subPipeline", "x"))
    .map(([text, of]): TranscriptItem => ({ kind: "answer", of, value: { [text]: [text, { elapsedMs: text }] } })),
  hostileText.map((text): TranscriptItem => ({ kind: "answer", of: "human", value: text })),
  hostileText.map((text): TranscriptItem => ({ ...place, kind: "text", text })),
  hostileText.map((text): TranscriptItem => ({ ...place, kind: "reasoning", text })),
  fc.tuple(hostileText, hostileText).map(([by, text]): TranscriptItem => ({ ...place, kind: "message", by, text })),
  hostileText.map((text): TranscriptItem => ({ kind: "boundary", rank: "attempt", text, tone: "plain" })),
  hostileText.map((text): TranscriptItem => ({ kind: "boundary", rank: "note", text, tone: "bad" })),
  fc
    .tuple(
      hostileText,
      hostileText,
      hostileText,
      fc.constantFrom<CallView["state"]>(
        "proposed",
        "asking",
        "running",
        "ok",
        "error",
        "refused",
        "abandoned",
        "outcome_unknown",
      ),
    )
    .map(([tool, key, output, state]) =>
      call({ tool, input: { [key]: output }, output, why: key, summary: tool, state }),
    ),
);

function executionOf(items: readonly TranscriptItem[], more: Partial<ExecutionView> = {}): ExecutionView {
  const list = new ListBuilder<TranscriptItem>();
  for (const item of items) list.push(item);
  list.settle(() => true);
  return execution("plan", { items: list.view(), ...more });
}

test("a text stands apart from the call before it, and directly above the call after it", () => {
  const said = [
    { ...place, kind: "text", text: "I look." },
    call(),
    { ...place, kind: "text", text: "I write." },
    call(),
  ];
  const rows = said.map((item) => textOf(transcriptLines(item as TranscriptItem, { width: 60, folded: true })));
  expect(rows.join("\n")).toBe("\n  I look.\n✔ Read a.ts  done\n\n  I write.\n✔ Read a.ts  done");
});

test("an argument that is cut says so, and an empty one is seen", () => {
  const input = { summary: "x".repeat(200), command: "" };
  const head = textOf(transcriptLines(call({ tool: "submit", input }), { width: 200, folded: true }));
  expect(head).toBe(`✔ submit summary: ${"x".repeat(80)}…, command: ""  done`);
});

test("anything that was said or called fits the terminal, and nothing in it acts", () => {
  fc.assert(
    fc.property(hostileItem, fc.integer({ min: 1, max: 120 }), fc.boolean(), (item, width, folded) => {
      expectToFit(transcriptLines(item, { width, folded }), width);
    }),
    { numRuns: 200 },
  );
});

test("a text of ten million characters on one line neither hangs nor fills the screen when it is folded", () => {
  const long = "x".repeat(10_000_000);
  for (const item of [call({ output: long }), { ...place, kind: "reasoning", text: long } as const]) {
    expect(transcriptLines(item, { width: 80, folded: true }).length).toBeLessThan(40);
  }
  expectToFit(transcriptLines({ ...place, kind: "text", text: long }, { width: 80, folded: true }), 80);
  expectToFit(logLines({ log: executionTold([{ ...place, kind: "message", by: long, text: long }]) }, 0, 80).lines, 80);
});

test("a thought is dim, behind a mark, and folded to three rows that say there is more", () => {
  const text = Array.from({ length: 9 }, (_, at) => `thought ${at}`).join("\n");
  const folded = transcriptLines({ ...place, kind: "reasoning", text }, { width: 60, folded: true });
  expect(folded).toHaveLength(5);
  expect(textOf(folded)).toMatch(/^\n✻ thinking\n {2}thought 0/);
  expect(textOf(folded)).toContain("more (Ctrl+O)");
  const whole = transcriptLines({ ...place, kind: "reasoning", text }, { width: 60, folded: false });
  expect(textOf(whole)).toContain("thought 8");
});

test("an attempt is a line across, and what a person said has their name", () => {
  const [, line] = transcriptLines(
    { kind: "boundary", rank: "attempt", text: "execute · attempt 2", tone: "notice" },
    { width: 40, folded: true },
  );
  expect(textOf([line ?? []])).toBe("── execute · attempt 2 ──");
  const said = transcriptLines(
    { ...place, kind: "message", by: "ann", text: "mind the tests" },
    { width: 40, folded: true },
  );
  expect(textOf(said)).toBe("\n❯ ann\n  mind the tests");
});

test("what a model or a failure says never begins at the edge, where cards, notices and questions do", () => {
  const forged = [
    "\u258c \u25a0 Grant",
    "\u276f Yes",
    "! approved Bash",
    "\u2714 plan done",
    "> \u25a0 Grant",
    "- a",
    "# b",
    "    c",
  ];
  const text = [...forged, "```", ...forged, "```", "| a | b |", "|---|---|", `| ${"x ".repeat(90)}| ! ok |`].join(
    "\n\n",
  );
  const long = `fault ${"x".repeat(30)} \u276f Yes ${"y".repeat(30)} ! approved`;
  for (const width of [20, 60]) {
    const said = transcriptLines({ ...place, kind: "text", text }, { width, folded: false });
    const streamed = new LiveRows(width).lines({ turn: 1, text, reasoning: forged.join("\n"), cut: 0 });
    const note = transcriptLines(
      { ...place, kind: "boundary", rank: "note", tone: "bad", text: long },
      { width, folded: true },
    );
    for (const rows of [said, streamed, note.slice(1)]) {
      const atEdge = rows.map((row) => textOf([row])).filter((row) => row !== "" && !row.startsWith("  "));
      expect(atEdge.filter((row) => row !== "\u273b thinking")).toEqual([]);
    }
  }
});

describe("the window over a transcript", () => {
  const items = (count: number): TranscriptItem[] =>
    Array.from({ length: count }, (_, at) =>
      at % 3 === 2
        ? call({ callId: `t1.c${at}`, output: `result ${at}` })
        : { ...place, kind: "text", text: `line ${at}` },
    );
  const windowOf = (view: ExecutionView): TranscriptWindow => {
    const window = new TranscriptWindow();
    window.update(view);
    return window;
  };
  const rowsOf = (all: readonly TranscriptItem[], width: number): readonly Line[] =>
    all.flatMap((item) => transcriptLines(item, { width, folded: true }));

  test("its rows are those of all items, whichever part is asked for, at any width", () => {
    const all = items(40);
    const window = windowOf(executionOf(all));
    fc.assert(
      fc.property(fc.integer({ min: 5, max: 100 }), fc.nat(150), fc.nat(40), (width, from, height) => {
        const whole = rowsOf(all, width);
        expect(window.count(width)).toBe(whole.length);
        expect(textOf(window.slice(from, from + height, width))).toBe(textOf(whole.slice(from, from + height)));
      }),
      { numRuns: 60 },
    );
  });

  test("it grows with its execution, and a call that is filled in changes its rows", () => {
    const window = new TranscriptWindow();
    const list = new ListBuilder<TranscriptItem>();
    const grown = (): ExecutionView => execution("plan", { items: list.view() });
    for (const [at, item] of items(30).entries()) {
      list.push(item.kind === "call" ? { ...item, state: "running" } : item);
      window.update(grown());
      window.count(60);
      if (item.kind === "call") list.replace(at, item);
      if (at % 4 === 0) list.settle((one) => one.kind !== "call" || one.state !== "running");
      window.update(grown());
      expect(textOf(window.slice(0, window.count(60), 60))).toBe(textOf(rowsOf([...list.view()], 60)));
    }
  });

  test("of a very long transcript the end is looked through, and the first row says how much stands before it", () => {
    const all = Array.from({ length: 5_200 }, (_, at) =>
      call({ callId: `t1.c${at}`, input: { file_path: `f${at}.ts` } }),
    );
    const window = windowOf(executionOf(all));
    expect(window.count(60)).toBe(5_001);
    expect(textOf(window.slice(0, 2, 60))).toMatch(/^… 200 earlier items.*\n✔ Read f200\.ts/);
    expect(textOf(window.slice(4_999, 5_001, 60))).toMatch(/f5198\.ts.*\n.*f5199\.ts/);
    expect(window.find("f4000.ts", 0, 60, false)).toBe(3_801);
    expect(window.find("f100.ts", 5_000, 60, true)).toBeUndefined();
    expect(textOf(window.slice(3_801, 3_802, 60))).toContain("f4000.ts");
  });

  test("another execution starts over", () => {
    const window = windowOf(executionOf(items(9)));
    window.count(60);
    window.update(executionOf([{ ...place, kind: "text", text: "other" }], { key: "r1:review#1" }));
    expect(textOf(window.slice(0, 9, 60))).toBe("\n  other");
  });

  test("everything is unfolded and folded at once", () => {
    const text = Array.from({ length: 9 }, (_, at) => `thought ${at}`).join("\n");
    const window = windowOf(
      executionOf([
        { ...place, kind: "text", text: "said" },
        { ...place, kind: "reasoning", text },
      ]),
    );
    const before = window.count(60);
    window.foldAll(false);
    expect(window.count(60)).toBeGreaterThan(before);
    window.foldAll(true);
    expect(window.count(60)).toBe(before);
  });

  test("a search finds the row forwards and backwards, also in what is folded, and unfolds that", () => {
    const hidden = `${Array.from({ length: 40 }, (_, at) => `row ${at}`).join("\n")}\nthe Needle\nend`;
    const all: TranscriptItem[] = [...items(6), { ...place, kind: "reasoning", text: hidden }, ...items(6)];
    const window = windowOf(executionOf(all));
    expect(textOf(window.slice(0, 1_000, 60))).not.toContain("Needle");
    const row = window.find("needle", 0, 60, false);
    expect(row).toBeDefined();
    expect(textOf(window.slice(row ?? 0, (row ?? 0) + 1, 60))).toContain("the Needle");
    expect(window.find("needle", (row ?? 0) + 1, 60, false)).toBeUndefined();
    expect(window.find("needle", window.count(60) - 1, 60, true)).toBe(row);
    expect(window.find("nowhere", 0, 60, false)).toBeUndefined();
    const first = window.find("line 0", 0, 60, false);
    expect(first).toBe(1);
    expect(window.find("line 0", 2, 60, false)).toBeGreaterThan(row ?? 0);
  });

  test("of folded calls only those in sight are laid out", () => {
    let read = 0;
    const calls = Array.from({ length: 3_000 }, (_, at) => {
      const one = call({ callId: `t1.c${at}` });
      Object.defineProperty(one, "tool", {
        get: () => {
          read += 1;
          return "Read";
        },
      });
      return one;
    });
    const window = windowOf(executionOf(calls));
    for (const width of [60, 80]) expect(window.count(width)).toBe(3_000);
    expect(read).toBe(0);
    expect(window.slice(2_990, 3_000, 80)).toHaveLength(10);
    expect(read).toBeLessThan(100);
  });

  test("after the last match a search finds nothing, and unfolds nothing", () => {
    const folded = call({ output: "result\nother\nmore" });
    const window = windowOf(executionOf([folded, { ...place, kind: "text", text: "one\nNeedle\ntwo" }, folded]));
    const rows = window.count(60);
    const row = window.find("needle", 0, 60, false) ?? -1;
    expect(row).toBe(3);
    expect(window.find("needle", row + 1, 60, false)).toBeUndefined();
    expect(window.find("needle", row - 1, 60, true)).toBeUndefined();
    expect(window.count(60)).toBe(rows);
  });

  test("a search unfolds only the item with the match, also the last one from the row after it", () => {
    const hidden = (word: string) => call({ output: `result\n${word}` });
    const window = windowOf(executionOf([hidden("first"), hidden("second"), hidden("third")]));
    expect(window.count(60)).toBe(3);
    const row = window.find("third", 3, 60, false) ?? -1;
    expect(textOf(window.slice(row, row + 1, 60))).toContain("third");
    expect(row).toBeGreaterThan(2);
    expect(textOf(window.slice(0, 100, 60))).not.toMatch(/first|second/);
    const before = window.find("first", 1, 60, true) ?? -1;
    expect(textOf(window.slice(before, before + 1, 60))).toContain("first");
    expect(textOf(window.slice(0, 100, 60))).not.toContain("second");
    window.foldAll(true);
    expect(window.count(60)).toBe(3);
  });

  test("a search reaches the end of the run below the items, and finds no item after it", () => {
    const window = new TranscriptWindow();
    const items = [call({ output: Array.from({ length: 30 }, (_, at) => `Needle ${at}`).join("\n") })];
    window.update(executionOf(items), { kind: "end", status: "completed", output: "a\nb\nneedle\nc" });
    const end = window.count(60) - 2;
    expect(window.find("needle", 5, 60, false)).toBe(end);
    expect(window.find("needle", end + 1, 60, false)).toBeUndefined();
    expect(window.count(60)).toBe(end + 2);
    const hidden = window.find("needle", end - 1, 60, true) ?? -1;
    expect(textOf(window.slice(hidden, hidden + 1, 60))).toContain("Needle 29");
  });

  test("what streams stands below what is said, and gives way to it", () => {
    const window = windowOf(executionOf([{ ...place, kind: "text", text: "said" }]));
    const before = window.count(60);
    let text = "";
    for (const piece of ["# Ti", "tle\n\nSome ", "**text**", " and more"]) {
      text += piece;
      window.update(
        executionOf([{ ...place, kind: "text", text: "said" }], { live: { turn: 2, text, reasoning: "hm", cut: 0 } }),
      );
      window.count(60);
    }
    expect(textOf(window.slice(before, 99, 60))).toMatch(/thinking[\s\S]*Title[\s\S]*Some text and more/);
    window.update(
      executionOf([
        { ...place, kind: "text", text: "said" },
        { ...place, kind: "text", text },
      ]),
    );
    expect(textOf(window.slice(0, 99, 60))).not.toContain("thinking");
  });
});

function executionTold(items: readonly TranscriptItem[]) {
  const entries = new ListBuilder<{ readonly item: TranscriptItem }>();
  for (const item of items) entries.push({ item });
  entries.settle(() => true);
  return entries.view();
}

describe("the log", () => {
  test("prints every final thing of a run once and in order, however its records come in", async () => {
    const { live, runId } = await play(TROUBLED);
    const records = await readRecords(live.host, runId);
    const printedBy = (pauses: ReadonlySet<number>): string => {
      const reducer = reduceRun(runId);
      let printed = 0;
      const lines: Line[] = [];
      for (const [at, record] of records.entries()) {
        reducer.record(record);
        if (!pauses.has(at) && at < records.length - 1) continue;
        const more = logLines(reducer.view(), printed, 70);
        printed = more.printed;
        lines.push(...more.lines);
      }
      expect(logLines(reducer.view(), printed, 70).lines).toEqual([]);
      return textOf(lines);
    };
    const atOnce = printedBy(new Set());
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(records.length)), (pauses) => {
        expect(printedBy(new Set(pauses))).toBe(atOnce);
      }),
      { numRuns: 40 },
    );
    for (const once of ["execute · attempt 2", "sent back: only half of it", "review · visit 2", "✔ run completed"])
      expect(atOnce.split(once)).toHaveLength(2);
    expect(atOnce).toContain("test │ ");
    expect(atOnce.indexOf("next: test, lint")).toBeLessThan(atOnce.indexOf("test │ "));
    expect(atOnce.lastIndexOf("lint │ ")).toBeLessThan(atOnce.indexOf("── review · visit 2"));
    expect(atOnce).toContain('"summary": "fine"');
  });

  test("never prints what can still change: a call that asks waits with all that follows it", async () => {
    const { live, runId } = await play(ASKING, "deny");
    const records = await readRecords(live.host, runId);
    const asked = records.findIndex(({ events }) => events.some(({ type }) => type === "grant.requested"));
    const reducer = reduceRun(runId);
    for (const record of records.slice(0, asked + 1)) reducer.record(record);
    const before = logLines(reducer.view(), 0, 70);
    expect(textOf(before.lines)).not.toContain("change");
    for (const record of records.slice(asked + 1)) reducer.record(record);
    const after = logLines(reducer.view(), before.printed, 70);
    expect(textOf(after.lines)).toContain("change");
    expect(textOf(after.lines)).toContain("denied by ann: not now");
  });

  test("of a run that had a long life before, the last part is printed, and after that everything", () => {
    const entries = new ListBuilder<{ readonly item: TranscriptItem }>();
    const add = (count: number): void => {
      for (let at = 0; at < count; at += 1)
        entries.push({ item: { kind: "boundary", rank: "note", text: `note ${entries.length}`, tone: "plain" } });
      entries.settle(() => true);
    };
    add(1_000);
    const first = logLines(runView({ log: entries.view() }), 0, 60);
    expect(first.lines).toHaveLength(301);
    expect(textOf(first.lines)).toMatch(/^… 700 earlier items.*\n· note 700\n/);
    add(1_000);
    const more = logLines(runView({ log: entries.view() }), first.printed, 60);
    expect(more.lines).toHaveLength(1_000);
    expect(textOf(more.lines)).toMatch(/^· note 1000\n/);
  });

  test("a run that fails ends with its error", () => {
    const entries = new ListBuilder<{
      readonly item: {
        readonly kind: "end";
        readonly status: "failed";
        readonly error: { code: string; message: string };
      };
    }>();
    entries.push({ item: { kind: "end", status: "failed", error: { code: "turn_cap", message: "no plan\nat all" } } });
    entries.settle(() => true);
    expect(textOf(logLines(runView({ log: entries.view() }), 0, 60).lines)).toBe(
      "\n✖ run failed\n  no plan\n  at all (turn_cap)",
    );
  });

  test("fits any terminal, for any text of any speaker", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(hostileItem, hostileText), { maxLength: 4 }),
        fc.integer({ min: 1, max: 100 }),
        (all, width) => {
          const entries = new ListBuilder<{ item: TranscriptItem; key: string; sibling: string }>();
          for (const [item, sibling] of all) entries.push({ item, key: "k", sibling });
          entries.settle(() => true);
          expectToFit(logLines(runView({ log: entries.view() }), 0, width).lines, width);
        },
      ),
      { numRuns: 60 },
    );
  });
});
