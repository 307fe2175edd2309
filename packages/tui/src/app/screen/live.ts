import { markOf, nameOf } from "../runs/marks.ts";
import type { ExecutionView } from "../runs/run-view.ts";
import { clean, tailOf } from "../text/clean.ts";
import type { Line } from "../text/line.ts";
import { cut, wrap } from "../text/width.ts";
import type { FrameSize } from "./frame.ts";

/** Characters of the end of a text that can fill a screen; what stands before is not even wrapped. */
const MOST_SHOWN = 16_000;

/** What a stage says now, its last rows; nothing where nothing streams. */
export function liveLines(
  { live, stateId, status, turn }: ExecutionView,
  { width, height }: FrameSize,
): readonly Line[] {
  if (live === undefined || height < 2) return [];
  const { sign } = markOf(status);
  const head: Line = [
    { text: `${sign} ${nameOf(stateId)}`, style: "accent" },
    { text: ` · turn ${live.turn === 0 ? turn : live.turn}${live.text === "" ? " · thinking" : ""}`, style: "dim" },
  ];
  const said = live.text === "" ? live.reasoning : live.text;
  const style = live.text === "" ? "dim" : "plain";
  const rows = clean(tailOf(said, MOST_SHOWN))
    .split("\n")
    .flatMap((text) => wrap([{ text, style }], width));
  return [cut(head, width), ...rows.slice(-(height - 1))];
}
