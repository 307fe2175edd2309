import type { Json } from "@sluice/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { callCard } from "../../packages/tui/src/run/call-card.ts";
import type { CallView } from "../../packages/view/src/projection/run-view.ts";
import { faultsIn, hugeTexts, nastyText, plainRows, someWidth } from "../support/nasty-text.ts";

const width = 60;
const call = (tool: string, input: Json | undefined, more: Partial<CallView> = {}): CallView => ({
  kind: "call",
  attempt: 1,
  turn: 1,
  callId: "t1.c0",
  tool,
  input,
  state: "ok",
  ...more,
});
const folded = (view: CallView, columns = width): readonly string[] =>
  plainRows(callCard(view, { width: columns, folded: true }));
const open = (view: CallView, maxLines = 40): readonly string[] =>
  plainRows(callCard(view, { width, folded: false, maxLines }));
const bash = (command: string, more: Partial<CallView> = {}): CallView => call("Bash", { command }, more);

describe("the head of a call", () => {
  test.each([
    ["proposed", "○ Bash ls  pending"],
    ["asking", "◆ Bash ls  waiting for you"],
    ["running", "▶ Bash ls  running"],
    ["ok", "✔ Bash ls  done"],
    ["error", "✖ Bash ls  failed"],
    ["refused", "⊘ Bash ls  refused"],
    ["abandoned", "⊘ Bash ls  abandoned"],
    ["outcome_unknown", "✖ Bash ls  outcome unknown"],
  ] as const)("%s has a sign and a word", (state, expected) => {
    expect(folded(bash("ls", { state }))).toEqual([expected]);
  });

  test.each([
    ["Read", { file_path: "src/a.ts", offset: 3 }, "Read src/a.ts"],
    ["Write", { file_path: "src/a.ts", content: "x" }, "Write src/a.ts"],
    ["Edit", { file_path: "src/a.ts", old_string: "a", new_string: "b" }, "Edit src/a.ts"],
    ["Grep", { pattern: "a+b", path: "src" }, "Grep a+b in src"],
    ["Glob", { pattern: "**/*.ts" }, "Glob **/*.ts"],
    ["AskUser", { question: "Which one?" }, "AskUser Which one?"],
    [
      "mcp__web__fetch",
      { url: "http://a.b", n: 2, tags: ["x"], more: 1 },
      "mcp__web__fetch url: http://a.b, n: 2, tags: [1]",
    ],
    ["Unknown", {}, "Unknown"],
    ["Unknown", undefined, "Unknown"],
    ["Read", { file_path: 7 }, "Read"],
  ])("of %s %j tells what sets it apart", (tool, input, expected) => {
    expect(folded(call(tool, input), 90)).toEqual([`✔ ${expected}  done`]);
  });

  test("time, changed lines and exit code are shown where there are any", () => {
    expect(folded(bash("ls", { ms: 12 }))).toEqual(["✔ Bash ls  done · 12 ms"]);
    expect(folded(bash("ls", { ms: 1_240 }))).toEqual(["✔ Bash ls  done · 1.2 s"]);
    expect(folded(bash("ls", { ms: 125_000 }))).toEqual(["✔ Bash ls  done · 2 min 5 s"]);
    expect(folded(bash("ls", { state: "error", facts: { exitCode: 2 } }))).toEqual(["✖ Bash ls  failed exit 2"]);
    const edit = call("Edit", { file_path: "a" }, { facts: { added: 2, removed: 1 } });
    expect(folded(edit)).toEqual(["✔ Edit a  done +2 −1"]);
    expect(folded(bash("ls", { facts: { exitCode: "rm\u202e", added: {} } }))).toEqual(["✔ Bash ls  done"]);
  });

  test("a long argument is cut, the outcome stays", () => {
    expect(folded(bash("x".repeat(500), { ms: 5 }), 40)).toEqual([`✔ Bash ${"x".repeat(19)}…  done · 5 ms`]);
    expect(folded(bash("ls -la", { ms: 5 }), 20)).toEqual(["✔ Bash  done · 5 ms"]);
  });

  test("a second row says why a call came to nothing", () => {
    expect(folded(bash("rm a", { state: "refused", why: "not in this stage" }))[1]).toBe("  │ not in this stage");
    const output = { code: "stale_file", message: "Read it again." };
    expect(folded(bash("a", { state: "error", output }))[1]).toBe("  │ stale_file: Read it again.");
    expect(folded(bash("a", { state: "error", output: "Exit code 1\nfirst\nlast\n" }))[1]).toBe("  │ last");
    expect(folded(bash("a", { output: "fine" }))).toHaveLength(1);
  });
});

