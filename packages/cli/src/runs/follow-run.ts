import type { JsonObject, OpenRequest, SluiceEvent } from "@sluice/core";
import { isQuestion, messageOf, redactText, visible } from "@sluice/core/runtime";
import type { RunHandle, RunResult, Suspension } from "@sluice/stages";
import { answerCommand, frameAt } from "@sluice/tui/user";
import { type RunReducer, reduceRun } from "@sluice/view";
import { executionName, indented } from "@sluice/view/words";
import { timeWithCountdown } from "../output/countdown.ts";
import { EXIT, exitCodeOf, STOPPED, type StopSignal } from "../output/exit-codes.ts";
import { deniedLine, writeEvent, writeReport } from "../output/reporter.ts";
import { type RunReport, reportOf, reportOfFault, resumeWords, totalsOf } from "../output/run-report.ts";
import type { Terminal } from "../output/terminal.ts";
import type { ExecuteFlags } from "./run-flags.ts";

export interface FollowOptions {
  readonly flags: ExecuteFlags;
  /** Events that earlier processes recorded; not shown again. */
  readonly past?: readonly SluiceEvent[];
  /** Requests that were open before the resume. */
  readonly open?: readonly OpenRequest[];
  /** Lines for stderr once the run has begun. */
  readonly notices?: readonly string[];
  /** Fields to add to the report, in the formats for programs. */
  readonly extraJson?: JsonObject;
}
interface FollowContext {
  readonly terminal: Terminal;
  /** Whether requests stay open for other processes; then each is announced with the command that answers it. */
  readonly waits: boolean;
  /** The folder that recorded places in code are relative to. */
  readonly workspace: string;
  /** Masks secrets in the lines of code that are shown. */
  readonly clean: (text: string) => string;
  /** A command line of this run's project. */
  line(words: readonly string[]): string;
}
export interface FollowedRun {
  readonly report: RunReport;
  readonly exitCode: number;
}

/**
 * Shows a run until it ends or is suspended. SIGINT and SIGTERM suspend it. Rejects only if the run could not begin; a journal
 * that fails later is part of the report.
 */
export async function followRun(
  handle: RunHandle<unknown>,
  options: FollowOptions,
  around: FollowContext,
): Promise<FollowedRun> {
  const { terminal, workspace, clean } = around;
  const { outputFormat, failOnDenied } = options.flags;
  let stoppedBy: StopSignal | undefined;
  const ignoreSignals = onStopSignal((signal) => {
    stoppedBy = signal;
    terminal.err(`sluice: ${signal}: suspending the run; a second one ends the process at once\n`);
    // The run's result has the outcome.
    handle.suspend().catch(() => undefined);
  });
  try {
    const reducer = reduceRun(handle.runId, options.past);
    const shown = await show(handle, options, around, reducer);
    const totals = totalsOf(reducer.view());
    const suspended = "result" in shown && shown.result.status === "suspended" ? shown.result : undefined;
    // Of a run whose journal failed, the events say what is open.
    const isOpen = suspended === undefined ? reducer.hasRequests() : suspended.waitingFor.length > 0;
    const isLeftAsleep = suspended?.reason === "sleeping" && options.flags.suspendSleeps === true;
    const resume = around.line(resumeWords({ runId: handle.runId, isOpen, isLeftAsleep }));
    const report =
      "thrown" in shown
        ? reportOfFault(shown.thrown, { runId: handle.runId, workspace, totals, resume })
        : reportOf(shown.result, totals, resume);
    writeReport(outputFormat, terminal, { ...report, ...options.extraJson });
    const frame = report.error?.at === undefined ? undefined : frameAt(report.error.at, workspace, clean);
    if (frame !== undefined) terminal.err(`${indented(frame, "    ")}\n`);
    const denied = deniedLine(report);
    if (denied !== "") terminal.err(`sluice: ${denied}\n`);
    if ("result" in shown && shown.result.status === "suspended")
      for (const line of faultLines(shown.result.suspended)) terminal.err(`sluice: ${line}\n`);
    if (report.suspended !== undefined) terminal.err(`sluice: ${visible(suspendedText(report.suspended, around))}\n`);
    if ("thrown" in shown) return { report, exitCode: EXIT.environment };
    const counts = failOnDenied === true && report.denied.length > 0;
    return { report, exitCode: exitCodeOf(report.status, counts, stoppedBy) };
  } finally {
    ignoreSignals();
  }
}

