import {
  type Answer,
  type AvailableTool,
  type Clock,
  type Interactor,
  isSluiceError,
  type Json,
  type JsonObject,
  type Pipeline,
  type PipelineSpec,
  type RunHost,
  type RunTask,
  type SignalOutcome,
  SluiceError,
  type SuspendReason,
  systemClock,
} from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { isSameJson, recordedCosts, type StartAt, toJsonValue } from "@sluice/core/runtime";
import { costInValue } from "../agent/agent-steps.ts";
import { type MessageKind, sendMessage } from "../agent/messages.ts";
import { type Follows, followUpId, followUpOf } from "../history/follow-up.ts";
import { type ForkRunOptions, forkPointBefore, forkRunCopy } from "../history/fork.ts";
import { addedTools, type ChangeOptions, comparePipeline, originalPipeline } from "../history/pipeline-changes.ts";
import {
  checkedInput,
  journalsOf,
  newRunId,
  type PipelineSource,
  readRunStarted,
  recordedRules,
  refuseLowerSandbox,
  refuseVersionMismatch,
  refuseWorkspaceMismatch,
} from "../history/run-started.ts";
import { refuseUnpricedRecords } from "../history/unpriced.ts";
import { maskOutgoing } from "../secrets/encodings.ts";
import type { SessionOptions } from "./options.ts";
import { type AnsweredRequest, createPeople } from "./people.ts";
import { runPreparation } from "./run-deps.ts";
import { type LocalRun, type RunHandle, type RunResult, runHandle, runResult } from "./run-handle.ts";

export interface StartOptions {
  /**
   * Accepts answers of any process, even if the run has started processes without a sandbox, which could write answers
   * themselves. For hosts with neither a sandbox nor a terminal. It is recorded: resuming or forking the run keeps it and
   * cannot add it.
   */
  readonly answers?: "any";
  /** What the program that starts the run reads back when it resumes it, such as options of a command: `settings` of `run.started`. */
  readonly settings?: JsonObject;
  /** Default `programmatic`: such a run can be resumed only with `session.resume(pipeline, runId)`. */
  readonly source?: PipelineSource;
  /**
   * Starts in this state instead of the initial one. Its input has to fit the `inputSchema` of the state. No earlier state has run, so
   * `ctx.upstream` is empty. Refused with Validation `start_invalid` if the state's templates read what is not there.
   */
  readonly from?: { readonly state: string; readonly input?: unknown };
}
export interface MessageOptions {
  readonly kind?: MessageKind;
  /** Who sends it; default `api`. */
  readonly by?: string;
}
/** The models, tools, interactors, security mode and store with which runs execute in this process. */
export interface Session {
  readonly host: RunHost;
  start<I, O>(pipeline: Pipeline<I, O>, input: NoInfer<I>, options?: StartOptions): RunHandle<O>;
  run<I, O>(pipeline: Pipeline<I, O>, input: NoInfer<I>): Promise<RunResult<O>>;
  /** Resumes a run that no process owns: recorded steps are read back, not repeated. */
  resume<I, O>(pipeline: Pipeline<I, O>, runId: string, options?: ChangeOptions): RunHandle<O>;
  /**
   * Starts a new run from a point of another run: it copies the records before that run entered an execution and continues
   * with this pipeline and this session's models, mode and workspace. The other run, in whatever state, and all files remain
   * unchanged.
   */
  fork<I, O>(pipeline: Pipeline<I, O>, runId: string, options: ForkRunOptions): RunHandle<O>;
  /**
   * Starts the run that an orchestrator asked for when its run ended, as `acknowledgement.followUp` of its result says. It is linked
   * to that run, and started at most once (Host `run_exists`). Throws Session `follow_up_missing`, and `follow_up_limit` for the
   * fourth run in a row.
   */
  followUp<I, O>(pipeline: Pipeline<I, O>, runId: string, options?: Omit<StartOptions, "from">): RunHandle<O>;
  /**
   * Answers a request of a run of this session on behalf of this process's user. Returns `unknown` if the request is not open
   * here. Throws Validation `answer_invalid` for an answer that does not match the request.
   */
  answer(request: AnsweredRequest, answer: Answer, by: string): Promise<SignalOutcome>;
  /**
   * Sends a message to a run of any process, or to a child's run. `steer` (default) is read before the next turn of the agent that
   * works now; `followUp` by the next state that an agent runs. A suspended or sleeping run gets it when it continues. Throws
   * Validation `message_invalid`, Session `run_unknown` and `run_finished`.
   */
  message(runId: string, text: string, options?: MessageOptions): Promise<void>;
  /**
   * The tools that agents of a pipeline may call, by name. Starts the MCP servers that it needs. If they are those of a run that will be
   * resumed with these options, it throws as the resume would before it starts a server.
   */
  tools(
    pipeline: { readonly spec: PipelineSpec },
    options?: ChangeOptions & { readonly resumes?: string },
  ): Promise<readonly AvailableTool[]>;
  /** A value as runs record it: the known secrets of all runs that this session has prepared are replaced. */
  masked(value: Json): Json;
  /** Adds an interactor. Returns a function that removes it. */
  attach(interactor: Interactor): () => void;
  /**
   * Suspends the session's runs, stops its MCP servers and closes its store unless that was passed in as a host. The session
   * cannot start or resume runs afterwards (Session `session_closed`).
   */
  close(): Promise<void>;
}

