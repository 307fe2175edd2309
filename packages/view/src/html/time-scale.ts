/** A stretch of time, in epoch milliseconds. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** Maps times to positions on a line of `WIDTH` units, with long idle stretches shortened. */
export interface TimeScale {
  at(moment: number): number;
  /** The time at a position. */
  moment(position: number): number;
  /** The shortened stretches. */
  readonly cut: readonly Stretch[];
}

export const WIDTH = 1_000;
/** Units of a shortened stretch. */
const CUT_WIDTH = 36;
const MOST_CUTS = 8;
/** An idle stretch is shortened if it is longer than this share of the busy time. */
const LONG_SHARE = 0.25;
const LEAST_MS = 2_000;

interface Piece extends Stretch {
  readonly start: number;
  readonly width: number;
}

/** A scale from `from` to `to`, even except for the longest stretches outside of `busy`. */
export function timeScale({ from, to }: Stretch, busy: readonly Stretch[]): TimeScale {
  const idle = idleIn({ from, to }, busy);
  const total = Math.max(1, to - from);
  const busyMs = total - lengthOf(idle);
  const least = Math.max(LEAST_MS, busyMs * LONG_SHARE);
  const cut = idle
    .filter((one) => busyMs > 0 && one.to - one.from > least)
    .toSorted((a, b) => b.to - b.from - (a.to - a.from))
    .slice(0, MOST_CUTS)
    .toSorted((a, b) => a.from - b.from);
  const unitsPerMs = (WIDTH - cut.length * CUT_WIDTH) / Math.max(1, total - lengthOf(cut));
  const pieces: Piece[] = [];
  let [start, moment] = [0, from];
  const add = (end: number, width: number): void => {
    pieces.push({ from: moment, to: end, start, width });
    start += width;
    moment = end;
  };
  for (const one of cut) {
    add(one.from, (one.from - moment) * unitsPerMs);
    add(one.to, CUT_WIDTH);
  }
  add(to, WIDTH - start);
  return {
    cut,
    at: (wanted) => {
      const piece = pieces.find((one) => wanted <= one.to) ?? pieces.at(-1);
      if (piece === undefined || wanted <= from) return 0;
      const share = (Math.min(wanted, piece.to) - piece.from) / Math.max(1, piece.to - piece.from);
      return Math.min(WIDTH, piece.start + share * piece.width);
    },
    moment: (position) => {
      const piece = pieces.find((one) => position <= one.start + one.width) ?? pieces.at(-1);
      if (piece === undefined || piece.width === 0) return from;
      return piece.from + ((position - piece.start) / piece.width) * (piece.to - piece.from);
    },
  };
}

function lengthOf(stretches: readonly Stretch[]): number {
  return stretches.reduce((sum, { from, to }) => sum + to - from, 0);
}

/** The parts of a stretch that no busy one covers. */
function idleIn({ from, to }: Stretch, busy: readonly Stretch[]): readonly Stretch[] {
  const idle: Stretch[] = [];
  let last = from;
  for (const one of [...busy.toSorted((a, b) => a.from - b.from), { from: to, to }]) {
    if (one.from > last) idle.push({ from: last, to: Math.min(one.from, to) });
    last = Math.max(last, one.to);
  }
  return idle;
}
