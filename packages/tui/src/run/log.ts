import { type LogItem, type RunView, span, stateLabel } from "@sluice/view";
import { cut, type Line, spanOf, widthOf } from "@sluice/view/text";
import { shortKey } from "@sluice/view/words";
import { endLines } from "./end-rows.ts";
import { transcriptLines } from "./transcript.ts";

/** Rows of a run's result; `/show` has all of it. */
const END_ROWS = 40;
/** Earlier log items that are printed. */
const MAX_EARLIER = 300;
const MAX_NAME = 16;
/** Columns below which rows have no branch name. */
const MIN_WIDTH_FOR_NAME = 24;

/** The lines of code around a recorded place, safe to show; undefined if they cannot be shown. */
export type FrameAt = (at: string) => string | undefined;

export interface Logged {
  readonly lines: readonly Line[];
  /** To pass to the next call. */
  readonly printed: number;
}

/** The items of `view.log` after the first `printed` ones; of a long earlier log, the last part. All of them are final. */
export function logLines(
  { log }: Pick<RunView, "log">,
  printed: number,
  width: number,
  frameAt: FrameAt = () => undefined,
): Logged {
  const lines: Line[] = [];
  const skipped = printed > 0 ? 0 : Math.max(0, log.length - MAX_EARLIER);
  if (skipped > 0) lines.push(cut([span(`… ${skipped} earlier items; the transcripts have them`, "dim")], width));
  for (let index = Math.max(printed, skipped); index < log.length; index += 1) {
    const one = log.at(index);
    if (one !== undefined) lines.push(...itemLines(one, Math.max(1, width), frameAt));
  }
  return { lines, printed: Math.max(printed, log.length) };
}

function frameLines(at: string | undefined, width: number, frameAt: FrameAt): readonly Line[] {
  const frame = at === undefined ? undefined : frameAt(at);
  return frame === undefined ? [] : frame.split("\n").map((row) => cut([span("    "), spanOf(row, "dim")], width));
}

function itemLines({ sibling, item }: LogItem, width: number, frameAt: FrameAt): readonly Line[] {
  if (item.kind === "end") {
    const lines = endLines(item, width, { most: END_ROWS, rest: "/show has all of it" });
    return [...lines, ...frameLines(item.error?.at, width, frameAt)];
  }
  if (sibling === undefined || width < MIN_WIDTH_FOR_NAME) return transcriptLines(item, { width, folded: true });
  const name = cut([span(stateLabel(shortKey(sibling, MAX_NAME)), "accent")], MAX_NAME);
  const front: Line = [...name, span(" │ ", "dim")];
  const room = width - widthOf(front);
  const lines = transcriptLines(item, { width: room, folded: true });
  return lines.map((line) => cut([...front, ...line], width));
}
