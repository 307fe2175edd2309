/** The report of a child about one slice of work. */
export interface Slice {
  /** The number of stages, calls or siblings. */
  readonly units: number;
  /** CPU time of the whole process in milliseconds: user and system, including collector and compiler threads. */
  readonly cpuMs: number;
  /** Other measurements of the workload. */
  readonly facts: Readonly<Record<string, number>>;
}

/** Work that a child repeats. */
export interface Workload {
  /** The number of slices before measurements start. */
  readonly warmUps: number;
  slice(): Promise<Omit<Slice, "cpuMs">>;
  /** Called once after the warm-up. */
  warmedUp?(): void;
  close?(): Promise<void>;
}

export interface WorkloadOptions {
  /** Small sizes, to test the harness. */
  readonly quick: boolean;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

export function cpuPerUnit({ cpuMs, units }: Slice): number {
  return (cpuMs * 1000) / units;
}

/** The exponent of growth: 1 is linear. */
export function growthExponent(small: { size: number; cost: number }, large: { size: number; cost: number }): number {
  return Math.log(large.cost / small.cost) / Math.log(large.size / small.size);
}
