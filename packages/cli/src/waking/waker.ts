import { type Clock, isSluiceError, type OpenRequest, type RunHost, type RunTask } from "@sluice/core";
import { deadResumes } from "@sluice/core/host";
import { messageOf } from "@sluice/core/runtime";
import type { RunResult } from "@sluice/stages";
import { answerRouteOf } from "@sluice/tui/user";
import { eventsOf, readRunStarted, textAt } from "@sluice/view/words";
import type { CommandContext } from "../command-context.ts";
import { resumeWords } from "../output/run-report.ts";
import { commandLine, type ProjectPaths, workspaceOf } from "../project/project-paths.ts";
import { answerLine } from "../runs/answer-line.ts";
import { openSession } from "../runs/open-session.ts";
import { prepareResume } from "../runs/resume-plan.ts";
import type { RunPlan } from "../runs/run-plan.ts";
import { createProjectCache, type KnownProject } from "./project-cache.ts";
import { createSessionPool } from "./session-pool.ts";

/** What a wake came to. */
export type Woken =
  | { readonly kind: "ended"; readonly status: "completed" | "failed" | "cancelled"; readonly message?: string }
  | { readonly kind: "asleep"; readonly wakeAt: number }
  /** It waits for people; each line answers one request. */
  | { readonly kind: "waiting"; readonly lines: readonly string[]; readonly wakeAt?: number }
  /** A provider failed; it is due at the time, if there is one. */
  | { readonly kind: "provider"; readonly message: string; readonly line: string; readonly wakeAt?: number }
  /** It was stopped here, and is due again. */
  | { readonly kind: "interrupted" }
  /** Another process has it, or it ended meanwhile. */
  | { readonly kind: "elsewhere" }
  /** It was not resumed, for example because its pipeline is not trusted. */
  | { readonly kind: "refused"; readonly code: string; readonly message: string }
  /** It was resumed, and its journal or its code failed. */
  | { readonly kind: "failed"; readonly code: string; readonly message: string }
  /** It was resumed so often without any progress that it is left alone. */
  | { readonly kind: "stuck"; readonly resumes: number; readonly line: string };

export interface WakerOptions {
  readonly host: RunHost;
  /** Where the store is. */
  readonly at: ProjectPaths;
  readonly clock: Clock;
  /** Called once a run was resumed here. `lateMs` is how long after its time; undefined if it slept until no time. */
  readonly onResumed: (runId: string, lateMs: number | undefined) => void;
  /** Lines for the user. */
  readonly say: (text: string) => void;
}

/** Resumes runs that have to continue, and follows each until it rests or ends. */
export interface Waker {
  /** Never rejects. */
  wake(runId: string): Promise<Woken>;
  /** Suspends the runs, which are due at once, after the grace period of their steps. Runs that are woken later are suspended, too. */
  drain(): Promise<void>;
  /** Closes its sessions; the host stays open. */
  close(): Promise<void>;
}

/** Sleeps up to this are waited for: to resume a run costs more. */
const SHORT_SLEEP_MS = 1_000;
/** Resumes in a row without any progress after which a run is left alone. */
const MOST_DEAD_RESUMES = 5;

