/** What a child reports of one slice of work. */
export interface Slice {
  /** Stages, calls or siblings done. */
  readonly units: number;
  /** CPU time of the whole process, in milliseconds: user and system, collector and compiler threads included. */
  readonly cpuMs: number;
  /** Whatever else the workload counted. */
  readonly facts: Readonly<Record<string, number>>;
}

/** Something a child does over and over. */
export interface Workload {
  /** How often a slice is done before anything is measured. */
  readonly warmUps: number;
  slice(): Promise<Omit<Slice, "cpuMs">>;
  /** Called once between the warm-ups and the first slice that is measured. */
  warmedUp?(): void;
  close?(): Promise<void>;
}

export interface WorkloadOptions {
  /** Smaller sizes: to see whether the harness works, not to judge. */
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

/** The power of size that cost grows with: 1 is linear. */
export function growthExponent(small: { size: number; cost: number }, large: { size: number; cost: number }): number {
  return Math.log(large.cost / small.cost) / Math.log(large.size / small.size);
}