/** Creates a session. Nothing is loaded or opened before the first run, which also reports missing configuration. */
export function createSession(options: SessionOptions): Session {
  const clock = options.clock ?? systemClock;
  const store = sessionStore(options.host, clock);
  const hostNow = store.host;
  const runs = activeRuns();
  const { suspendSleepsOver: longest } = options;
  /** Suspends the run when it falls asleep for long, if the session does not wait for it. */
  const added = async (begin: () => Promise<RunTask>): Promise<RunTask> => {
    const task = await runs.add(begin);
    if (longest === undefined) return task;
    task.onAsleep(({ wakeAt, waiting }) => {
      // What waits for a person is suspended by the people's rules.
      if (waiting === 0 && wakeAt !== undefined && wakeAt - clock.now() > longest) suspend(task.runId, "sleeping");
    });
    return task;
  };

  const rootOf = (runId: string): string => runId.split("/", 1)[0] ?? runId;
  const suspend = (runId: string, reason: SuspendReason): void => {
    // A session that closes suspends all its runs itself.
    if (runs.closing()) return;
    const task = runs.tasks.get(rootOf(runId));
    task?.suspend(reason).catch(() => undefined); // the run's result rejects too
  };
  const people = createPeople({
    signal: (runId, message) => hostNow().signal(runId, message),
    clean: (message) => outgoing.signal(message),
    clock,
    interactors: options.interactors ?? [],
    wait: options.wait ?? false,
    onFault: (fault) => options.onFault?.({ ...fault, message: outgoing.text(fault.message) }),
    onCode: (request, code) => options.onCode?.(request, code),
    suspend,
    ...(options.requestTimeoutMs === undefined ? {} : { requestTimeoutMs: options.requestTimeoutMs }),
  });

  const secrets = new Map<string, string>();
  const outgoing = maskOutgoing(secrets);
  const preparation = runPreparation(options, { clock, people, host: hostNow, secrets });

  const launch = async <I, O>(
    { spec }: Pipeline<I, O>,
    input: unknown,
    runId: string,
    { source = PROGRAMMATIC, answers, from: at, settings }: StartOptions,
    follows?: Follows,
  ): Promise<RunTask> => {
    const from = at === undefined ? undefined : startAt(at);
    const accepted = await checkedInput(spec, input, from);
    const run = await preparation.of(spec, runId, { any: answers === "any", unwalled: false }, [], from);
    const clean = run.deps.secrets.json(accepted);
    const data = run.started(source, clean, settings, follows === undefined ? {} : { follows });
    const events = [{ type: "run.started" as const, data }];
    return await added(() => hostNow().start({ runId, input: clean, events, program: run.program() }));
  };

  /** What a run has recorded, if this session may continue it, as far as is known before a server is started. */
  const resumable = async (spec: PipelineSpec, runId: string, options: ChangeOptions) => {
    const host = hostNow();
    const journals = await journalsOf(host, runId);
    const started = refuseVersionMismatch(spec, runId, await readRunStarted(host, runId));
    refuseWorkspaceMismatch(runId, started, preparation);
    refuseLowerSandbox(runId, started, preparation);
    const comparison = comparePipeline(spec, runId, journals, options, preparation.clean);
    return { journals, comparison, rules: recordedRules(started, journals, options) };
  };

  const resume = async <I, O>(pipeline: Pipeline<I, O>, runId: string, options: ChangeOptions): Promise<RunTask> => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await resumeAsRead(pipeline, runId, options);
      } catch (thrown) {
        // Another process continued the run after its journal was read here, so the comparison and the usage are outdated.
        if (attempt === MAX_RESUME_ATTEMPTS || !isSluiceError(thrown, "run_continued_elsewhere")) throw thrown;
      }
    }
  };
  const resumeAsRead = async <I, O>(
    { spec }: Pipeline<I, O>,
    runId: string,
    options: ChangeOptions,
  ): Promise<RunTask> => {
    const host = hostNow();
    const { journals, comparison, rules } = await resumable(spec, runId, options);
    const run = await preparation.of(spec, runId, rules, journals);
    const changes = comparison.withTools(run.deps);
    const source = options.source === undefined ? {} : { source: options.source };
    const costs = recordedCosts(journals, costInValue);
    refuseUnpricedRecords(spec, runId, costs);
    return await added(() =>
      host.resume(runId, run.program(costs), {
        read: journals,
        said: {
          sandbox: run.sandbox,
          ...run.agents,
          ...(isSameJson(rules.missing ?? [], run.missing) && options.allowChanged !== true
            ? {}
            : { missing: run.missing }),
          ...(isSameJson(rules.allow, run.allow) ? {} : { allow: run.allow }),
          ...(run.secrets.every((name) => rules.secrets.has(name)) ? {} : { secrets: run.secrets }),
          ...(changes === undefined
            ? addedTools(comparison.recorded, run.facts)
            : { changed: { ...changes, ...source, ...run.facts, ...run.graph } }),
        },
      }),
    );
  };

  const fork = async <I, O>(
    { spec }: Pipeline<I, O>,
    of: string,
    runId: string,
    options: ForkRunOptions,
  ): Promise<RunTask> => {
    const host = hostNow();
    const journals = await journalsOf(host, of);
    const from = refuseVersionMismatch(spec, of, await readRunStarted(host, of));
    refuseLowerSandbox(of, from, preparation);
    const { boundary, past } = forkPointBefore(journals, options.from);
    const comparison = comparePipeline(spec, of, past, options, preparation.clean);
    const rules = recordedRules(from, journals, options);
    const run = await preparation.of(spec, runId, rules, past);
    const changed = comparison.withTools(run.deps);
    refuseUnpricedRecords(spec, of, recordedCosts(past, costInValue));
    const { source = PROGRAMMATIC, settings } = options;
    const facts = { source, ...run.facts };
    const input = run.deps.secrets.json(from.data.input ?? null);
    const started = { ...run.started(source, input, settings), ...originalPipeline(past, facts) };
    const forked =
      changed === undefined
        ? addedTools(comparison.recorded, facts)
        : { changed: { ...changed, ...facts, ...run.graph } };
    return await added(async () => {
      await host.copy({ ...forkRunCopy(of, boundary, { started, forked }), runId });
      const copied = await journalsOf(host, runId);
      const costs = recordedCosts(copied, costInValue);
      return await host.resume(runId, run.program(costs), { read: copied });
    });
  };

  const begin = (runId: string, start: () => Promise<RunTask>): LocalRun => ({
    host: hostNow,
    runId,
    clean: outgoing.text,
    started: runs.closing() ? Promise.reject(sessionClosed()) : start(),
  });
  const handle = <O>(run: LocalRun): RunHandle<O> => runHandle(run, runResult<O>(run, runs.tasks));
  const shutDown = async (): Promise<void> => {
    await runs.suspendAll();
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
        runs.tasks,
      );
    },
    resume: (pipeline, runId, options = {}) => handle(begin(runId, () => resume(pipeline, runId, options))),
    followUp: (pipeline, of, options = {}) => {
      const runId = followUpId(of);
      const start = async (): Promise<RunTask> => {
        const { input, follows } = await followUpOf(hostNow(), of);
        return await launch(pipeline, input, runId, options, follows);
      };
      return handle(begin(runId, start));
    },
    fork: (pipeline, of, options) => {
      const runId = newRunId();
      return handle(begin(runId, () => fork(pipeline, of, runId, options)));
    },
    answer: people.answer,
    message: (runId, text, { kind, by = "api" } = {}) =>
      sendMessage(hostNow(), runId, outgoing.text(text), outgoing.text(by), kind),
    tools: async ({ spec }, { resumes, ...options } = {}) => {
      if (resumes === undefined) return await preparation.tools(spec);
      const { rules, journals } = await resumable(spec, resumes, options);
      return await preparation.tools(spec, resumes, rules, journals);
    },
    masked: outgoing.json,
    attach: people.attach,
    close: () => (closed ??= shutDown()),
  };
}