describe("an unfolded call", () => {
  test("shows a command as it is run, and its other arguments", () => {
    expect(open(call("Bash", { command: "ls\u200b -la\necho  two", timeout: 5 }))).toEqual([
      "✔ Bash ls·U+200B -la⏎echo  two  done",
      "  │ $ ls·U+200B -la",
      "  │   echo  two",
      "  │ timeout: 5",
    ]);
  });

  test("shows the change of an Edit", () => {
    expect(
      open(call("Edit", { file_path: "a", old_string: "x", new_string: "y" }, { state: "asking", why: "outside" })),
    ).toEqual(["◆ Edit a  waiting for you", "  │ a  +1 −1", "  │ - x", "  │ + y", "  │ ", "  │ ◆ outside"]);
  });

  test("shows all arguments of other tools, whatever they are", () => {
    expect(open(call("mcp__a__b", { s: "x\u202e\ny", list: [1, { k: null }], none: {}, yes: true })).slice(1)).toEqual([
      '  │ s: "x·U+202E\\ny"',
      "  │ list:",
      "  │   - 1",
      "  │   -",
      "  │     k: null",
      "  │ none: {}",
      "  │ yes: true",
    ]);
    expect(open(call("X", "words")).slice(1)).toEqual(['  │ "words"']);
    expect(open(call("X", undefined)).slice(1)).toEqual(["  │ its arguments could not be parsed"]);
  });

  test("of a long text among the arguments says how much is missing", () => {
    const rows = open(call("X", { a: "x".repeat(5_000), b: 1 }), 80);
    expect(rows.map((row) => row.slice(4)).join(" ")).toContain("… 3000 characters more");
    expect(rows.at(-1)).toBe("  │ b: 1");
  });

  test("shows the beginning and the end of a long result", () => {
    const output = Array.from({ length: 100 }, (_, at) => `row ${at}`).join("\n");
    const rows = open(bash("ls", { output }), 12);
    expect(rows).toHaveLength(12);
    expect(rows.slice(3)).toEqual(
      ["row 0", "row 1", "row 2", "row 3", "row 4", "row 5", "… 92 lines more", "row 98", "row 99"].map(
        (row) => `  │ ${row}`,
      ),
    );
  });

  test("a result shorter than the room is whole", () => {
    expect(open(bash("ls", { output: "a\n\n\u001b[31mb\u001b[0m\n" })).slice(3)).toEqual(["  │ a", "  │ ", "  │ b"]);
  });

  test("an error shows its reason, what else is known, and what was printed", () => {
    const output = { code: "timeout", message: "It took too long.", exit_code: null, output: "one\ntwo" };
    expect(open(bash("a", { state: "error", output })).slice(3)).toEqual([
      "  │ ✖ timeout: It took too long.",
      "  │ exit_code: null",
      "  │ one",
      "  │ two",
    ]);
  });

  test("the output that the model got is shown where it is not the reason", () => {
    const output = { code: "tool_call_denied", reason: "another" };
    expect(open(bash("a", { state: "refused", why: "said by a person", output })).slice(3)).toEqual([
      "  │ ⊘ said by a person",
      '  │ code: "tool_call_denied"',
      '  │ reason: "another"',
    ]);
  });
});

const json = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constant(null),
    fc.boolean(),
    fc.integer(),
    nastyText(15),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(nastyText(5), tie("value"), { maxKeys: 3 }),
  ),
})).value;

test("whatever a model and a tool say, rows fit, are as many as allowed and hold nothing that a terminal acts on", () => {
  const tool = fc.oneof(fc.constantFrom("Read", "Grep", "Edit", "Write", "Bash", "AskUser"), nastyText(8));
  const known = fc.record({
    file_path: nastyText(9),
    old_string: nastyText(9),
    new_string: nastyText(9),
    content: nastyText(9),
    command: nastyText(9),
    question: nastyText(9),
  });
  const state = fc.constantFrom(...(["asking", "ok", "error", "refused", "outcome_unknown"] as const));
  fc.assert(
    fc.property(
      tool,
      fc.oneof(json, known),
      state,
      nastyText(9),
      json,
      someWidth,
      fc.boolean(),
      (name, input, how, why, output, columns, isFolded) => {
        const lines = callCard(call(name, input, { state: how, why, output }), {
          width: columns,
          folded: isFolded,
          maxLines: 20,
        });
        expect(faultsIn(lines, columns)).toEqual([]);
        expect(lines.length).toBeLessThanOrEqual(20);
        expect(lines.length).toBeGreaterThan(0);
      },
    ),
    { numRuns: 300 },
  );
});

test.each(hugeTexts)("10 MB of %s in arguments and result give a bounded number of bounded rows", (_, huge) => {
  for (const view of [
    bash(huge, { output: huge }),
    call("mcp__a__b", { a: huge }, { state: "error", output: { message: huge, more: huge } }),
    call("Write", { file_path: huge, content: huge }),
  ]) {
    for (const isFolded of [true, false]) {
      const lines = callCard(view, { width: 80, folded: isFolded, maxLines: 50 });
      expect(lines.length).toBeLessThanOrEqual(50);
      expect(faultsIn(lines, 80)).toEqual([]);
    }
  }
});
