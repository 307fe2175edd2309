// What states without a model did, as rows of their transcript.
import { field } from "@sluice/core";
import { type AnswerView, COMMAND_SYMBOLS, type CommandView, commandLineOf, exitText } from "@sluice/view";
import { cut, headOf, jsonRows, type Line, revealed, type Span, tailOf, textRows, widthOf } from "@sluice/view/text";
import { milliseconds, moment } from "@sluice/view/words";
import { textBlock } from "./text-block.ts";

export interface KindRowsOptions {
  /** Columns; no row is wider. */
  readonly width: number;
  /** The outcome with the end of what was printed. */
  readonly folded: boolean;
}

/** UTF-16 units of a command on one row, of a reason, and of the end of a stream. */
const MAX_COMMAND = 300;
const MAX_REASON = 1_200;
const MAX_TAIL = 8_000;
/** Rows of each part. */
const MAX_ROWS = 200;
/** Rows of what a folded command printed last, and of one that failed. */
const FOLDED_ROWS = 2;
const FAILED_ROWS = 6;
const INDENT: Span = { text: "  │ ", style: "dim" };

/** A command with its exit code and the end of what it printed; unfolded with all of its words and both streams. */
export function commandRows(command: CommandView, options: KindRowsOptions): readonly Line[] {
  const width = Math.max(1, options.width);
  const inner = Math.max(2, width - widthOf([INDENT]));
  const body = options.folded ? folded(command, inner) : unfolded(command, inner);
  return [headLine(command, width), ...body.map((line) => [INDENT, ...line])].map((line) => cut(line, width));
}

function headLine(command: CommandView, width: number): Line {
  const { state, number, isPoll } = command;
  const { sign, style } = COMMAND_SYMBOLS[state];
  const left: Line = [
    { text: `${sign} `, style },
    ...(isPoll ? [{ text: `attempt ${number}`, style: "strong" as const }] : []),
  ];
  // The first attempt of a poll shows its command.
  if (isPoll && number > 1) return [...left, ...outcomeOf(command, true)];
  const front: Line = [...left, { text: isPoll ? " $ " : "$ ", style: "accent" }];
  const roomBeside = (outcome: Line): number => width - widthOf(front) - widthOf(outcome);
  const whole = outcomeOf(command, true);
  const outcome = roomBeside(whole) < LEAST_COMMAND ? outcomeOf(command, false) : whole;
  const shown = revealed(headOf(commandLineOf(command), MAX_COMMAND), "code");
  return [...front, ...cut(shown, Math.max(4, roomBeside(outcome))), ...outcome];
}

/** Columns of a command beside which its outcome has its duration too. */
const LEAST_COMMAND = 24;

function outcomeOf(command: CommandView, withTime: boolean): Line {
  const { state, ms, nextAt } = command;
  const { word, style } = COMMAND_SYMBOLS[state];
  const exit = exitText(command);
  const time = withTime && ms !== undefined ? [` · ${milliseconds(ms)}`] : [];
  const next = nextAt === undefined ? [] : [` · next at ${moment(nextAt)}`];
  return [
    { text: "  " },
    { text: word, style },
    ...(exit === "" ? [] : [{ text: ` · ${exit}`, style: state === "error" ? ("bad" as const) : ("plain" as const) }]),
    ...[...time, ...next].map((text): Span => ({ text, style: "dim" })),
  ];
}

/** Why it failed, and the last lines that it printed: errors first, as they say why. */
function folded(command: CommandView, width: number): readonly Line[] {
  const { stdout, stderr, state, why } = command;
  const isFailed = state === "error";
  const printed = isFailed && stderr.trim() !== "" ? stderr : stdout.trim() === "" ? stderr : stdout;
  const rows = textRows(tailOf(printed.trimEnd(), MAX_TAIL), width, MAX_ROWS).filter((row) => widthOf(row) > 0);
  return [...reasonRows(why, width), ...rows.slice(-(isFailed ? FAILED_ROWS : FOLDED_ROWS)).map(dim)];
}

function unfolded(command: CommandView, width: number): readonly Line[] {
  const { words, stdout, stderr, files, why } = command;
  const whole = words.flatMap((word, at): readonly Line[] => [
    [{ text: at === 0 ? "$ " : "  ", style: "accent" }, ...cut(revealed(word, "code"), Math.max(2, width - 2))],
  ]);
  const streams = (
    [
      ["output", stdout],
      ["errors", stderr],
    ] as const
  ).flatMap(([name, text]): readonly Line[] =>
    text.trim() === "" ? [] : [[{ text: `${name}:`, style: "dim" }], ...textRows(text, width, MAX_ROWS)],
  );
  const all = files.map((file): Line => [{ text: "all of it: ", style: "dim" }, ...revealed(file)]);
  return [...whole.slice(0, MAX_ROWS), ...reasonRows(why, width), ...streams, ...all];
}

function reasonRows(why: string, width: number): readonly Line[] {
  return why === "" ? [] : textBlock(why, { width, style: "bad", most: MAX_REASON });
}

function dim(line: Line): Line {
  return line.map(({ text }) => ({ text, style: "dim" }));
}

/** What a state completed with. */
export function answerRows({ of, value }: AnswerView, { width, folded: isFolded }: KindRowsOptions): readonly Line[] {
  const elapsed = field(value, "elapsedMs");
  if (of === "timer" && typeof elapsed === "number")
    return [cut([{ text: "✔ ", style: "good" }, { text: `waited ${milliseconds(elapsed)}` }], width)];
  const rows = jsonRows(value, Math.max(2, width - 2), isFolded ? FAILED_ROWS : MAX_ROWS);
  const head: Line = [{ text: `✔ ${of === "human" ? "answer" : "output"}`, style: "good" }];
  const [first, ...rest] = rows;
  if (first !== undefined && rest.length === 0) return [cut([...head, { text: "  " }, ...first], width)];
  return [head, ...rows.map((row): Line => [{ text: "  " }, ...row])].map((line) => cut(line, width));
}

/** The text of a command that a search covers. */
export function searchableCommand({ words, stdout, stderr, why }: CommandView): string {
  return [words.join(" "), why, stdout, stderr].join("\n");
}
