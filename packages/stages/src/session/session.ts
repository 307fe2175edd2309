import {
  type Answer,
  type Clock,
  createHost,
  createMemoryJournals,
  type Interactor,
  isSluiceError,
  type OpenRequest,
  type Pipeline,
  type ResumeRunOptions,
  type RunHost,
  type RunJournal,
  type RunTask,
  type SignalOutcome,
  SluiceError,
  type SuspendReason,
  systemClock,
} from "@sluice/core";
import { type ForkRunOptions, forkPointBefore, forkRunCopy } from "../history/fork.ts";
import { type ChangeOptions, comparePipeline, originalPipeline } from "../history/pipeline-changes.ts";
import {
  checkedInput,
  journalsOf,
  newRunId,
  type PipelineSource,
  readRunStarted,
  recordedAnswers,
  refuseLowerSandbox,
  refuseMissingSandbox,
  refuseVersionMismatch,
  refuseWorkspaceMismatch,
} from "../history/run-started.ts";
import { isCapped, NO_RECORDED_USAGE, recordedUsage, refuseUnpricedRecords } from "../history/spending.ts";
import { saidSafely } from "../secrets/encodings.ts";
import type { SessionOptions } from "./options.ts";
import { type AnsweredRequest, createPeople } from "./people.ts";
import { runPreparation } from "./run-deps.ts";
import { type RunHandle, type RunHere, type RunResult, runHandle, runResult } from "./run-handle.ts";

export interface StartOptions {
  /**
   * Answers of any process count, although the run may have started processes without a wall, which could answer themselves. For
   * places with neither a wall nor a terminal. It is recorded: whoever resumes or forks the run keeps it, and cannot add it.
   */
  readonly answers?: "any";
  /** `programmatic` when omitted: such a run is resumed with `session.resume(pipeline, runId)` only. */
  readonly source?: PipelineSource;
}
/** One process's interactors, security mode, live tools, models and store. Runs start in it. */
export interface Session {
  readonly host: RunHost;
  start<I, O>(pipeline: Pipeline<I, O>, input: NoInfer<I>, options?: StartOptions): RunHandle<O>;
  run<I, O>(pipeline: Pipeline<I, O>, input: NoInfer<I>): Promise<RunResult<O>>;
  /** Takes up a run that no process owns any more: finished steps are read back, not repeated. */
  resume<I, O>(pipeline: Pipeline<I, O>, runId: string, options?: ChangeOptions): RunHandle<O>;
  /**
   * Makes a new run that begins with the recorded past of another, up to where that entered an execution, and goes on from there
   * with this pipeline, this session's models, mode and folder. The other run may be in any state, and stays as it is; so do files.
   */
  fork<I, O>(pipeline: Pipeline<I, O>, runId: string, options: ForkRunOptions): RunHandle<O>;
  /**
   * Answers a request of a run of this session, as somebody who sits at this process. `unknown` where no such request waits
   * here. Throws Validation `answer_invalid` for an answer that does not fit.
   */
  answer(request: AnsweredRequest, answer: Answer, by: string): Promise<SignalOutcome>;
  /** Lets somebody join who can answer requests. Returns how to leave. */
  attach(interactor: Interactor): () => void;
  /**
   * Suspends what runs here, ends the MCP servers, and lets the store go where the session opened it: a host that it was given
   * is its opener's to close. Nothing can be started or resumed afterwards (Session `session_closed`).
   */
  close(): Promise<void>;
}

