import type { RunCounts } from "@sluice/sqlite";
import type { Woken } from "../../waking/waker.ts";

/** Upper bounds of the buckets of wake lateness, in seconds. */
const LATENESS_S = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 300] as const;

/** What a worker counts about itself since it started. */
export interface Metrics {
  /** A run was resumed; `lateMs` after its time to wake, if it had one. */
  woke(lateMs: number | undefined): void;
  /** What a wake came to. */
  came(woken: Woken): void;
  /** The Prometheus text format. `counts` are the runs of the store; undefined if it could not be read. */
  text(now: MetricsNow): string;
}
export interface MetricsNow {
  readonly counts: RunCounts | undefined;
  readonly active: number;
  readonly heldBack: number;
  readonly draining: boolean;
}

type Kind = "gauge" | "counter" | "histogram";
type Sample = readonly [labels: string, value: number];

export function createMetrics(startedAt: number): Metrics {
  const outcomes = new Map<Woken["kind"], number>([
    ["ended", 0],
    ["asleep", 0],
    ["waiting", 0],
    ["provider", 0],
    ["interrupted", 0],
    ["elsewhere", 0],
    ["refused", 0],
    ["failed", 0],
    ["stuck", 0],
  ]);
  const buckets = LATENESS_S.map(() => 0);
  let [wakes, timed, lateSum] = [0, 0, 0];

  const histogram = (): readonly string[] => {
    const name = "sluice_wake_lateness_seconds";
    const each = LATENESS_S.map((le, index) => `${name}_bucket{le="${le}"} ${buckets[index] ?? 0}`);
    return [
      ...headOf(name, "histogram", "How long after its time a sleeping run was resumed."),
      ...each,
      `${name}_bucket{le="+Inf"} ${timed}`,
      `${name}_sum ${lateSum}`,
      `${name}_count ${timed}`,
    ];
  };
  return {
    woke: (lateMs) => {
      wakes += 1;
      if (lateMs === undefined) return;
      timed += 1;
      lateSum += lateMs / 1_000;
      for (const [index, le] of LATENESS_S.entries())
        if (lateMs / 1_000 <= le) buckets[index] = (buckets[index] ?? 0) + 1;
    },
    came: ({ kind }) => void outcomes.set(kind, (outcomes.get(kind) ?? 0) + 1),
    text: ({ counts, active, heldBack, draining }) => {
      const { user, system } = process.cpuUsage();
      const memory = process.memoryUsage();
      const lines = [
        ...family("sluice_up", "gauge", "1, or 0 while the worker stops.", [["", draining ? 0 : 1]]),
        ...(counts === undefined ? [] : storeFamilies(counts)),
        ...family("sluice_active_runs", "gauge", "Runs that this worker executes now.", [["", active]]),
        ...family(
          "sluice_held_back_runs",
          "gauge",
          "Due runs that are left for a while, since they could not be continued.",
          [["", heldBack]],
        ),
        ...family("sluice_wakes_total", "counter", "Runs that this worker resumed.", [["", wakes]]),
        ...family(
          "sluice_wake_outcomes_total",
          "counter",
          "What wakes came to.",
          [...outcomes].map(([kind, n]) => [`{outcome="${kind}"}`, n]),
        ),
        ...family(
          "sluice_resume_failures_total",
          "counter",
          "Due runs that could not be resumed, or stopped with an error.",
          [["", (outcomes.get("refused") ?? 0) + (outcomes.get("failed") ?? 0)]],
        ),
        ...histogram(),
        ...family("process_cpu_seconds_total", "counter", "CPU time of this process.", [["", (user + system) / 1e6]]),
        ...family("process_resident_memory_bytes", "gauge", "Resident memory of this process.", [["", memory.rss]]),
        ...family("process_heap_bytes", "gauge", "Heap of this process that is in use.", [["", memory.heapUsed]]),
        ...family("process_start_time_seconds", "gauge", "When this process started.", [["", startedAt / 1_000]]),
      ];
      return `${lines.join("\n")}\n`;
    },
  };
}

function storeFamilies(counts: RunCounts): readonly string[] {
  const { due, openRequests, completed, failed, cancelled, running, sleeping, suspended } = counts;
  const byStatus = { completed, failed, cancelled, running, sleeping, suspended };
  return [
    ...family(
      "sluice_runs",
      "gauge",
      "Runs of the store by status.",
      Object.entries(byStatus).map(([status, n]) => [`{status="${status}"}`, n]),
    ),
    ...family("sluice_due_runs", "gauge", "Runs that have to continue now.", [["", due]]),
    ...family("sluice_sleeping_runs", "gauge", "Runs that sleep until a time.", [["", sleeping]]),
    ...family("sluice_open_requests", "gauge", "Requests of runs that wait for a person.", [["", openRequests]]),
  ];
}

function family(name: string, kind: Kind, help: string, samples: readonly Sample[]): readonly string[] {
  return [...headOf(name, kind, help), ...samples.map(([labels, value]) => `${name}${labels} ${value}`)];
}

function headOf(name: string, kind: Kind, help: string): readonly string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`];
}
