/** A stretch of time, in epoch milliseconds. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** Where a moment stands on a line of `WIDTH` units; stretches in which nothing was at work may be drawn shorter than they were. */
export interface TimeScale {
  at(moment: number): number;
  /** The moment at a place. */
  moment(place: number): number;
  /** What was drawn shorter. */
  readonly cut: readonly Stretch[];
}

export const WIDTH = 1_000;
/** Units of a stretch that is drawn shorter, and how many may be. */
const CUT_WIDTH = 36;
const MOST_CUTS = 8;
/** Of the time at work the share that an idle stretch has to have to be drawn shorter. */
const LONG_SHARE = 0.25;
const LEAST_MS = 2_000;

interface Piece extends Stretch {
  readonly start: number;
  readonly width: number;
}

/** A scale from `from` to `to`. It is even, but for the longest stretches between those in `busy`. */
export function timeScale({ from, to }: Stretch, busy: readonly Stretch[]): TimeScale {
  const idle = idleIn({ from, to }, busy);
  const total = Math.max(1, to - from);
  const working = total - idle.reduce((sum, one) => sum + one.to - one.from, 0);
  const least = Math.max(LEAST_MS, working * LONG_SHARE);
  const cut = idle
    .filter((one) => working > 0 && one.to - one.from > least)
    .toSorted((a, b) => b.to - b.from - (a.to - a.from))
    .slice(0, MOST_CUTS)
    .toSorted((a, b) => a.from - b.from);
  const rest = total - cut.reduce((sum, one) => sum + one.to - one.from, 0);
  const room = WIDTH - cut.length * CUT_WIDTH;
  const pieces: Piece[] = [];
  let place = 0;
  let moment = from;
  const add = (end: number, width: number): void => {
    pieces.push({ from: moment, to: end, start: place, width });
    place += width;
    moment = end;
  };
  for (const one of cut) {
    add(one.from, ((one.from - moment) / Math.max(1, rest)) * room);
    add(one.to, CUT_WIDTH);
  }
  add(to, WIDTH - place);
  return {
    cut,
    at: (wanted) => {
      const piece = pieces.find((one) => wanted <= one.to) ?? pieces.at(-1);
      if (piece === undefined || wanted <= from) return 0;
      const share = (Math.min(wanted, piece.to) - piece.from) / Math.max(1, piece.to - piece.from);
      return Math.min(WIDTH, piece.start + share * piece.width);
    },
    moment: (wanted) => {
      const piece = pieces.find((one) => wanted <= one.start + one.width) ?? pieces.at(-1);
      if (piece === undefined || piece.width === 0) return from;
      return piece.from + ((wanted - piece.start) / piece.width) * (piece.to - piece.from);
    },
  };
}

/** What of a stretch no busy one covers. */
function idleIn({ from, to }: Stretch, busy: readonly Stretch[]): readonly Stretch[] {
  const idle: Stretch[] = [];
  let last = from;
  for (const one of busy.toSorted((a, b) => a.from - b.from)) {
    if (one.from > last) idle.push({ from: last, to: Math.min(one.from, to) });
    last = Math.max(last, one.to);
  }
  if (to > last) idle.push({ from: last, to });
  return idle;
}
