import type { JsonObject, OpenRequest } from "@sluice/core";
import { visible } from "@sluice/core/runtime";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bodyLines, type CardFacts } from "../../packages/tui/src/cards/body.ts";
import { bodyWidth, cardLines, deferredLine } from "../../packages/tui/src/cards/card.ts";
import type { FileNow } from "../../packages/tui/src/cards/change.ts";
import type { Line } from "../../packages/view/src/text/line.ts";
import { widthOf } from "../../packages/view/src/text/width.ts";
import { deskOf, grant, HIDES_NOTHING, key, question, type TestDesk, typed } from "../support/desk.ts";

const text = (lines: readonly Line[]): string => lines.map(row).join("\n");
const holding = (now: string): FileNow => ({ kind: "text", text: now, hiding: HIDES_NOTHING });
const row = (line: Line): string => line.map((span) => span.text).join("");

function bodyOf(request: OpenRequest, facts: CardFacts = {}, width = 78, all = false): readonly Line[] {
  const card = deskOf(request).up?.card;
  return card === undefined ? [] : bodyLines(card, facts, width, all);
}

function drawn(at: TestDesk, width = 80, height = 24, facts: CardFacts = {}) {
  const up = at.up;
  if (up === undefined) throw new Error("no card is up");
  const view = cardLines(at.stack, bodyLines(up.card, facts, bodyWidth(width), up.open.all), { width, height, now: 0 });
  if (view === undefined) throw new Error("no card was drawn");
  at.show(view.key, view.shown);
  return view;
}

const edit = (old: string, now: string, file: FileNow | undefined, more: JsonObject = {}, width = 78): string => {
  const request = grant({ file_path: "src/a.ts", old_string: old, new_string: now, ...more }, { tool: "Edit" });
  return text(bodyOf(request, file === undefined ? {} : { file }, width));
};

