// What states without a model did, in their transcript.
import { field } from "@sluice/core";
import type { AnswerView, CommandView } from "../projection/run-view.ts";
import { COMMAND_SYMBOLS, commandLineOf, exitText } from "../words/command-words.ts";
import { count, milliseconds, moment } from "../words/words.ts";
import { classOf, exact, html, joined, type Markup, NOTHING } from "./markup/markup.ts";
import { table } from "./markup/table.ts";
import { commandBlock, shortText, textBlock } from "./markup/texts.ts";
import { value } from "./markup/values.ts";

/** UTF-16 units. */
const LONGEST_LINE = 300;
const LONGEST_COMMAND = 8_000;
const LONGEST_STREAM = 20_000;
/** Of an attempt of a poll. */
const LONGEST_ATTEMPT = 3_000;
const LONGEST_REASON = 2_000;
const LONGEST_ANSWER = 20_000;

/** A command, folded to one line with its exit code and duration; unfolded with all of its words and what it printed. */
export function commandMarkup(command: CommandView): Markup {
  const { state, why } = command;
  const isOpen = state === "error" ? html` open` : NOTHING;
  const words = command.words.length === 0 ? NOTHING : wholeCommand(command);
  return html`<details class="call"${isOpen}>
<summary>${outcomeOf(command)} <b>command</b> <code>${shortText(commandLineOf(command), LONGEST_LINE)}</code>${factsOf(command)}</summary>
${why === "" ? NOTHING : html`<p class="bad"><span class="label">why</span> ${shortText(why, LONGEST_REASON)}</p>`}
${words}${printedOf(command, LONGEST_STREAM)}</details>
`;
}

/** The words of a command below each other if one line cannot show which are which. */
function wholeCommand({ words, isWithheld }: CommandView): Markup {
  if (isWithheld === true) return html`<p class="faint">Its arguments and what it printed are left out.</p>`;
  return html`<p class="label">command</p>${commandBlock(words.join("\n"), LONGEST_COMMAND)}`;
}

function outcomeOf({ state, exitCode }: CommandView): Markup {
  const { sign, word, style } = COMMAND_SYMBOLS[state];
  const exit = exitText(exitCode === undefined ? {} : { exitCode });
  return html`<span class="${classOf(style)}">${sign} ${word}${exit === "" ? "" : `, ${exit}`}</span>`;
}

function factsOf({ ms }: CommandView): Markup {
  return ms === undefined ? NOTHING : html` <span class="faint">${milliseconds(ms)}</span>`;
}

function printedOf({ stdout, stderr, files, isWithheld }: CommandView, most: number): Markup {
  if (isWithheld === true) return NOTHING;
  const streams = (
    [
      ["output", stdout],
      ["errors", stderr],
    ] as const
  ).flatMap(([name, text]) => (text === "" ? [] : [html`<p class="label">${name}</p>${textBlock(text, most)}`]));
  const whole = files.length === 0 ? [] : [html`<p class="faint">All of it: ${exact(files.join(", "))}</p>`];
  const all = [...streams, ...whole];
  return all.length === 0 ? html`<p class="faint">It printed nothing.</p>` : joined(all);
}

/** The attempts of a poll as one table, with the command above it. */
export function attemptsMarkup(attempts: readonly CommandView[]): Markup {
  const [first] = attempts;
  if (first === undefined) return NOTHING;
  const heads = ["#attempt", "outcome", "#time", "next attempt (UTC)", "printed"];
  const cells = (command: CommandView): readonly Markup[] => [
    html`${command.number}`,
    html`${outcomeOf(command)}${command.why === "" ? NOTHING : html` ${shortText(command.why, LONGEST_REASON)}`}`,
    html`${command.ms === undefined ? "" : milliseconds(command.ms)}`,
    html`${command.nextAt === undefined ? "" : moment(command.nextAt)}`,
    lastPrinted(command),
  ];
  const caption = `${count(attempts.length, "attempt")} of a command`;
  return html`<p><b>command</b> <code>${shortText(commandLineOf(first), LONGEST_LINE)}</code></p>
${table(caption, heads, attempts, cells)}
`;
}

function lastPrinted(command: CommandView): Markup {
  const { stdout, stderr, isWithheld } = command;
  if (isWithheld === true || (stdout === "" && stderr === "")) return NOTHING;
  const size = count(stdout.length + stderr.length, "character");
  return html`<details><summary>${size}</summary>${printedOf(command, LONGEST_ATTEMPT)}</details>`;
}

/** What a question was answered with, or what a timer or another pipeline returned. */
export function answerMarkup({ of, value: answer }: AnswerView): Markup {
  const elapsed = field(answer, "elapsedMs");
  if (of === "timer" && typeof elapsed === "number") return html`<p>waited ${milliseconds(elapsed)}</p>\n`;
  const name = of === "human" ? "answer" : "output of the pipeline";
  return html`<p class="label">${name}</p>${value(answer, LONGEST_ANSWER)}
`;
}
