import { type LogItem, type RunView, span, stateLabel } from "@sluice/view";
import { cut, type Line, widthOf } from "@sluice/view/text";
import { endLines } from "./end-rows.ts";
import { transcriptLines } from "./transcript.ts";

/** Rows of an output at a run's end; `/show` has all of it. */
const END_ROWS = 40;
/** Things of an earlier life that are printed. */
const MOST_PAST = 300;
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
export function logLines({ log }: Pick<RunView, "log">, printed: number, width: number): Logged {
  const lines: Line[] = [];
  const skipped = printed > 0 ? 0 : Math.max(0, log.length - MOST_PAST);
  if (skipped > 0) lines.push(cut([span(`… ${skipped} earlier things; the transcripts have them`, "dim")], width));
  for (let index = Math.max(printed, skipped); index < log.length; index += 1) {
    const one = log.at(index);
    if (one !== undefined) lines.push(...toldLines(one, Math.max(1, width)));
  }
  return { lines, printed: Math.max(printed, log.length) };
}

function toldLines({ sibling, item }: LogItem, width: number): readonly Line[] {
  if (item.kind === "end") return endLines(item, width, { most: END_ROWS, rest: "/show has all of it" });
  if (sibling === undefined || width < NARROWEST) return transcriptLines(item, { width, folded: true });
  const name = cut([span(stateLabel(sibling), "accent")], WIDEST_NAME);
  const front: Line = [...name, span(" │ ", "dim")];
  const room = width - widthOf(front);
  const lines = transcriptLines(item, { width: room, folded: true });
  return lines.map((line) => cut([...front, ...line], width));
}
