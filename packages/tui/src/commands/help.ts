import { type Line, wrap } from "@sluice/view/text";
import type { Command } from "../app/command.ts";
import { createViewer, fixedRows } from "../app/overlay/viewer.ts";

const KEYS: readonly (readonly [key: string, text: string])[] = [
  ["Enter", "submits; Alt+Enter, Ctrl+J or \\ and Enter start a new line"],
  ["Tab", "completes; if there is nothing to complete, focuses the open card"],
  ["Esc", "denies the call of a focused card; else closes what is open; else asks whether to cancel the run"],
  ["Up, Down", "go through earlier inputs; Ctrl+R searches them"],
  ["Ctrl+G", "edits the text in $VISUAL or $EDITOR"],
  ["Ctrl+O", "opens the full transcript of the stage on screen: arrows and PageUp scroll, / searches"],
  ["Ctrl+T", "shows every decision about a route, with the rows that it looked at"],
  ["Shift+Tab", "shows the next active stage"],
  ["Ctrl+C", "clears the line; twice on an empty line quits"],
  ["Ctrl+D", "on an empty line, quits; active runs are suspended and can be resumed"],
];

export const help: Command = {
  name: "help",
  description: "show commands and keys",
  usage: "",
  run: (_words, app) => {
    const lines = fixedRows((width) => [
      [{ text: "Commands", style: "heading" }],
      ...app.commands.flatMap(({ name, usage, description }) => entry(`/${name} ${usage}`, description, width)),
      [],
      [{ text: "Keys", style: "heading" }],
      ...KEYS.flatMap(([key, text]) => entry(key, text, width)),
      [],
      ...wrap([{ text: "@ completes a file. Text without a slash is a message for the next turn of the run." }], width),
    ]);
    app.show(createViewer("Help", lines));
  },
};

export const quit: Command = {
  name: "quit",
  description: "suspend the runs of this process and quit",
  usage: "",
  run: (_words, app) => app.quit(),
};

const INDENT = "  ";
const NAME_COLUMNS = 27;
const MIN_TEXT_COLUMNS = 40;

/** A name with its explanation beside it, or below if the name is long or the terminal narrow. */
function entry(name: string, text: string, width: number): readonly Line[] {
  const beside = width >= INDENT.length + NAME_COLUMNS + MIN_TEXT_COLUMNS;
  const indent = " ".repeat(beside ? INDENT.length + NAME_COLUMNS : INDENT.length * 2);
  const rows = wrap([{ text }], width - indent.length);
  const named = name.trimEnd();
  if (beside && named.length < NAME_COLUMNS)
    return rows.map((row, at) => [
      at === 0 ? { text: `${INDENT}${named.padEnd(NAME_COLUMNS)}`, style: "accent" } : { text: indent },
      ...row,
    ]);
  const names = wrap([{ text: named, style: "accent" }], width - INDENT.length);
  return [
    ...names.map((row): Line => [{ text: INDENT }, ...row]),
    ...rows.map((row): Line => [{ text: indent }, ...row]),
  ];
}
