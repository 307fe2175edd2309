import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Composer,
  type ComposerContext,
  createComposer,
  filesFound,
  update,
} from "../../packages/tui/src/composer/composer.ts";
import type { Editor } from "../../packages/tui/src/composer/editing/editor.ts";
import { wholeText } from "../../packages/tui/src/composer/editing/pastes.ts";
import { render } from "../../packages/tui/src/composer/editing/render.ts";
import type { Key } from "../../packages/tui/src/composer/keys.ts";
import { widthOf } from "../../packages/view/src/text/width.ts";
import { context, keyOf, pasteOf, shown } from "../support/composer.ts";

const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });

/** Letters that join, are wide, unseen or act on a terminal. */
const letter = fc.constantFrom(
  ...Array.from("ab Z9_.\\/@\"'"),
  "漢",
  "é",
  "\u0301",
  "👍",
  "\u200d",
  "👩",
  "🇩",
  "🇪",
  "\ufe0f",
  "\u1100",
  "\u1161",
  "\u200b",
  "\u202e",
  "\u001b",
  "\u0600",
  "नि",
  "\u{e0041}",
);
const text = fc.oneof(
  fc.string({ unit: letter, maxLength: 30 }),
  fc.string({ unit: fc.oneof(letter, fc.constantFrom("\n", "\r\n", "\r", "\t")), maxLength: 40 }),
  fc.string({ unit: "binary", maxLength: 20 }),
);
const longText = fc.oneof(
  text.map((part) => `${part}\n`.repeat(7)),
  text.map((part) => `${part}x`.repeat(1_001)),
);
const namedKey = fc.constantFrom(
  ..."enter escape tab backspace delete up down left right home end alt+left alt+right ctrl+left ctrl+right alt+enter".split(
    " ",
  ),
  ..."alt+backspace ctrl+home ctrl+end ctrl+_ alt+_ shift+tab pageUp".split(" "),
  ...Array.from("abdefghjknprsuwy", (key) => `ctrl+${key}`),
  ...Array.from("bdf", (key) => `alt+${key}`),
);
const key: fc.Arbitrary<Key> = fc.oneof(
  {
    weight: 5,
    arbitrary: letter.map((typed): Key => ({ name: "text", text: typed, ctrl: false, alt: false, shift: false })),
  },
  { weight: 2, arbitrary: text.map((pasted) => pasteOf(pasted)) },
  { weight: 1, arbitrary: longText.map((pasted) => pasteOf(pasted)) },
  { weight: 5, arbitrary: namedKey.map((name) => keyOf(name)) },
);
const keys = fc.array(key, { maxLength: 40 });
const size = fc.record({ width: fc.integer({ min: 1, max: 40 }), maxRows: fc.integer({ min: 1, max: 12 }) });

function around(width: number): ComposerContext {
  return { ...context, width };
}

/** The state after each key, with files found as soon as they are asked for. */
function* states(
  all: readonly Key[],
  width: number,
): Generator<{ readonly before: Composer; readonly updated: ReturnType<typeof update> }> {
  let state = createComposer(["earlier", "two\nlines", "/run x"]);
  for (const one of all) {
    const updated = update(state, one, around(width));
    yield { before: state, updated };
    state = updated.state;
    if (updated.effect?.kind === "find-files")
      state = filesFound(
        state,
        { query: updated.effect.query, files: ["a b.ts", "\u202ex\n.ts", "漢.md"] },
        around(width),
      );
  }
}

/** Offsets between graphemes, computed without the composer. */
function boundaries({ text: whole }: Editor): ReadonlySet<number> {
  const starts = Array.from(segmenter.segment(whole.replaceAll(/[\udc00-\udfff]/gu, "\n")), ({ index }) => index);
  return new Set([...starts, whole.length]);
}

test("whatever is pressed, the cursor stands between two graphemes and never inside a paste", () => {
  fc.assert(
    fc.property(keys, size, (all, { width }) => {
      for (const { updated } of states(all, width)) {
        const { editor } = updated.state;
        expect(boundaries(editor)).toContain(editor.cursor);
        const marks = editor.text.match(/[\udc00-\udfff]/gu) ?? [];
        expect(marks.every((mark) => mark.charCodeAt(0) - 0xdc00 < editor.pastes.length)).toBe(true);
      }
    }),
    { numRuns: 200 },
  );
});

