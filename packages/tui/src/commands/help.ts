import { type Line, wrap } from "@sluice/view/text";
import { createViewer, fixedRows } from "../app/overlay/viewer.ts";
import type { Command } from "./command.ts";

const KEYS: readonly (readonly [key: string, what: string])[] = [
  ["Enter", "submits; Alt+Enter, Ctrl+J or \\ and Enter begin a new line"],
  ["Tab", "completes; with a card on the screen and nothing to complete, goes to the card"],
  ["Esc", "on a card: denies this one call; else closes what is open; else asks whether to cancel the run"],
  ["Up, Down", "earlier inputs; Ctrl+R searches them"],
  ["Ctrl+G", "edits the text in $VISUAL or $EDITOR"],
  ["Ctrl+O", "the transcript that is looked at, whole: arrows and PageUp scroll, / searches"],
  ["Shift+Tab", "looks at the next of the stages that are at work"],
  ["Ctrl+C", "empties the line; twice on an empty line quits"],
  ["Ctrl+D", "on an empty line quits; running runs are suspended and can be resumed"],
];

export const help: Command = {
  name: "help",
  description: "commands and keys",
  usage: "",
  run: (_words, app) => {
    const lines = fixedRows((width) => [
      [{ text: "Commands", style: "heading" }],
      ...app.commands.flatMap(({ name, usage, description }) => entry(`/${name} ${usage}`, description, width)),
      [],
      [{ text: "Keys", style: "heading" }],
      ...KEYS.flatMap(([key, what]) => entry(key, what, width)),
      [],
      ...wrap(
        [{ text: "@ names a file. Text without a slash goes to the run as a message for its next turn." }],
        width,
      ),
    ]);
    app.show(createViewer("Help", lines));
  },
};

export const quit: Command = {
  name: "quit",
  description: "suspend what runs here, and leave",
  usage: "",
  run: (_words, app) => app.quit(),
};

const INDENT = "  ";
/** Columns of what is explained, where there is room beside it. */
const NAMES = 26;
/** Columns that an explanation has at least. */
const LEAST = 40;

/** What is explained, and beside it what it does; below it where it is long or the terminal narrow. */
function entry(name: string, what: string, width: number): readonly Line[] {
  const beside = width >= INDENT.length + NAMES + 1 + LEAST;
  const indent = " ".repeat(beside ? INDENT.length + NAMES + 1 : INDENT.length * 2);
  const rows = wrap([{ text: what }], width - indent.length).map((row): Line => [{ text: indent }, ...row]);
  const [first = [], ...others] = rows;
  if (!beside || name.trimEnd().length > NAMES) {
    const names = wrap([{ text: name.trimEnd(), style: "accent" }], width - INDENT.length);
    return [...names.map((row): Line => [{ text: INDENT }, ...row]), ...rows];
  }
  return [[{ text: `${INDENT}${name.padEnd(NAMES)} `, style: "accent" }, ...first.slice(1)], ...others];
}
