import { isSluiceError, type JsonObject, type RunHost, systemClock } from "@sluice/core";
import { messageOf, redactText, visible, visibleJson } from "@sluice/core/runtime";
import { countRuns, lockService, type RunCounts } from "@sluice/sqlite";
import { readSettings, refuseInsideRun } from "@sluice/tui/user";
import { count, milliseconds, moment, oneLine } from "@sluice/view/words";
import type { CommandContext } from "../../command-context.ts";
import { EXIT, type StopSignal } from "../../output/exit-codes.ts";
import type { ProjectPaths } from "../../project/project-paths.ts";
import { onStopSignal } from "../../runs/follow-run.ts";
import { withWritableStore } from "../../runs/lookup.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import type { CommonFlags } from "../../runs/run-flags.ts";
import { type Scheduler, startScheduler, type WakeVerdict } from "../../waking/scheduler.ts";
import { createWaker, type Woken } from "../../waking/waker.ts";
import { wokenJson, wokenText } from "../../waking/words.ts";
import { type HealthServer, startHealthServer } from "./health-server.ts";
import type { LoopbackAddress } from "./loopback.ts";
import { createMetrics, type MetricsNow } from "./metrics.ts";

export type ServeFlags = CommonFlags & {
  readonly maxParallel?: number;
  /** In milliseconds. */
  readonly poll?: number;
  /** False with --no-metrics. */
  readonly metrics?: false | LoopbackAddress;
  readonly json?: boolean;
};

const MAX_PARALLEL = 16;
const NONE_AWAKE = { active: 0, heldBack: 0 };
const POLL_MS = 30_000;
const METRICS_AT: LoopbackAddress = { host: "127.0.0.1", port: 9464 };

/** `sluice serve`: wakes the runs of a store until a signal stops it. */
export async function serve(context: CommandContext, flags: ServeFlags): Promise<number> {
  refuseInsideRun(readSettings(context.env), "serve");
  const at = await projectsHere(flags, context).place();
  return await withWritableStore(at, undefined, async (host) => {
    const lock = lockService(at.store);
    try {
      await serveStore(host, at, flags, context);
      return EXIT.completed;
    } finally {
      lock.release();
    }
  });
}

async function serveStore(host: RunHost, at: ProjectPaths, flags: ServeFlags, context: CommandContext): Promise<void> {
  const clock = systemClock;
  const log = createLog(flags, context);
  const metrics = createMetrics(clock.now());
  const counts = sampledCounts(at.store, clock.now, log.fault);
  const maxParallel = flags.maxParallel ?? MAX_PARALLEL;
  let draining = false;
  /** What each run that could not be continued was reported with. */
  const reported = new Map<string, string>();

  const onResumed = (runId: string, lateMs: number | undefined): void => {
    metrics.woke(lateMs);
    const late = lateMs === undefined ? "" : `, ${milliseconds(lateMs)} after its time`;
    log.event("woke", `${runId}  woke${late}`, { runId, ...(lateMs === undefined ? {} : { lateMs }) });
  };
  const waker = createWaker({ host, at, clock, onResumed, say: log.note }, context);
  const wake = async (runId: string): Promise<WakeVerdict> => {
    const woken = await waker.wake(runId);
    metrics.came(woken);
    const verdict = verdictOf(woken);
    const what = JSON.stringify(wokenJson(woken));
    if (woken.kind !== "elsewhere" && (verdict === "done" || reported.get(runId) !== what))
      log.event(woken.kind, `${runId}  ${wokenText(woken, clock.now())}`, { runId, ...wokenJson(woken) });
    if (verdict === "retry") reported.set(runId, what);
    else reported.delete(runId);
    return verdict;
  };

  const stopped = Promise.withResolvers<StopSignal>();
  const ignoreSignals = onStopSignal(stopped.resolve);
  let server: HealthServer | undefined;
  let scheduler: Scheduler | undefined;
  try {
    const nowOf = (): MetricsNow => ({ counts: counts(), ...(scheduler?.counts() ?? NONE_AWAKE), draining });
    server = await openServer(
      flags,
      () => metrics.text(nowOf()),
      () => !draining,
      log.note,
    );
    scheduler = startScheduler({
      due: (limit) => host.due(limit),
      wake,
      onChange: (listener) => host.onChange(listener),
      clock,
      maxParallel,
      pollMs: flags.poll ?? POLL_MS,
      onFault: log.fault,
    });
    const metricsAt = server === undefined ? "no metrics" : `metrics at ${server.url}/metrics`;
    log.event("started", `serves ${at.store}, ${metricsAt}`, {
      store: at.store,
      pid: process.pid,
      metrics: server?.url ?? null,
    });
    const signal = await stopped.promise;
    draining = true;
    const { active } = scheduler.counts();
    log.event("draining", `${signal}: suspends ${count(active, "run")}; a second signal ends it at once`, {
      signal,
      active,
    });
    const idle = scheduler.stop();
    await waker.drain();
    await idle;
    log.event("stopped", "stopped", {});
  } finally {
    await server?.close();
    await waker.close();
    ignoreSignals();
  }
}

function verdictOf({ kind }: Woken): WakeVerdict {
  if (kind === "elsewhere") return "elsewhere";
  return kind === "refused" || kind === "failed" || kind === "stuck" ? "retry" : "done";
}

/** A second worker of this machine may use the default address; one that was named has to work. */
async function openServer(
  { metrics: wanted }: ServeFlags,
  metrics: () => string,
  isHealthy: () => boolean,
  note: (text: string) => void,
): Promise<HealthServer | undefined> {
  if (wanted === false) return undefined;
  try {
    return await startHealthServer(wanted ?? METRICS_AT, { isHealthy, metrics });
  } catch (thrown) {
    if (wanted !== undefined || !isSluiceError(thrown, "metrics_address")) throw thrown;
    note(thrown.message);
    return undefined;
  }
}

/** How long counts are shown, and how many times the duration of the count before it. */
const SAMPLE_MS = 10_000;
const SAMPLE_SHARE = 200;

/** Counts the runs of a store at most every ten seconds, less often where that takes long. Nothing is counted without a request. */
function sampledCounts(
  store: string,
  now: () => number,
  onFault: (thrown: unknown) => void,
): () => RunCounts | undefined {
  let counts: RunCounts | undefined;
  let validUntil = -Infinity;
  return () => {
    const from = performance.now();
    if (from < validUntil) return counts;
    try {
      counts = countRuns(store, now());
    } catch (thrown) {
      counts = undefined;
      onFault(thrown);
    }
    const end = performance.now();
    validUntil = end + Math.max(SAMPLE_MS, SAMPLE_SHARE * (end - from));
    return counts;
  };
}

const LONGEST_LINE = 4_000;

/** One line for each event that matters: for people with its time, or as JSON. */
function createLog({ outputFormat, json }: ServeFlags, { terminal }: CommandContext) {
  const asJson = json === true || outputFormat !== "text";
  const note = (text: string): void => terminal.err(`sluice: ${visible(redactText(text))}\n`);
  return {
    event: (type: string, text: string, data: JsonObject): void => {
      const at = systemClock.now();
      // One line, so that no message of a run can look like a line of its own.
      const shown = asJson
        ? visibleJson({ type, at, ...data })
        : `${moment(at)}  ${oneLine(redactText(text), LONGEST_LINE)}`;
      terminal.out(`${shown}\n`);
    },
    note,
    fault: (thrown: unknown): void => note(messageOf(thrown)),
  };
}
