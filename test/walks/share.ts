import type { Counts } from "./coverage.ts";

/** What a walk does beyond its baseline. */
export interface Share {
  /** The calls by which each function ran more often than in the baseline. */
  readonly more: Counts;
  /** Of those, the functions that the baseline does not run at all. */
  readonly own: Counts;
}

export function shareOf(walk: Counts, baseline: Counts): Share {
  const beyond = (file: string, name: string, calls: number): number => calls - (baseline[file]?.[name] ?? 0);
  return {
    more: mapped(walk, (file, name, calls) => Math.max(0, beyond(file, name, calls))),
    own: mapped(walk, (file, name, calls) => (baseline[file]?.[name] === undefined ? calls : 0)),
  };
}

/** The calls that both did. */
export function fewest(one: Counts, other: Counts): Counts {
  return mapped(one, (file, name, calls) => Math.min(calls, other[file]?.[name] ?? 0));
}

export interface Figures {
  readonly files: number;
  readonly functions: number;
  readonly calls: number;
}

export function figuresOf(counts: Counts): Figures {
  const calls = Object.values(counts).flatMap((functions) => Object.values(functions));
  return {
    files: Object.keys(counts).length,
    functions: calls.length,
    calls: calls.reduce((sum, one) => sum + one, 0),
  };
}

/** The counts without those that become 0, and without files that are then empty. */
function mapped(counts: Counts, calls: (file: string, name: string, calls: number) => number): Counts {
  const files = Object.entries(counts).map(([file, functions]) => {
    const left = Object.entries(functions).map(([name, count]) => [name, calls(file, name, count)] as const);
    return [file, Object.fromEntries(left.filter(([, count]) => count > 0))] as const;
  });
  return Object.fromEntries(files.filter(([, functions]) => Object.keys(functions).length > 0));
}