describe("a card says", () => {
  test("who asks for what, and how many wait", () => {
    const request = grant({ command: "npm i" }, { runId: "r1/fan-2/test", requestId: "test#2/a3/t4.c1" });
    const head = text(drawn(deskOf(request, grant({ command: "ls" }))).lines.slice(0, 2)).replaceAll(/\s*\n▌ /g, " ");
    expect(head).toBe(
      "▌ □ Grant 1 of 2 waiting · test · Bash · visit 2 · attempt 3 · turn 4 · proposal t4.c1 · sibling test · run r1",
    );
  });

  test("a command as it is, and its other arguments", () => {
    const shown = text(bodyOf(grant({ command: "npm test\nrm -rf build", timeout: 5 })));
    expect(shown).toContain('│ npm test\n│ rm -rf build\nand:\n│ {\n│   "timeout": 5\n│ }');
  });

  test("all arguments of any other tool as JSON", () => {
    expect(text(bodyOf(grant({ to: ["a"], deep: { n: null } }, { tool: "mcp__mail__send" })))).toContain(
      '│ {\n│   "to": [\n│     "a"\n│   ],\n│   "deep": {\n│     "n": null\n│   }\n│ }',
    );
  });

  test("where links lead, why it asks, what the stage may do, and the digest", () => {
    const body = { touches: [{ access: "write", path: "/work/src/a.ts" }], why: "src/a.ts is outside Edit(docs/**)" };
    const request = grant({ command: "ls" }, { body });
    const shown = text(bodyOf(request, { tools: ["Read", "Edit(docs/**)"], turnCap: 20 }));
    expect(shown).toContain("It writes: │ /work/src/a.ts");
    expect(shown).toContain("Why it needs approval: │ src/a.ts is outside Edit(docs/**)");
    expect(shown).toContain("The stage may use: Read, Edit(docs/**); 20 turns per attempt");
    expect(shown).toContain(`Digest of the arguments: ${request.digest.slice(0, 12)}`);
    expect(shown).not.toContain(request.digest);
    expect(text(bodyOf(request, {}, 78, true)).replaceAll("\n", "")).toContain(request.digest);
    expect(text(bodyOf(request, { tools: [] }))).toContain("no tool without approval");
  });

  test("what a schema filled in, beside what the digest is of", () => {
    const request = grant({ a: 1 }, { tool: "X", body: { input: { a: 1, b: 2 }, proposed: { a: 1 } } });
    const shown = text(bodyOf(request, {}, 200));
    expect(shown.indexOf('"b": 2')).toBeLessThan(shown.indexOf("The digest covers"));
    expect(shown.match(/"a": 1/g)).toHaveLength(2);
  });

  test("where a step would lead and why, with everything else that was asked", () => {
    const body = { from: "review", to: "deploy", why: "a person decides", version: 3 };
    const request: OpenRequest = { ...grant({}), kind: "approveTransition", body };
    expect(text(bodyOf(request))).toContain(
      '│ review -> deploy\nWhy it needs approval: │ a person decides\nwith:\n│ {\n│   "version": 3',
    );
  });

  test("a question, and what its answer has to hold", () => {
    const schema = { type: "object", properties: { n: { type: "number" }, note: {} }, required: ["n"] };
    expect(text(bodyOf(question(schema, "How many?\nAnd why?")))).toBe(
      "│ How many?\n│ And why?\nThe answer is JSON with:\n│ n: number, required\n│ note",
    );
  });

  test("at each answer how many lines were not shown, as at an approval", () => {
    const at = deskOf();
    at.ask([question({ enum: ["run", "reject"] }, "line\n".repeat(40))]);
    const shown = text(drawn(at, 80, 16).lines);
    expect(shown).toMatch(/answer: run · \d+ lines not shown\n▌ {3}answer: reject · \d+ lines not shown\n/);
    expect(shown).toMatch(/Decline to answer\n/);
  });

  test.each([
    [["no", false, "yes"], '"no"', "false", '"yes"'],
    [["no", "no ", "yes"], '"no"', '"no "', '"yes"'],
    [[1, "1"], "1", '"1"'],
    [["No", "no"], '"No"', '"no"'],
    [["no", "yes"], "no", "yes"],
  ])("answers that could be taken for each other as JSON: %j", (values, ...shown) => {
    const rows = text(drawn(deskOf(question({ enum: values }))).lines);
    for (const one of shown) expect(rows).toContain(`answer: ${String(one)}\n`);
  });

  test("every blank of a question, at every width", () => {
    const blanks = [" ", "  ", "   ", " ".repeat(66)];
    const asked = blanks.map((blank) => question({ enum: ["run"] }, `if "refused" (output equals "no${blank}thanks")`));
    for (let width = 20; width <= 140; width += 1) {
      const shown = asked.map((request) => text(bodyOf(request, {}, width)));
      expect([width, new Set(shown).size]).toEqual([width, blanks.length]);
      for (const one of shown) expect(one).not.toMatch(/ $/mu);
    }
  });

  test("choices by their values, with a mark at what is selected and words for yes and no", () => {
    const at = deskOf(question({ type: "boolean" }));
    expect(text(drawn(at).lines)).not.toContain("❯");
    at.press(key("tab"));
    at.press(key("down"));
    expect(text(drawn(at).lines)).toContain("▌ ❯ answer: yes\n▌   answer: no\n▌   Decide later\n▌   Decline to answer");
  });

  test("answers that differ in what cannot be seen, or only at their end, so that they differ here too", () => {
    const long = "the same words over and over, ".repeat(4);
    const at = deskOf(question({ enum: ["yes", "yes\u200b", `${long}here`, `${long}there`] }));
    const shown = text(drawn(at, 60).lines);
    expect(shown).toContain("answer: yes\n");
    expect(shown).toContain("answer: yes·U+200B\n");
    expect(shown).toMatch(/over, here\n[\s\S]*there\n/);
  });

  test("that it waits, and how to get to it, where all was put off", () => {
    const at = deskOf(grant({ command: "ls" }));
    for (const name of ["tab", "down", "down", "enter"] as const) at.press(key(name));
    expect(row(deferredLine(at.stack, 80) ?? [])).toBe("▌ 1 deferred request waits · Tab shows it");
    expect(deferredLine(deskOf().stack, 80)).toBeUndefined();
  });
});

