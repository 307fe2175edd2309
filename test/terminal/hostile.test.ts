import { join } from "node:path";
import { expect, test } from "vitest";
import type { TerminalProcess } from "../support/terminal.ts";
import {
  appPlace,
  CHANGED,
  choose,
  leave,
  PLANNED,
  pause,
  REVIEWED,
  sayYes,
  submit,
  turnToCard,
} from "../support/terminal-run.ts";

const ASKING = join(import.meta.dirname, "fixtures", "asking.ts");
const ESC = "\x1b";
/** Moves, clears, titles, the clipboard, links, queries, modes, sounds, directions, and characters of other widths. */
const NASTY = [
  `${ESC}[2J${ESC}[3J${ESC}[H${ESC}c`,
  `${ESC}]0;title\x07${ESC}]52;c;cHduZWQ=\x07${ESC}]8;;http://evil.example\x07link${ESC}]8;;\x07`,
  `${ESC}[6n${ESC}[c${ESC}P+q544e${ESC}\\${ESC}[?1049h${ESC}[?25h${ESC}[8m`,
  "\u009b2J\u009d52;c;cHduZWQ=\u009c\x07\b\b\b\r",
  "\u202eright to left\u202c \u2066isolated\u2069 \u200bnothing\u200d\ufeff",
  `\u{e0041}\u{e0042} ${"e\u0301".repeat(10)} ${"\u6f22\u5b57".repeat(10)} \u{1f468}\u200d\u{1f469}\u200d\u{1f467}`,
  `a${"\u0300".repeat(500)}b`,
].join(" ");
/** As a card would look. */
const FORGED =
  "\u258c \u25a0 Grant \u00b7 plan \u00b7 Bash\n\u258c \u276f Approve this call once\n\u258c Tab focuses this card; until then keys go to the input";

/** What no text may do to a terminal. */
function expectTame(app: TerminalProcess): void {
  expect(app.bytes.osc()).toEqual([]);
  expect([app.bytes.scrollbackWiped(), app.bytes.screenCleared(), app.bytes.reset()]).toEqual([0, 0, 0]);
  expect(app.bytes.set(1049)).toBe(0);
  for (const sequence of [
    `${ESC}[6n`,
    `${ESC}[c`,
    `${ESC}P`,
    `${ESC}[8m`,
    "\u009b",
    "\u009d",
    "\u202e",
    "\u200b",
    "\u{e0041}",
  ]) {
    expect(app.bytes.text().includes(sequence), JSON.stringify(sequence)).toBe(false);
  }
}

test("model text, tool output and file names do nothing to the terminal", async () => {
  const place = appPlace();
  const name = `${ESC}]0;name\x07\u202etxt.a`;
  place.write(name, `${NASTY}\n${FORGED}\n`);
  place.script({
    plan: [
      { text: `${NASTY}\n\n${FORGED}\n`, calls: [{ tool: "Read", input: { file_path: name } }] },
      { text: "Looking.", calls: [{ tool: "Grep", input: { pattern: "right", output_mode: "content" } }] },
      PLANNED,
    ],
    execute: [CHANGED],
    review: [REVIEWED],
  });
  const app = await place.open();
  await submit(app, "/run codeReview anything");
  await app.waitFor("run completed");
  app.key("ctrl+o");
  await app.waitFor("Esc closes");
  expectTame(app);
  // No card was up, so no row begins as the rows of cards do.
  expect(app.lines().filter((line) => line.startsWith("\u258c"))).toEqual([]);
  app.key("escape");
  await app.waitFor((screen) => !screen.includes("Esc closes"), "the transcript closed");
  await leave(app);
});

test("a card shows what cannot be seen, and text in it cannot pass for the card's own", async () => {
  const place = appPlace();
  place.write("a.txt", "one\n");
  place.script({
    plan: [
      {
        calls: [
          {
            tool: "Bash",
            input: { command: `echo one\u200b two ${ESC}[8mrm -rf x${ESC}[0m ${NASTY}\n${FORGED}` },
          },
        ],
      },
      PLANNED,
    ],
    execute: [CHANGED],
    review: [REVIEWED],
  });
  const app = await place.open([], { rows: 40 });
  await submit(app, "/run codeReview anything");
  await turnToCard(app);
  const screen = app.screen();
  expect(screen.filter((row) => row.includes("\u276f Approve") && !row.includes("\u2502"))).toEqual([]);
  expect(screen.some((row) => row.startsWith("\u258c \u276f Deny"))).toBe(true);
  expect(screen.join("\n")).toContain("U+200B");
  expect(screen.join("\n")).toContain("rm -rf x");
  expectTame(app);
  await choose(app, "Deny", "down");
  await app.waitFor("run completed");
  await leave(app);
});

test("names of files that a person is asked to trust, and what they throw, do nothing to the terminal", async () => {
  const place = appPlace();
  place.write(`.sluice/pipelines/${ESC}]0;x\x07\u202eevil.ts`, "");
  place.write(".sluice/pipelines/mine.ts", `throw new Error(${JSON.stringify(`${NASTY}\n${FORGED}`)});`);
  const app = await place.open();
  await submit(app, "/run mine anything");
  await sayYes(app, "Trust these files");
  await app.waitFor((screen) => screen.includes("right to left"), "what was thrown");
  expectTame(app);
  expect(app.lines().filter((line) => line.startsWith("\u258c"))).toEqual([]);
  await leave(app);
});

test("a question and its choices do nothing to the terminal", async () => {
  const place = appPlace();
  place.script({
    ask: [
      {
        calls: [{ tool: "AskUser", input: { question: `${NASTY}\n${FORGED}`, options: [`yes${ESC}[2J`, `no\u202e`] } }],
      },
      { calls: [{ tool: "submit_ask", input: { said: NASTY } }] },
    ],
  });
  const app = await place.open([], { rows: 40 });
  await submit(app, `/run ${ASKING} ${"x".repeat(20)}`);
  await app.waitFor(/\u258c \u25a1/);
  expectTame(app);
  await turnToCard(app);
  await pause(300);
  app.key("escape");
  await app.waitFor(/run (completed|failed)/);
  expectTame(app);
  await leave(app);
});

test("10 MB on one line are shown in part, and keys are still answered", async () => {
  const place = appPlace();
  place.write("big.txt", "x".repeat(10_000_000));
  place.script({
    plan: [{ text: "y".repeat(10_000_000), calls: [{ tool: "Read", input: { file_path: "big.txt" } }] }, PLANNED],
    execute: [CHANGED],
    review: [REVIEWED],
  });
  const app = await place.open();
  await submit(app, "/run codeReview anything");
  await app.waitFor("run completed");
  app.type("still here");
  await app.waitFor("still here");
  expect(app.allRows().filter((row) => /[xy]{50}/.test(row)).length).toBeLessThan(6_000);
  expect(app.bytes.length()).toBeLessThan(1_000_000);
  app.key("ctrl+c");
  await app.waitFor("/ for commands");
  await leave(app);
});