export function createWaker({ host, at, clock, onResumed, say }: WakerOptions, outer: CommandContext): Waker {
  const err = (text: string): void => say(text.replace(/^sluice: /, "").trimEnd());
  const context = { ...outer, terminal: { ...outer.terminal, err } };
  const projectAt = createProjectCache(at.store, context);
  const pool = createSessionPool(clock, (thrown) => say(`a session could not be closed: ${messageOf(thrown)}`));
  const tasks = new Map<string, RunTask>();
  const line = (words: readonly string[]): string => commandLine(words, at, context.here, context.env);
  let draining = false;

  const suspend = (task: RunTask, reason: "sleeping" | "waiting" | "interrupted"): void => {
    // The run's result rejects too.
    task.suspend(reason, { due: true }).catch(() => undefined);
  };
  /** Suspends a run that does not work: an answer, or its time, makes it due again. */
  const leave = async (task: RunTask, wakeAt: number | undefined, waiting: number): Promise<void> => {
    if (wakeAt !== undefined && wakeAt - clock.now() <= SHORT_SLEEP_MS) return;
    if (waiting === 0) suspend(task, "sleeping");
    // An answer that arrived before the run was resumed is about to be read.
    else if ((await host.requests(task.runId)).length > 0) suspend(task, "waiting");
  };
  const taken = (task: RunTask, dueAt: number | undefined): void => {
    tasks.set(task.runId, task);
    task.onAsleep(({ wakeAt, waiting }) => {
      leave(task, wakeAt, waiting).catch((thrown: unknown) => say(messageOf(thrown)));
    });
    if (draining) suspend(task, "interrupted");
    onResumed(task.runId, dueAt === undefined ? undefined : Math.max(0, clock.now() - dueAt));
  };
  const dueTimes = new Map<string, number | undefined>();
  /** The store as the sessions see it: what they resume is followed here. */
  const watched: RunHost = {
    ...host,
    resume: async (runId, program, options) => {
      const task = await host.resume(runId, program, options);
      taken(task, dueTimes.get(runId));
      return task;
    },
    // The sessions share it.
    close: async () => undefined,
  };

  const planOf = async (runId: string): Promise<{ plan: RunPlan; place: ProjectPaths; project: KnownProject }> => {
    const data = await readRunStarted(host, runId);
    const project = projectAt(workspaceOf({ cwd: textAt(data, "cwd") }, context.here));
    const { projects, remember } = project;
    const snapshot = { data, past: [], open: [] };
    const { place, plan } = prepareResume({ runId, flags: {}, snapshot, at, projects, remember }, context);
    return { plan: await plan(), place, project };
  };
  const resume = async (runId: string): Promise<Woken> => {
    const { plan, place, project } = await planOf(runId);
    const onFault = ({ by, message }: { readonly by: string; readonly message: string }): void =>
      say(`${by}: ${message}`);
    const people = { interactors: [], wait: true, onFault };
    const { session, settle } = pool.take(keyOf(plan, place, project), () => {
      const opened = openSession({ plan, place, flags: {}, store: watched, people }, context);
      return opened.session;
    });
    try {
      return await comeTo(await plan.begin(session));
    } finally {
      await settle();
    }
  };
  const comeTo = async (result: RunResult<unknown>): Promise<Woken> => {
    if (result.status !== "suspended") {
      const { status } = result;
      return status === "completed"
        ? { kind: "ended", status }
        : { kind: "ended", status, message: result.error.message };
    }
    const { runId, reason, waitingFor, wakeAt } = result;
    if (reason === "provider") {
      const { message = "a provider failed" } = result.suspended;
      const wake = wakeAt === undefined ? {} : { wakeAt };
      return { kind: "provider", message, line: line(resumeWords({ runId, isOpen: waitingFor.length > 0 })), ...wake };
    }
    if (reason === "sleeping" && wakeAt !== undefined) return { kind: "asleep", wakeAt };
    if (reason !== "waiting") return { kind: "interrupted" };
    return { kind: "waiting", lines: await linesFor(runId, waitingFor), ...(wakeAt === undefined ? {} : { wakeAt }) };
  };
  const linesFor = async (runId: string, requests: readonly OpenRequest[]): Promise<readonly string[]> => {
    const route = await answerRouteOf(host, runId, await eventsOf(host, runId));
    return requests.map((request) => answerLine(request, route, line));
  };

  return {
    wake: async (runId) => {
      try {
        const run = await host.get(runId);
        if (run === undefined || run.end !== undefined || run.owner !== undefined) return { kind: "elsewhere" };
        const resumes = await deadResumes(host, run);
        if (resumes >= MOST_DEAD_RESUMES) {
          const isOpen = (await host.requests(runId)).length > 0;
          return { kind: "stuck", resumes, line: line(resumeWords({ runId, isOpen })) };
        }
        dueTimes.set(runId, run.wakeAt !== undefined && run.wakeAt <= clock.now() ? run.wakeAt : undefined);
        return await resume(runId);
      } catch (thrown) {
        if (ELSEWHERE.some((code) => isSluiceError(thrown, code))) return { kind: "elsewhere" };
        const code = isSluiceError(thrown) ? thrown.code : "unexpected";
        return { kind: tasks.has(runId) ? "failed" : "refused", code, message: messageOf(thrown) };
      } finally {
        tasks.delete(runId);
        dueTimes.delete(runId);
      }
    },
    drain: async () => {
      draining = true;
      await Promise.allSettled([...tasks.values()].map((task) => task.suspend("interrupted", { due: true })));
    },
    close: () => pool.close(),
  };
}

/** Another process was faster. */
const ELSEWHERE = ["run_owned", "run_finished", "run_continued_elsewhere"] as const;

/** Runs with the same key share a session. Scripts and cassettes are used up, so such a run has a session of its own. */
function keyOf(plan: RunPlan, place: ProjectPaths, { version }: KnownProject): string | undefined {
  const { model, mode, allow, sandbox, code, kept } = plan;
  if (version === undefined || /^(?:scripted|cassette):/.test(model?.id ?? "")) return undefined;
  return JSON.stringify([place.cwd, version, model?.id, mode, allow, sandbox, code, kept]);
}