describe("a change", () => {
  const lines = (...of: readonly string[]): string => `${of.join("\n")}\n`;
  const file: FileNow = holding(lines("one", "two", "three", "four", "five", "six", "seven"));

  test("by Edit is a diff against the file", () => {
    expect(edit("six", "6", file)).toContain(
      "│ src/a.ts\nIt changes one occurrence:\n│ ⋯ 2 same\n│ 3   three\n│ 4   four\n│ 5   five\n│ 6 - six\n│ 6 + 6\n│ 7   seven",
    );
  });

  test("shows no secrets of the file beside it, and what it would write as it is", () => {
    const key = ["-----BEGIN PRIVATE KEY-----", "MIIB", "-----END PRIVATE KEY-----"];
    const sk = `sk-${"a1".repeat(10)}`;
    const hiding = {
      text: (one: string) => one.replaceAll("k7own", "[redacted:K]").replaceAll(sk, "[redacted:api-key]"),
      known: (one: string) => one.replaceAll("k7own", "[redacted:K]"),
    };
    const now: FileNow = { kind: "text", text: lines(...key, `a ${sk}`, "x k7own old", "b"), hiding };
    const shown = edit("old", `new ${sk}`, now);
    expect(shown).toContain("│ 3   [redacted:private-key]\n│ 4   a [redacted:api-key]\n│ 5 - x [redacted:K] old\n");
    expect(shown).toContain(`│ 5 + x [redacted:K] new ${sk}\n│ 6   b`);
    const whole = text(bodyOf(grant({ file_path: "src/a.ts", content: `${sk}\n` }, { tool: "Write" }), { file: now }));
    expect(whole).toContain(`+ ${sk}`);
    expect(whole).not.toMatch(/MIIB|k7own|- .*sk-/);
  });

  test("of every place says how many there are", () => {
    const shown = edit("e", "E", file, { replace_all: true });
    expect(shown).toContain("It changes all 6 occurrences:");
    expect(shown).toContain("│ 1 - one\n│ 1 + onE\n│ 2   two");
    expect(shown).toContain("+ sEvEn");
  });

  test.each([
    ["nine", file, "the file does not contain it"],
    ["e", file, "more than once"],
    ["six", { kind: "absent" } as const, "the file does not exist"],
    ["six", { kind: "unread", why: "it is too large" } as const, "it is too large"],
    ["six", undefined, "at its only occurrence"],
  ])("that cannot be compared shows both texts whole: %s in %o", (old, now, why) => {
    const shown = edit(old, "new\ntext", now);
    expect(shown.replaceAll("\n", " ")).toContain(why);
    expect(shown).toContain(`│ - ${old}\nwith:\n│ + new\n│ + text`);
  });

  test("of more than a card shows is not compared: both texts stand there whole", () => {
    const big: FileNow = holding("e".repeat(150_000));
    const every = edit("e", "f", big, { replace_all: true }, 200);
    expect(every).toContain(
      "everywhere in the file (not compared with the file: the change is too long):\n│ - e\nwith:\n│ + f",
    );
    const shown = text(bodyOf(grant({ file_path: "b", content: "a\nb" }, { tool: "Write" }), { file: big }, 200));
    expect(shown).toContain("The whole content (not compared with the file: the change is too long):\n│ + a\n│ + b");
  });

  test("by Write is a diff, or all of a new file", () => {
    const write = (content: string, now?: FileNow): string =>
      text(bodyOf(grant({ file_path: "b", content }, { tool: "Write" }), now === undefined ? {} : { file: now }));
    expect(write(lines("one", "2"), file)).toContain("It replaces the whole file:\n│ 1   one\n│ 2 - two");
    expect(write("a\nb", { kind: "absent" })).toContain("A new file with:\n│ + a\n│ + b");
    expect(write("one", holding("one\n"))).toContain("The line break at the end is removed.");
    expect(write("one\n", holding("one\n"))).toContain("The file already has this content");
  });

  test("in a file of CR LF lines is compared without them, and a CR anywhere else is shown", () => {
    const crlf: FileNow = holding("one\r\ntwo\r\n");
    expect(edit("two\n", "2\n", crlf)).toContain("(its lines end in CR LF):\n│ 1   one\n│ 2 - two\n│ 2 + 2");
    expect(edit("one", "1\r", holding("one\n"))).toContain("+ 1·U+000D");
  });

  test.each<JsonObject>([{ force: true }, { replace_all: "yes" }, { content: "x" }])(
    "with an argument that a diff would hide is shown as JSON: %o",
    (more) => {
      const shown = edit("two", "2", file, more);
      expect(shown).toContain('"old_string": "two"');
      expect(shown).toContain(JSON.stringify(Object.values(more)[0]));
    },
  );
});