test("whatever is pressed, the screen fits, holds the cursor, and nothing on it acts on a terminal", () => {
  fc.assert(
    fc.property(keys, size, (all, { width, maxRows }) => {
      for (const { updated } of states(all, width)) {
        const { lines, cursor } = render(updated.state, { width, maxRows, placeholder: "say something" });
        expect(lines.length).toBeGreaterThan(0);
        expect(lines.length).toBeLessThanOrEqual(maxRows);
        for (const line of lines) {
          expect(widthOf(line.map((span) => span.text).join(""))).toBeLessThanOrEqual(width);
          for (const span of line) expect(span.text).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
        }
        expect(cursor.row).toBeLessThan(lines.length);
        expect(cursor.row).toBeGreaterThanOrEqual(0);
        expect(cursor.column).toBeLessThan(Math.max(2, width));
      }
    }),
    { numRuns: 200 },
  );
});

test("undoing to the beginning leads to the empty text", () => {
  fc.assert(
    fc.property(keys, (all) => {
      let state = createComposer();
      for (const { updated } of states(all, 40)) state = updated.state;
      const { search: _, ...rest } = state;
      state = rest;
      for (let left = 2_000; left > 0 && state.editor.past.undo.length > 0; left -= 1)
        state = update(state, keyOf("ctrl+_"), context).state;
      expect(state.editor.text).toBe("");
    }),
    { numRuns: 200 },
  );
});

test("undo and redo take the same way back and forth", () => {
  fc.assert(
    fc.property(keys, (all) => {
      let state = createComposer();
      for (const { updated } of states(all, 40)) state = updated.state;
      const { search: _, ...rest } = state;
      const { editor } = rest;
      if (editor.past.undo.length === 0) return;
      const back = update(rest, keyOf("ctrl+_"), context).state;
      const again = update(back, keyOf("alt+_"), context).state.editor;
      expect(wholeText(again)).toBe(wholeText(editor));
    }),
    { numRuns: 200 },
  );
});

test("a submit gives exactly what was typed and pasted", () => {
  const part = fc.oneof(
    letter.map((typed) => ({ typed })),
    text.map((pasted) => ({ pasted })),
    longText.map((pasted) => ({ pasted })),
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 30 }), (parts) => {
      let state = createComposer();
      let expected = "";
      for (const one of [...parts, { pasted: "end" }]) {
        const typed = "typed" in one;
        // Control characters come as keys, never as text.
        if (typed && /\p{Cc}/u.test(one.typed)) continue;
        state = update(state, typed ? keyOf(one.typed) : pasteOf(one.pasted), context).state;
        expected += (typed ? one.typed : one.pasted).replaceAll(/\r\n?/g, "\n").toWellFormed();
      }
      if (state.palette !== undefined) state = update(state, keyOf("escape"), context).state;
      expect(update(state, keyOf("enter"), context).effect).toMatchObject({ kind: "submit", text: expected });
    }),
    { numRuns: 200 },
  );
});

test("a submit gives what stands in the text, or the command whose row was chosen", () => {
  fc.assert(
    fc.property(keys, (all) => {
      for (const { before, updated } of states(all, 40)) {
        if (updated.effect?.kind !== "submit") continue;
        if (before.palette === undefined) expect(updated.effect.text).toBe(wholeText(before.editor));
        else expect([wholeText(before.editor), "/help", "/runs", "/quit", "/resume"]).toContain(updated.effect.text);
      }
    }),
    { numRuns: 200 },
  );
});

type Unit = string;

test("letters, pastes, moves and deletions do what they do to a list of units", () => {
  const step = fc.oneof(
    fc.constantFrom("a", "b", " ").map((typed) => ({ typed })),
    fc.constantFrom("one\ntwo", "x\n".repeat(8), "y".repeat(1_500)).map((pasted) => ({ pasted })),
    fc.constantFrom("left", "right", "backspace", "delete", "ctrl+home", "ctrl+end").map((name) => ({ name })),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let state = createComposer();
      let units: readonly Unit[] = [];
      let at = 0;
      for (const one of steps) {
        if ("name" in one) {
          state = update(state, keyOf(one.name), context).state;
          if (one.name === "backspace") units = units.filter((_, index) => index !== at - 1);
          if (one.name === "delete") units = units.filter((_, index) => index !== at);
          if (one.name === "left" || one.name === "backspace") at = Math.max(0, at - 1);
          else if (one.name === "right") at = Math.min(units.length, at + 1);
          else if (one.name !== "delete") at = one.name === "ctrl+home" ? 0 : units.length;
        } else {
          const typed = "typed" in one;
          state = update(state, typed ? keyOf(one.typed) : pasteOf(one.pasted), context).state;
          const added = typed ? [one.typed] : one.pasted.length > 10 ? [one.pasted] : Array.from(one.pasted);
          units = [...units.slice(0, at), ...added, ...units.slice(at)];
          at += added.length;
        }
        expect(shown(state)).toBe(`${units.slice(0, at).join("")}|${units.slice(at).join("")}`);
      }
    }),
    { numRuns: 200 },
  );
});