/** Makes a session. Nothing is loaded or opened before the first run; what is missing is told by that run. */
export function createSession(options: SessionOptions): Session {
  const clock = options.clock ?? systemClock;
  const store = sessionStore(options.store, clock);
  const hostNow = store.host;
  const works = sessionWorks();
  const leftOpen = new Map<string, () => void>();

  const rootOf = (runId: string): string => runId.split("/", 1)[0] ?? runId;
  const suspend = (runId: string, reason: SuspendReason): void => {
    const task = works.tasks.get(rootOf(runId));
    task?.suspend(reason).catch(() => undefined); // the run's own result tells
  };
  const people = createPeople({
    signal: (runId, message) => hostNow().signal(runId, message),
    clean: (message) => said.signal(message),
    clock,
    interactors: options.interactors ?? [],
    wait: options.wait !== undefined && options.wait !== false,
    onFault: (fault) => options.onFault?.({ ...fault, message: said.text(fault.message) }),
    onLeftOpen: (request: OpenRequest) => {
      if (typeof options.wait !== "number") return;
      const { runId, requestId } = request;
      const disarm = clock.after(options.wait, () => suspend(runId, "waiting"));
      leftOpen.set(JSON.stringify([runId, requestId]), disarm);
    },
    onCode: (request, code) => options.onCode?.(request, code),
    onUnkept: ({ runId }) => suspend(runId, "interrupted"),
    onSettled: (runId, requestId) => {
      const key = JSON.stringify([runId, requestId]);
      leftOpen.get(key)?.();
      leftOpen.delete(key);
    },
    ...(options.requestTimeoutMs === undefined ? {} : { requestTimeoutMs: options.requestTimeoutMs }),
  });

  const secrets = new Map<string, string>();
  const said = saidSafely(secrets);
  const preparation = runPreparation(options, { clock, people, host: hostNow, secrets });

  const launch = async <I, O>(
    { spec }: Pipeline<I, O>,
    input: unknown,
    runId: string,
    { source = PROGRAMMATIC, answers }: StartOptions,
  ): Promise<RunTask> => {
    const accepted = await checkedInput(spec, input);
    const run = await preparation.of(spec, runId, { any: answers === "any", unwalled: false });
    const clean = run.deps.secrets.json(accepted);
    const events = [{ type: "run.started" as const, data: run.started(source, clean) }];
    return await works.add(() => hostNow().start({ runId, input: clean, events, program: run.program() }));
  };

  const takeUp = async <I, O>(pipeline: Pipeline<I, O>, runId: string, options: ChangeOptions): Promise<RunTask> => {
    for (let tries = 1; ; tries += 1) {
      try {
        return await takeUpAsRead(pipeline, runId, options);
      } catch (thrown) {
        // What it was compared with, and what it had spent, was said before another process went on with it.
        if (tries === MOST_READINGS || !isSluiceError(thrown, "run_continued_elsewhere")) throw thrown;
      }
    }
  };
  const takeUpAsRead = async <I, O>(
    { spec }: Pipeline<I, O>,
    runId: string,
    options: ChangeOptions,
  ): Promise<RunTask> => {
    const host = hostNow();
    const journals = await journalsOf(host, runId);
    const started = refuseVersionMismatch(spec, runId, await readRunStarted(host, runId));
    refuseWorkspaceMismatch(runId, started, preparation);
    refuseLowerSandbox(runId, started, preparation);
    const compare = comparePipeline(spec, runId, journals, options, preparation.clean);
    const run = await preparation.of(spec, runId, recordedAnswers(started, journals));
    refuseMissingSandbox(runId, started, run.sandbox);
    const changes = compare(run.deps);
    const spent = isCapped(spec.limits) ? recordedUsage(journals) : NO_RECORDED_USAGE;
    refuseUnpricedRecords(spec, runId, spent);
    return await works.add(() =>
      host.resume(runId, run.program(spent), {
        ...readBefore(journals),
        said: {
          sandbox: run.sandbox,
          ...(changes === undefined ? {} : { changed: { ...changes, ...run.facts(options.source) } }),
        },
      }),
    );
  };

  const branchOff = async <I, O>(
    { spec }: Pipeline<I, O>,
    of: string,
    runId: string,
    options: ForkRunOptions,
  ): Promise<RunTask> => {
    const host = hostNow();
    const journals = await journalsOf(host, of);
    const from = refuseVersionMismatch(spec, of, await readRunStarted(host, of));
    refuseLowerSandbox(of, from, preparation);
    const { data: was } = from;
    const { boundary, past } = forkPointBefore(journals, options.from);
    const compare = comparePipeline(spec, of, past, options, preparation.clean);
    const run = await preparation.of(spec, runId, recordedAnswers(from, journals));
    refuseMissingSandbox(of, from, run.sandbox);
    const changed = compare(run.deps);
    refuseUnpricedRecords(spec, of, recordedUsage(past));
    const { source = PROGRAMMATIC } = options;
    const now = run.facts(source);
    const input = run.deps.secrets.json(was.input ?? null);
    const started = { ...run.started(source, input), ...originalPipeline(past, now) };
    const forked = changed === undefined ? {} : { changed: { ...changed, ...now } };
    return await works.add(async () => {
      await host.copy({ ...forkRunCopy(of, boundary, { started, forked }), runId });
      // As it came along: a sibling of a run at work may have completed since it was read.
      const copied = await journalsOf(host, runId);
      return await host.resume(runId, run.program(recordedUsage(copied)), readBefore(copied));
    });
  };

  const begin = (runId: string, start: () => Promise<RunTask>): RunHere => ({
    host: hostNow,
    runId,
    said,
    started: works.closing() ? Promise.reject(sessionClosed()) : start(),
  });
  const handle = <O>(run: RunHere): RunHandle<O> => runHandle(run, runResult<O>(run, works.tasks));
  const shutDown = async (): Promise<void> => {
    for (const disarm of leftOpen.values()) disarm();
    await works.suspendAll();
    people.close();
    await preparation.close();
    await store.close();
  };
  let closed: Promise<void> | undefined;

  return {
    get host() {
      return hostNow();
    },
    start: (pipeline, input, options = {}) => {
      const runId = newRunId();
      return handle(begin(runId, () => launch(pipeline, input, runId, options)));
    },
    run: (pipeline, input) => {
      const runId = newRunId();
      return runResult(
        begin(runId, () => launch(pipeline, input, runId, {})),
        works.tasks,
      );
    },
    resume: (pipeline, runId, options = {}) => handle(begin(runId, () => takeUp(pipeline, runId, options))),
    fork: (pipeline, of, options) => {
      const runId = newRunId();
      return handle(begin(runId, () => branchOff(pipeline, of, runId, options)));
    },
    answer: people.answer,
    attach: people.attach,
    close: () => (closed ??= shutDown()),
  };
}