describe("a text that is decided upon", () => {
  const shownIn = (command: string, width: number): readonly string[] =>
    bodyOf(grant({ command }, { body: { why: "" } }), {}, width)
      .map(row)
      .filter((line) => /^[│┆]/.test(line));

  test("is broken without losing a space, and rows that continue differ from lines", () => {
    expect(shownIn("rm -rf ./build .  /tmp\nls", 12)).toEqual(
      ["│ rm -rf ./b", "┆ uild .␣␣/t", "┆ mp", "│ ls"].map((line) => line.replace(".␣␣/", ".  /")),
    );
    expect(shownIn("aaaaaaaaaa bb", 12)).toEqual(["│ aaaaaaaaaa", "┆ ␣bb"]);
    expect(shownIn("aaaaaaaaa bb", 12)).toEqual(["│ aaaaaaaaa␣", "┆ bb"]);
    expect(shownIn("touch a ", 40)).toEqual(["│ touch a␣"]);
  });

  test("shows what cannot be seen", () => {
    const command = "echo \u202esafe\u202c \u200b\u2066x\t\u001b[8mrm\u001b]52;c;AAAA\u0007\u{e0061}\u00a0\r";
    expect(shownIn(command, 200)).toEqual([
      "│ echo ·U+202Esafe·U+202C ·U+200B·U+2066x→·U+001B[8mrm·U+001B]52;c;AAAA·U+0007·U+E0061·U+00A0·U+000D",
    ]);
  });

  test("put together again is the text: nothing is added or lost at any width", () => {
    const letters = fc.constantFrom("a", "b", " ", "/", ".", "字", "e");
    fc.assert(
      fc.property(fc.array(letters, { minLength: 1, maxLength: 120 }), fc.integer({ min: 6, max: 40 }), (of, width) => {
        const command = of.join("");
        const shown = shownIn(command, width).map((line) => line.slice(2).replaceAll("␣", " "));
        expect(shown.join("")).toBe(command);
      }),
      { numRuns: 100 },
    );
  });
});

