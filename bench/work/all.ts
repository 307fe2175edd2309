import { PEER_CALLS } from "../cells.ts";
import type { Workload, WorkloadOptions } from "../measure.ts";
import { bareCallsInOneTranscript, callsInOneTranscript, wholeCallsInOneTranscript } from "./calls.ts";
import { chainOfReaders, chainOfStates, loopOfReaders, loopOfStates } from "./chain.ts";
import { bareFanOut, fanOutOfThousand, fanOutOnVirtualClock } from "./fan-out.ts";
import { listsOf } from "./for-each.ts";
import { gatewayCalls, stageReads } from "./gateway.ts";
import { heapOfFinishedRuns } from "./heap.ts";
import { heapOfRunsInFlight } from "./in-flight.ts";
import { judgedLines } from "./judging.ts";
import { listOf } from "./list.ts";
import { listenersLeft, longRun } from "./long-run.ts";
import { generatedCalls, generatedTexts, streamedTexts } from "./peers.ts";
import { resumeOfSteps } from "./resume.ts";
import { sleepingRuns } from "./sleeping.ts";
import {
  bytesOnDisk,
  rawCommits,
  ridingCommits,
  sqliteStages,
  stagesWithRawCommits,
  unsyncedCommits,
} from "./sqlite.ts";
import { bare, memoryPipelines, memoryStages, tracedStages, wholePipelines, wholeStages } from "./stages.ts";
import { firstRuns, headlessStart, versionStart } from "./start.ts";
import { firstPaint, streamingApp } from "./terminal.ts";
import { bareTransitions, tableTransitions } from "./transition.ts";
import { bareHashes, verifiedExport, verifiedJournal } from "./verify.ts";
import { waitingRuns } from "./waiting.ts";
import { walledCommands } from "./walls.ts";
import { celHops, guardedHops, longFile, plainEventHops, plainTableHops } from "./workflow-files.ts";

/** The workloads, by name. */
export const workloads: ReadonlyMap<string, (options: WorkloadOptions) => Promise<Workload>> = new Map([
  ["bare", bare],
  ["stages", memoryStages],
  ["traced-stages", tracedStages],
  ["pipelines", memoryPipelines],
  ["whole-stages", wholeStages],
  ["whole-pipelines", wholePipelines],
  ["loop", loopOfStates],
  ["chain", chainOfStates],
  ["loop-reading", loopOfReaders],
  ["chain-reading", chainOfReaders],
  ["lists-of-0", listsOf(0)],
  ["lists-of-1", listsOf(1)],
  ["lists-of-500", listsOf(500)],
  ["generate-text", generatedTexts],
  ["stream-text", streamedTexts],
  ...PEER_CALLS.flatMap((calls) => [
    [`whole-calls-${calls}`, wholeCallsInOneTranscript(calls)] as const,
    [`generate-text-calls-${calls}`, generatedCalls(calls)] as const,
  ]),
  ["sqlite", sqliteStages],
  ["raw-commits", rawCommits()],
  ["stages-with-raw-commits", stagesWithRawCommits],
  ["raw-commits-riding", ridingCommits],
  ["raw-commits-unsynced", unsyncedCommits],
  ["bare-calls", bareCallsInOneTranscript],
  ["calls-200", callsInOneTranscript(200)],
  ["calls-1000", callsInOneTranscript(1000)],
  ["calls-3000", callsInOneTranscript(3000)],
  ["bare-fan-out", bareFanOut],
  ["fan-out", fanOutOfThousand],
  ["fan-out-virtual", fanOutOnVirtualClock],
  ["long-run", longRun],
  ["listeners", listenersLeft],
  ["heap", heapOfFinishedRuns],
  ["in-flight", heapOfRunsInFlight],
  ["bare-transitions", bareTransitions],
  ["transitions", tableTransitions],
  ["guarded-hops", guardedHops],
  ["plain-event-hops", plainEventHops],
  ["cel-hops", celHops],
  ["plain-table-hops", plainTableHops],
  ["long-file", longFile],
  ["disk-of-1000", bytesOnDisk(1_000)],
  ["disk-of-10000", bytesOnDisk(10_000)],
  ["stage-reads", stageReads],
  ["gateway-reads", gatewayCalls("gateway tools")],
  ["gateway-native", gatewayCalls("native tools")],
  ["waiting", waitingRuns],
  ["sleeping-1000", sleepingRuns(1_000)],
  ["sleeping-100000", sleepingRuns(100_000)],
  ["walled-commands", walledCommands],
  ["judged-lines", judgedLines],
  ["resume", resumeOfSteps],
  ["bare-hashes", bareHashes],
  ["verify-journal", verifiedJournal],
  ["verify-export", verifiedExport],
  ["list-of-1000", listOf(1_000)],
  ["list-of-100000", listOf(100_000)],
  ["list-of-long", listOf(1_000, 10_000)],
  ["version", versionStart],
  ["first-runs", firstRuns],
  ["headless", headlessStart],
  ["streaming-app", streamingApp],
  ["first-paint", firstPaint],
]);
