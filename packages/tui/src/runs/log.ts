import { clean, cleanInline, headOf } from "../text/clean.ts";
import { fold } from "../text/fold.ts";
import type { Line, Style } from "../text/line.ts";
import { cut, widthOf, wrap } from "../text/width.ts";
import { nameOf, span } from "./marks.ts";
import type { RunEndItem, RunView, Told } from "./run-view.ts";
import { transcriptLines } from "./transcript.ts";

/** Rows of an output at a run's end; `/show` has the rest. */
const END_ROWS = 40;
/** Things of an earlier life that are printed. */
const MOST_PAST = 300;
/** UTF-16 units of it that are laid out. */
const LONGEST_END = 20_000;
const WIDEST_NAME = 16;
/** A row narrower than this has no room for a name in front. */
const NARROWEST = 24;

export interface Logged {
  readonly lines: readonly Line[];
  /** To be handed in with the next view. */
  readonly printed: number;
}

/**
 * What stands below each other in the terminal as a run goes on: everything that became final since `printed` things of
 * `view.told` were printed, each once and never anything that can still change. Of a run that had a long life before it was
 * looked at, the last part.
 */
export function logLines({ told }: Pick<RunView, "told">, printed: number, width: number): Logged {
  const lines: Line[] = [];
  const skipped = printed > 0 ? 0 : Math.max(0, told.length - MOST_PAST);
  if (skipped > 0) lines.push(cut([span(`… ${skipped} earlier things; the transcripts have them`, "dim")], width));
  for (let index = Math.max(printed, skipped); index < told.length; index += 1) {
    const one = told.at(index);
    if (one !== undefined) lines.push(...toldLines(one, Math.max(1, width)));
  }
  return { lines, printed: Math.max(printed, told.length) };
}

function toldLines({ sibling, item }: Told, width: number): readonly Line[] {
  if (item.kind === "end") return endLines(item, width);
  if (sibling === undefined || width < NARROWEST) return transcriptLines(item, { width, folded: true });
  const name = cut([span(nameOf(sibling), "accent")], WIDEST_NAME);
  const front: Line = [...name, span(" │ ", "dim")];
  const room = width - widthOf(front);
  const lines = transcriptLines(item, { width: room, folded: true });
  return lines.map((line) => cut([...front, ...line], width));
}

const ENDS: Readonly<Record<RunEndItem["status"], readonly [sign: string, style: Style]>> = {
  completed: ["✔", "good"],
  failed: ["✖", "bad"],
  cancelled: ["⊘", "bad"],
};

function endLines({ status, output, error }: RunEndItem, width: number): readonly Line[] {
  const [sign, style] = ENDS[status];
  const lines: Line[] = [[], [span(`${sign} run ${status}`, style)]];
  if (error !== undefined) {
    const message = `${headOf(error.message, LONGEST_END)} (${headOf(cleanInline(error.code), 100)})`;
    lines.push(...blockOf(message, width, style));
  }
  if (output !== undefined) lines.push(...blockOf(textOf(output), width, "plain"));
  return lines.map((line) => cut(line, width));
}

function blockOf(text: string, width: number, style: Style): readonly Line[] {
  const rows = clean(headOf(text, LONGEST_END))
    .split("\n")
    .flatMap((line) => wrap([span(line, style)], Math.max(2, width - 2), END_ROWS + 1));
  return fold(rows, END_ROWS, "/show has all of it").map((line): Line => [span("  "), ...line]);
}

function textOf(output: RunEndItem["output"]): string {
  return typeof output === "string" ? output : JSON.stringify(output ?? null, null, 2);
}