/** What failed, with the execution that waits because of it. */
export function faultLines({ faults = [] }: Pick<Suspension, "faults">): readonly string[] {
  return faults.map(({ code, message, ...where }) =>
    visible(redactText(`the provider failed in ${executionName(where)}: ${message} (${code})`)),
  );
}

/** How a suspended run continues. */
function suspendedText(
  { reason, retryAt, wakeAt, resume }: NonNullable<RunReport["suspended"]>,
  { line }: Pick<FollowContext, "line">,
): string {
  if (reason === "provider") {
    const when =
      retryAt === undefined
        ? ""
        : `; ${line(["serve"])}, or ${line(["wake"])}, continues it at ${timeWithCountdown(retryAt, Date.now())}`;
    return `the run is suspended; to continue where it stopped: ${resume}${when}`;
  }
  if (reason !== "sleeping" || wakeAt === undefined) return `the run is suspended; resume it with: ${resume}`;
  return `the run sleeps until ${timeWithCountdown(wakeAt, Date.now())}; then ${line(["serve"])}, or ${line(["wake"])}, continues it. To wait here: ${resume}`;
}

/** Shorter sleeps are not worth a word. */
const LONG_SLEEP_MS = 5_000;

/** What a user may do about a run that sleeps in this process; undefined for a short sleep. */
export function sleepNotice(until: number, line: FollowContext["line"]): string | undefined {
  if (until - Date.now() < LONG_SLEEP_MS) return undefined;
  const leave = `Ctrl-C leaves it asleep; ${line(["serve"])}, or ${line(["wake"])}, then continues it at its time`;
  return `the run sleeps until ${timeWithCountdown(until, Date.now())}. ${leave}`;
}

type Shown = { readonly result: RunResult<unknown> } | { readonly thrown: unknown };

async function show(
  handle: RunHandle<unknown>,
  { flags, open = [], notices = [] }: FollowOptions,
  around: FollowContext,
  reducer: RunReducer,
): Promise<Shown> {
  const { terminal, waits } = around;
  let began = false;
  let saidSleeps = false;
  /** The first of a run's long sleeps: a poll has many. */
  const saySleeps = ({ type, data }: SluiceEvent): void => {
    const until = type === "sleep.started" ? data.until : undefined;
    const notice = saidSleeps || typeof until !== "number" ? undefined : sleepNotice(until, around.line);
    if (notice === undefined || flags.suspendSleeps === true) return;
    saidSleeps = true;
    terminal.err(`sluice: ${visible(notice)}\n`);
  };
  const begin = (): void => {
    began = true;
    for (const line of notices) terminal.err(`sluice: ${visible(redactText(line))}\n`);
    if (waits) for (const request of open) announce(request, around);
  };
  const reading = (async (): Promise<void> => {
    for await (const event of handle.events) {
      // Nothing is written about a run that is refused.
      if (!began) begin();
      const line = reducer.event(event);
      if (line?.isInherited === true) continue;
      saySleeps(event);
      if (line === undefined) continue;
      writeEvent(flags.outputFormat, terminal, event, line);
      if (waits) announceNew(event, around);
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

function announceNew({ type, data, runId }: SluiceEvent, around: FollowContext): void {
  if (type !== "grant.requested" && type !== "request.opened") return;
  const { requestId, kind, digest } = data;
  if (typeof requestId === "string" && typeof kind === "string" && typeof digest === "string")
    announce({ runId, requestId, kind, digest }, around);
}

type Asking = Pick<OpenRequest, "runId" | "requestId" | "digest"> & { readonly kind: string };

function announce(asking: Asking, { terminal, line }: FollowContext): void {
  // A shell must refuse the line if it is pasted unchanged: `approve|deny` would approve.
  const answers = isQuestion(asking) ? "--value <text>" : "<approve, deny or defer>";
  terminal.err(`sluice: waiting for an answer: ${visible(line(answerCommand(asking)))} ${answers}\n`);
}

/** Two signals within this time are one key press, delivered by the terminal and by npm. */
const SAME_PRESS_MS = 100;

/** Calls back at the first SIGINT or SIGTERM; a second one ends the process at once. Returns the unsubscriber. */
export function onStopSignal(first: (signal: StopSignal) => void): () => void {
  let since: number | undefined;
  const onSignal = (name: NodeJS.Signals): void => {
    const signal = name === "SIGINT" ? name : "SIGTERM";
    const now = performance.now();
    if (since === undefined) {
      since = now;
      first(signal);
    } else if (now - since > SAME_PRESS_MS) {
      process.exit(STOPPED[signal]);
    }
  };
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  return () => void process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
}
