import type { Line } from "../../text/line.ts";
import { createViewer, fixedRows } from "../viewer.ts";
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
    const lines = fixedRows(() => [
      [{ text: "Commands", style: "heading" }],
      ...app.commands.map((command): Line => row(`/${command.name} ${command.usage}`, command.description)),
      [],
      [{ text: "Keys", style: "heading" }],
      ...KEYS.map(([key, what]) => row(key, what)),
      [],
      [{ text: "@ names a file. Text without a slash goes to the run as a message for its next turn." }],
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

function row(left: string, right: string): Line {
  return [{ text: `  ${left.padEnd(26)}`, style: "accent" }, { text: ` ${right}` }];
}
