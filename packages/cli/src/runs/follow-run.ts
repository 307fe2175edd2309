import type { JsonObject, OpenRequest, SluiceEvent } from "@sluice/core";
import { messageOf, redactText, visible } from "@sluice/core/runtime";
import type { RunHandle, RunResult } from "@sluice/stages";
import { type RunReducer, reduceRun } from "@sluice/view";
import { EXIT, exitCodeOf, STOPPED, type StopSignal } from "../output/exit-codes.ts";
import { deniedLine, type Reporter } from "../output/reporter.ts";
import { type RunReport, reportOf, reportOfFault, totalsOf } from "../output/run-report.ts";
import type { Terminal } from "../output/terminal.ts";

export interface FollowOptions {
  readonly reporter: Reporter;
  readonly terminal: Terminal;
  /** Whether a completed run with denied calls is exit 5. */
  readonly failOnDenied: boolean;
  /** Events that earlier processes recorded; not shown again. */
  readonly past?: readonly SluiceEvent[];
  /** Requests that were open before the resume. */
  readonly open?: readonly OpenRequest[];
  /** Whether requests stay open for other processes; then each is announced with the command that answers it. */
  readonly waits: boolean;
  /** Lines for stderr once the run has begun. */
  readonly notices?: readonly string[];
  /** Additional members of the JSON report. */
  readonly extraJson?: JsonObject;
  /** The command that resumes this run. */
  resume(runId: string): string;
  /** The command that answers a request, up to the answer itself. */
  answer(request: Asking): string;
}
type Asking = Pick<OpenRequest, "runId" | "requestId" | "digest">;
export interface FollowedRun {
  readonly report: RunReport;
  readonly exitCode: number;
}

/**
 * Shows a run until it ends or is suspended. SIGINT and SIGTERM suspend it. Rejects only if the run could not begin; a journal
 * that fails later is part of the report.
 */
export async function followRun(handle: RunHandle<unknown>, options: FollowOptions): Promise<FollowedRun> {
  const { terminal, reporter, failOnDenied } = options;
  let stoppedBy: StopSignal | undefined;
  const ignoreSignals = onStopSignal((signal) => {
    stoppedBy = signal;
    terminal.err(`sluice: ${signal}: suspending the run; a second one ends the process at once\n`);
    // The run's result has the outcome.
    handle.suspend().catch(() => undefined);
  });
  try {
    const reducer = reduceRun(handle.runId, options.past);
    const shown = await show(handle, options, reducer);
    const totals = totalsOf(reducer.view());
    const resume = options.resume(handle.runId);
    const report =
      "thrown" in shown
        ? reportOfFault(shown.thrown, handle.runId, totals, resume)
        : reportOf(shown.result, totals, resume);
    reporter.result({ ...report, ...options.extraJson });
    writeNotes(report, options);
    const ended = { status: report.status, denied: report.denied.length, failOnDenied };
    const exitCode =
      "thrown" in shown ? EXIT.environment : exitCodeOf(stoppedBy === undefined ? ended : { ...ended, stoppedBy });
    return { report, exitCode };
  } finally {
    ignoreSignals();
  }
}

type Shown = { readonly result: RunResult<unknown> } | { readonly thrown: unknown };

async function show(handle: RunHandle<unknown>, options: FollowOptions, reducer: RunReducer): Promise<Shown> {
  const { reporter, open = [], notices = [], terminal, waits } = options;
  const writeNotices = (): void => {
    for (const line of notices) terminal.err(`sluice: ${visible(redactText(line))}\n`);
    if (waits) for (const request of open) announce(request, options);
  };
  let began = false;
  const reading = (async (): Promise<void> => {
    for await (const event of handle.events) {
      // Nothing is written about a run that is refused.
      if (!began) writeNotices();
      began = true;
      const line = reducer.event(event);
      if (line === undefined || line.isInherited) continue;
      reporter.event(event, line);
      if (waits) announceNew(event, options);
    }
  })();
  try {
    const result = await handle;
    // Unreadable events are a fault of the store, not of the run.
    await reading.catch((thrown: unknown) =>
      terminal.err(`sluice: the run's events could not be read: ${visible(messageOf(thrown))}\n`),
    );
    return { result };
  } catch (thrown) {
    await reading.catch(() => undefined); // the same fault as the result's
    if (!began) throw thrown;
    return { thrown };
  }
}

function announceNew({ type, data, runId }: SluiceEvent, options: FollowOptions): void {
  if (type !== "grant.requested" && type !== "request.opened") return;
  const { requestId, kind, digest } = data;
  if (typeof requestId === "string" && typeof kind === "string" && typeof digest === "string")
    announce({ runId, requestId, kind, digest }, options);
}

function announce({ kind, ...asking }: Asking & { readonly kind: string }, { terminal, answer }: FollowOptions): void {
  // A shell must refuse the line if it is pasted unchanged: `approve|deny` would approve.
  const answers = kind === "askUser" || kind === "humanState" ? "--value <text>" : "<approve, deny or defer>";
  terminal.err(`sluice: waiting for an answer: ${visible(answer(asking))} ${answers}\n`);
}

function writeNotes(report: RunReport, { terminal }: FollowOptions): void {
  const denied = deniedLine(report);
  if (denied !== "") terminal.err(`sluice: ${denied}\n`);
  if (report.suspended !== undefined)
    terminal.err(`sluice: the run is suspended; resume it with: ${visible(report.suspended.resume)}\n`);
}

/** Two signals within this time are one key press, delivered by the terminal and by npm. */
const SAME_PRESS_MS = 100;

/** Calls back at the first SIGINT or SIGTERM; a second one ends the process at once. Returns the unsubscriber. */
export function onStopSignal(first: (signal: StopSignal) => void): () => void {
  let since: number | undefined;
  const onSignal = (signal: StopSignal): void => {
    const now = performance.now();
    if (since === undefined) {
      since = now;
      first(signal);
    } else if (now - since > SAME_PRESS_MS) {
      process.exit(STOPPED[signal]);
    }
  };
  const onInterrupt = (): void => onSignal("SIGINT");
  const onTerminate = (): void => onSignal("SIGTERM");
  process.on("SIGINT", onInterrupt);
  process.on("SIGTERM", onTerminate);
  return () => {
    process.off("SIGINT", onInterrupt);
    process.off("SIGTERM", onTerminate);
  };
}
