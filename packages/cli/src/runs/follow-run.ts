import { type JsonObject, messageOf, type OpenRequest, redactText, type SluiceEvent, visible } from "@sluice/core";
import type { RunHandle, RunResult } from "@sluice/stages";
import { EXIT, exitCodeOf, STOPPED, type StopSignal } from "../output/exit-codes.ts";
import { deniedLine, type Reporter } from "../output/reporter.ts";
import { createRunSummarizer, type RunReport, reportOf, reportOfFault } from "../output/run-report.ts";
import type { Terminal } from "../output/terminal.ts";

export interface FollowOptions {
  readonly reporter: Reporter;
  readonly terminal: Terminal;
  /** Whether a completed run with denied calls is exit 5. */
  readonly failOnDenied: boolean;
  /** What earlier processes wrote; not shown again. */
  readonly past?: readonly SluiceEvent[];
  /** Requests that were open before the run was taken up. */
  readonly open?: readonly OpenRequest[];
  /** Whether requests stay open for other processes: then each is announced with the line that answers it. */
  readonly waits: boolean;
  /** What is said of the run once it has begun: one that is refused is no such run. */
  readonly notices?: readonly string[];
  /** What a command has to say beside the report, in the formats for programs. */
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
 * Shows a run from its start to its end here, and says how it ended. SIGINT and SIGTERM suspend it. Rejects only when the run
 * could not begin; a journal that fails later is part of the report.
 */
export async function followRun(handle: RunHandle<unknown>, options: FollowOptions): Promise<FollowedRun> {
  const { terminal, reporter, failOnDenied } = options;
  let stoppedBy: StopSignal | undefined;
  const ignoreSignals = onStopSignal((signal) => {
    stoppedBy = signal;
    terminal.err(`sluice: ${signal}: suspending the run; a second one ends the process at once\n`);
    // What comes of it, the run's own result tells.
    handle.suspend().catch(() => undefined);
  });
  try {
    const accountant = createRunSummarizer();
    const shown = await show(handle, options, accountant);
    const account = accountant.account();
    const resume = options.resume(handle.runId);
    const report =
      "thrown" in shown
        ? reportOfFault(shown.thrown, handle.runId, account, resume)
        : reportOf(shown.result, account, resume);
    reporter.result({ ...report, ...options.extraJson });
    sayAside(report, options);
    const ended = { status: report.status, denied: report.denied.length, failOnDenied };
    const exitCode =
      "thrown" in shown ? EXIT.environment : exitCodeOf(stoppedBy === undefined ? ended : { ...ended, stoppedBy });
    return { report, exitCode };
  } finally {
    ignoreSignals();
  }
}

type Shown = { readonly result: RunResult<unknown> } | { readonly thrown: unknown };

async function show(
  handle: RunHandle<unknown>,
  options: FollowOptions,
  accountant: ReturnType<typeof createRunSummarizer>,
): Promise<Shown> {
  const { reporter, past = [], open = [], notices = [], terminal, waits } = options;
  /** A run that is refused waits for nobody, and nothing is said of it. */
  const sayBegun = (): void => {
    for (const line of notices) terminal.err(`sluice: ${visible(redactText(line))}\n`);
    if (waits) for (const request of open) announce(request, options);
  };
  const known = new Set<string>();
  for (const event of past) {
    known.add(event.id);
    accountant.add(event);
    reporter.past(event);
  }
  let began = false;
  const isInherited = forkedPast();
  const reading = (async (): Promise<void> => {
    for await (const event of handle.events) {
      if (!began) sayBegun();
      began = true;
      if (known.has(event.id)) continue;
      accountant.add(event);
      if (isInherited(event)) {
        reporter.past(event);
        continue;
      }
      reporter.event(event);
      if (waits) announceNew(event, options);
    }
  })();
  try {
    const result = await handle;
    // A run that ended is told in full; events that cannot be read are a fault of the store, not of the run.
    await reading.catch((thrown: unknown) =>
      terminal.err(`sluice: its events could not be read: ${visible(messageOf(thrown))}\n`),
    );
    return { result };
  } catch (thrown) {
    await reading.catch(() => undefined); // the same fault, seen from its other side
    if (!began) throw thrown;
    return { thrown };
  }
}

/** Tells the events that a forked run has from another: its own before the fork, and its siblings' of before that. */
function forkedPast(): (event: SluiceEvent) => boolean {
  let inherits = false;
  let forkedAt: number | undefined;
  return ({ type, runId, at, data }) => {
    if (runId.includes("/")) return forkedAt !== undefined && at < forkedAt;
    if (type === "run.started") inherits = data.forkedFrom !== undefined;
    else if (type === "run.forked" && inherits) forkedAt = at;
    else return inherits && forkedAt === undefined;
    return false;
  };
}

function announceNew({ type, data, runId }: SluiceEvent, options: FollowOptions): void {
  if (type !== "grant.requested" && type !== "request.opened") return;
  const { requestId, kind, digest } = data;
  if (typeof requestId === "string" && typeof kind === "string" && typeof digest === "string")
    announce({ runId, requestId, kind, digest }, options);
}

function announce({ kind, ...asking }: Asking & { readonly kind: string }, { terminal, answer }: FollowOptions): void {
  // Pasted as it is, a shell must refuse it: `approve|deny` would approve.
  const answers = kind === "askUser" || kind === "humanState" ? "--value <text>" : "<approve, deny or defer>";
  terminal.err(`sluice: waits for an answer: ${visible(answer(asking))} ${answers}\n`);
}

function sayAside(report: RunReport, { terminal }: FollowOptions): void {
  const denied = deniedLine(report);
  if (denied !== "") terminal.err(`sluice: ${denied}\n`);
  if (report.suspended !== undefined)
    terminal.err(`sluice: the run is suspended; go on with: ${visible(report.suspended.resume)}\n`);
}

/** Two signals closer than this are one key press that reached the process twice, by its terminal and by npm. */
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