describe("a card", () => {
  const hostile = fc
    .array(
      fc.oneof(
        fc.string({ unit: "binary", maxLength: 20 }),
        fc.constantFrom(
          "\u001b[2J",
          "\u001b]8;;http://x\u0007",
          "\u202e",
          "\u200b",
          "\n",
          "\r\n",
          "字".repeat(30),
          "▌ ■ Grant",
          "é".repeat(5),
          "👩‍👩‍👧‍👦",
          "a\u0300\u0301\u0302\u0303\u0304",
          "x".repeat(500),
          "\t",
        ),
      ),
      { maxLength: 12 },
    )
    .map((parts) => parts.join("").toWellFormed());
  const request = fc
    .tuple(hostile, hostile, hostile, fc.constantFrom("Bash", "Edit", "Write", "Other"), fc.integer({ min: 0, max: 4 }))
    .map(([one, two, id, tool, kind]): OpenRequest => {
      if (kind === 0) return question({ type: "string", enum: [one, two, "c"] }, id);
      if (kind === 1)
        return { ...question({ type: "object", properties: { [one]: { type: two } } }, id), runId: `r1/fan/${two}` };
      if (kind === 2)
        return { ...grant({}), kind: "approveTransition", body: { from: one, to: two, why: id, [one]: two } };
      const input =
        {
          Bash: { command: one, [two]: id },
          Edit: { file_path: id, old_string: one, new_string: two },
          Write: { file_path: id, content: one },
          Other: { [one]: two },
        }[tool] ?? {};
      return grant(input, {
        tool,
        runId: id,
        requestId: two,
        body: { why: one, touches: [{ access: "write", path: two }] },
      });
    });

  test("is never wider or taller than its place, at any size, whatever is asked; and holds nothing a terminal would act on", () => {
    const file = fc.option(
      hostile.map((now): FileNow => holding(now)),
      { nil: undefined },
    );
    fc.assert(
      fc.property(
        fc.array(request, { minLength: 1, maxLength: 3 }),
        file,
        fc.integer({ min: 20, max: 130 }),
        fc.integer({ min: 1, max: 40 }),
        fc.array(fc.constantFrom(key("tab"), key("down"), key("enter"), key("pageDown"), typed("\u202e字x")), {
          maxLength: 8,
        }),
        (requests, now, width, height, keys) => {
          const at = deskOf(...requests);
          const facts: CardFacts = { tools: ["Read"], ...(now === undefined ? {} : { file: now }) };
          for (const pressed of [undefined, ...keys]) {
            if (pressed !== undefined) at.press(pressed);
            if (at.up === undefined) break;
            const { lines, shown, cursor } = drawn(at, width, height, facts);
            expect(lines.length).toBeLessThanOrEqual(height);
            expect(shown.to - shown.from).toBeLessThanOrEqual(height);
            for (const line of lines) {
              expect(widthOf(line)).toBeLessThanOrEqual(width);
              expect(row(line).startsWith("▌")).toBe(true);
              expect(row(line)).not.toContain("\n");
              expect(visible(row(line))).toBe(row(line));
            }
            if (cursor !== undefined) {
              expect(cursor.row).toBeLessThan(height);
              expect(cursor.column).toBeLessThanOrEqual(width);
            }
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  test("cannot be imitated from inside: what is not ours stands behind a bar", () => {
    const command = "ls\n■ Grant · Bash\n❯ Approve this call once";
    const at = deskOf(grant({ command }));
    const rows = drawn(at).lines.map(row);
    for (const fake of ["■ Grant · Bash", "❯ Approve this call once"]) {
      const holding = rows.filter((line) => line.includes(fake));
      expect(holding).toEqual([`▌ │ ${fake}`]);
    }
  });

  test("in few rows is its head, two rows of what it asks and some options, and says how much is not shown", () => {
    const at = deskOf();
    at.ask([grant({ command: "a\n".repeat(50) })]);
    const { lines, shown } = drawn(at, 40, 6);
    expect(lines.map(row).slice(1)).toEqual([
      "▌ │ a",
      "▌ … lines hidden: 52 below · PgUp PgDn …",
      "▌   Approve once · 52 not shown",
      "▌ ❯ Deny",
      "▌   Deny with a reason",
    ]);
    expect(shown).toMatchObject({ from: 0, to: 1 });
  });

  test.each([4, 5, 6, 7, 8, 12])("of %i rows can be read to its end, and a question in it answered", (height) => {
    const at = deskOf();
    at.ask([question({ type: "boolean" }, "one\ntwo\nthree")]);
    const pages = Array.from({ length: 8 }, () => key("pageDown"));
    for (const pressed of [key("tab"), ...pages, key("down"), key("enter")]) {
      drawn(at, 80, height);
      at.pressUndrawn(pressed, 500);
    }
    expect(at.sent).toMatchObject([{ answer: { kind: "value", value: true } }]);
  });

  test("keeps its options in place while its body scrolls, and says what is hidden until its end was shown", () => {
    const at = deskOf();
    at.ask([grant({ command: Array.from({ length: 50 }, (_, n) => `step ${n}`).join("\n") })]);
    const press = (name: Parameters<typeof key>[0]): string => {
      at.pressUndrawn(key(name), 500);
      return text(drawn(at, 80, 16).lines);
    };
    const first = text(drawn(at, 80, 16).lines);
    expect(first).toContain("step 0\n");
    expect(first).toMatch(/Approve this call once · \d+ lines not shown/);
    press("tab");
    const next = press("pageDown");
    expect(next).not.toContain("step 0\n");
    expect(next).toMatch(/lines hidden: \d+ above, \d+ below/);
    const last = press("end");
    expect(last).toContain("Digest");
    expect(last).toMatch(/Approve this call once\n/);
    expect(press("home")).toMatch(/Approve this call once\n/);
  });

  test("says by words and marks, not by colour, whether it has the keys", () => {
    const at = deskOf(grant({ command: "ls" }));
    expect(text(drawn(at).lines)).toMatch(/□ Grant[\s\S]*Tab focuses this card/);
    at.press(key("tab"));
    expect(text(drawn(at).lines)).toMatch(/■ Grant[\s\S]*❯ Deny\n[\s\S]*Esc denies this/);
  });

  test("shows a reason while it is written, with the cursor behind it", () => {
    const at = deskOf(grant({ command: "ls" }));
    for (const name of ["tab", "down", "enter"] as const) at.press(key(name));
    at.press(typed("too \u202elate"));
    const { lines, cursor } = drawn(at);
    const written = lines.map(row)[cursor?.row ?? -1];
    expect(written).toBe("▌ > too ·U+202Elate");
    expect(cursor?.column).toBe(written?.length);
  });

  test("with 10 MB on one line is drawn in part, says so, and cannot be approved", () => {
    const at = deskOf(grant({ command: `echo ${"x".repeat(10_000_000)}; rm -rf ~` }));
    const body = bodyOf(grant({ command: `echo ${"x".repeat(10_000_000)}; rm -rf ~` }));
    expect(body.length).toBeLessThan(200);
    expect(text(body)).toMatch(/9,99\d,\d+ characters are not shown here/);
    expect(text(body)).toContain("rm -rf ~");
    expect(text(drawn(at).lines)).toContain("Approve this call once · not here: it is too long to be shown whole");
  });

  test("with a question, an option or a name of 10 MB is short all the same", () => {
    const long = "字".repeat(5_000_000);
    const lines = drawn(
      deskOf({ ...question({ enum: [long, "b"] }, "short"), runId: `r1/${long}`, requestId: long }),
    ).lines;
    expect(lines.length).toBeLessThanOrEqual(24);
    expect(text(lines).length).toBeLessThan(4_000);
  });
});