/** How often a run is read again that others take up and leave meanwhile. */
const MOST_READINGS = 5;

const PROGRAMMATIC: PipelineSource = { kind: "programmatic" };

/** What was read of a run to compare it need not be read again to take it up. */
function readBefore([own]: readonly RunJournal[]): Pick<ResumeRunOptions, "read"> {
  return own === undefined ? {} : { read: own };
}

/** The runs that a session has at work. */
export interface SessionWorks {
  /** By run id; whoever waits for a run takes it out. */
  readonly tasks: Map<string, RunTask>;
  /** Takes a run up by `begin`, unless the session is closing: then nobody would end it. */
  add(begin: () => Promise<RunTask>): Promise<RunTask>;
  closing(): boolean;
  /** Suspends all runs, those that are being started too, and takes no more. */
  suspendAll(): Promise<void>;
}

export function sessionWorks(): SessionWorks {
  const tasks = new Map<string, RunTask>();
  const beginning = new Set<Promise<unknown>>();
  let closing = false;

  const begun = async (begin: () => Promise<RunTask>): Promise<RunTask> => {
    const task = await begin();
    tasks.set(task.runId, task);
    return task;
  };

  return {
    tasks,
    add: async (begin) => {
      if (closing) throw sessionClosed();
      const work = begun(begin);
      const drop = (): void => {
        beginning.delete(work);
      };
      beginning.add(work);
      work.then(drop, drop);
      return await work;
    },
    closing: () => closing,
    suspendAll: async () => {
      closing = true;
      await Promise.allSettled([...beginning]);
      await Promise.allSettled([...tasks.values()].map((task) => task.suspend("interrupted")));
    },
  };
}

export function sessionClosed(): SluiceError {
  return new SluiceError("Session", "session_closed", "this session was closed; make another one");
}

/** Where a session keeps its runs. */
export interface SessionStore {
  /** Opened by the first call. */
  host(): RunHost;
  /** Closes what was opened here; a host that was given is its opener's. */
  close(): Promise<void>;
}

export function sessionStore(given: SessionOptions["store"], clock: Clock): SessionStore {
  if (given !== undefined && typeof given !== "function") return { host: () => given, close: async () => undefined };
  const open = given ?? (() => createHost(createMemoryJournals().connect(), { clock }));
  let opened: RunHost | undefined;
  let closed = false;
  return {
    host: () => {
      if (opened === undefined && closed) throw sessionClosed();
      opened ??= open();
      return opened;
    },
    close: async () => {
      closed = true;
      await opened?.close();
    },
  };
}
