/** A stretch of time, in epoch milliseconds. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** Maps times to positions on a line of `WIDTH` units, with long idle stretches shortened. */
export interface TimeScale {
  at(moment: number): number;
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

/** A scale from `from` to `to`, even except for the longest stretches outside of `busy`. */
export function timeScale({ from, to }: Stretch, busy: readonly Stretch[]): TimeScale {
  const idle = idleIn({ from, to }, busy);
  const busyMs = to - from - sumOf(idle);
  const cut = idle
    .filter((one) => busyMs > 0 && lengthOf(one) > Math.max(LEAST_MS, busyMs * LONG_SHARE))
    .toSorted((a, b) => lengthOf(b) - lengthOf(a))
    .slice(0, MOST_CUTS)
    .toSorted((a, b) => a.from - b.from);
  const unitsPerMs = (WIDTH - cut.length * CUT_WIDTH) / Math.max(1, to - from - sumOf(cut));
  const times = [from, ...cut.flatMap((one) => [one.from, one.to]), to];
  let position = 0;
  const positions = times.map((time, at) => {
    // Every second part is shortened.
    const isCut = at > 0 && at % 2 === 0;
    position += isCut ? CUT_WIDTH : (time - (times[at - 1] ?? from)) * unitsPerMs;
    return position;
  });
  return {
    cut,
    at: (wanted) => interpolated(times, positions, wanted),
    moment: (wanted) => interpolated(positions, times, wanted),
  };
}

/** The value at `x` of the line through points with rising coordinates; outside of them that of the nearest point. */
function interpolated(xs: readonly number[], ys: readonly number[], x: number): number {
  const after = xs.findIndex((one) => x < one);
  if (after < 1) return (after === 0 ? ys[0] : ys.at(-1)) ?? 0;
  const [x1 = 0, x2 = 0] = xs.slice(after - 1);
  const [y1 = 0, y2 = 0] = ys.slice(after - 1);
  return y1 + ((x - x1) / (x2 - x1)) * (y2 - y1);
}

function lengthOf({ from, to }: Stretch): number {
  return to - from;
}

/** Milliseconds of all stretches together. */
export function sumOf(stretches: readonly Stretch[]): number {
  return stretches.reduce((sum, one) => sum + lengthOf(one), 0);
}

/** The parts of a stretch that no busy one covers. */
export function idleIn({ from, to }: Stretch, busy: readonly Stretch[]): readonly Stretch[] {
  const idle: Stretch[] = [];
  let last = from;
  for (const one of [...busy.toSorted((a, b) => a.from - b.from), { from: to, to }]) {
    if (one.from > last) idle.push({ from: last, to: Math.min(one.from, to) });
    last = Math.max(last, one.to);
  }
  return idle;
}