/** Where a run starts, as JSON. */
function startAt({ state, input }: NonNullable<StartOptions["from"]>): StartAt {
  if (input === undefined) return { state };
  const own = toJsonValue(input);
  if (own.ok) return { state, input: own.value };
  throw new SluiceError("Validation", "input_invalid", `the input of state ${state} is not JSON: ${own.fault}`);
}

const MAX_RESUME_ATTEMPTS = 5;

const PROGRAMMATIC: PipelineSource = { kind: "programmatic" };

/** The active runs of a session. */
function activeRuns() {
  const tasks = new Map<string, RunTask>();
  const starting = new Set<Promise<unknown>>();
  let closing = false;

  return {
    /** By run id; `runResult` removes finished runs. */
    tasks,
    /** Adds the run that `begin` starts. Throws Session `session_closed`. */
    add: async (begin: () => Promise<RunTask>): Promise<RunTask> => {
      if (closing) throw sessionClosed();
      const start = begin();
      starting.add(start);
      try {
        const task = await start;
        tasks.set(task.runId, task);
        return task;
      } finally {
        starting.delete(start);
      }
    },
    closing: (): boolean => closing,
    /** Suspends all runs, including those that are starting, and accepts no more. */
    suspendAll: async (): Promise<void> => {
      closing = true;
      await Promise.allSettled([...starting]);
      await Promise.allSettled([...tasks.values()].map((task) => task.suspend("interrupted")));
    },
  };
}

function sessionClosed(): SluiceError {
  return new SluiceError("Session", "session_closed", "this session is closed; create another one");
}

/** The host that was passed in, which is not closed here, or the one that the first call of `host` opens. */
function sessionStore(given: SessionOptions["host"], clock: Clock): { host(): RunHost; close(): Promise<void> } {
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
