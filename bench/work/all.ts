import type { Workload, WorkloadOptions } from "../measure.ts";
import { callsInOneTranscript } from "./calls.ts";
import { bareFanOut, fanOutOfThousand, fanOutOnVirtualClock } from "./fan-out.ts";
import { heapOfFinishedRuns } from "./heap.ts";
import { listenersLeft, longRun } from "./long-run.ts";
import { rawCommits, sqliteStages } from "./sqlite.ts";
import { bare, memoryPipelines, memoryStages } from "./stages.ts";

/** What a child process can be asked to do, by name. */
export const workloads: ReadonlyMap<string, (options: WorkloadOptions) => Promise<Workload>> = new Map([
  ["bare", bare],
  ["stages", memoryStages],
  ["pipelines", memoryPipelines],
  ["sqlite", sqliteStages],
  ["raw-commits", rawCommits],
  ["calls-200", callsInOneTranscript(200)],
  ["calls-1000", callsInOneTranscript(1000)],
  ["calls-3000", callsInOneTranscript(3000)],
  ["bare-fan-out", bareFanOut],
  ["fan-out", fanOutOfThousand],
  ["fan-out-virtual", fanOutOnVirtualClock],
  ["long-run", longRun],
  ["listeners", listenersLeft],
  ["heap", heapOfFinishedRuns],
]);
