import type { Json, Pipeline, SluiceEvent, Tool, ToolCall, ToolResult } from "@sluice/core";
import { createHost, createMemoryJournals, type MemoryJournals } from "@sluice/core/host";
import { type GatewayRun, openGatewayRun } from "@sluice/gateway";
import { createSession, replayRun } from "@sluice/stages";
import { expect } from "vitest";
import { READ_FIRST } from "../../packages/gateway/src/run/words.ts";
import { handClock } from "./hand-clock.ts";
import { type Kill, killableHost } from "./long-runs.ts";
import { eventsOf, tool } from "./run-kit.ts";

// A run with an agent that works through a list of calls, in processes that are killed.

export interface AgentStep {
  readonly tool: string;
  readonly input: Json;
}
/** What the agent does after a restart about a call without an answer. */
export type Habit = "repeats it" | "leaves it out" | "reads the state first";

export interface AgentLife {
  readonly pipeline: Pipeline<{ readonly task: string }, unknown>;
  readonly root: string;
  /** What it does in each phase, in order. Calls made together are one list. */
  readonly steps: Readonly<Record<string, readonly (readonly AgentStep[])[]>>;
  readonly habit: Habit;
  /** Its own program runs Look and Change. */
  readonly isNative?: true;
}

export interface LivedRun {
  readonly status: string;
  readonly events: readonly SluiceEvent[];
  /** The calls of Change that took effect, in order. */
  readonly changes: readonly string[];
  /** What the agent read. */
  readonly read: readonly string[];
  readonly processes: number;
  /** Of the last process. */
  readonly records: number;
}

const MOST_CALLS = 200;

/** The tools of these runs: both say what they did, and Change counts. */
function workTools(changes: string[]): readonly Tool[] {
  return [
    tool("Look", {
      effect: "read",
      input: { type: "object", properties: { at: { type: "string" } } },
      execute: async (given) => ({ ok: true, output: `saw ${JSON.stringify(given)}` }),
    }),
    tool("Change", {
      input: { type: "object", properties: { id: { type: "string" } } },
      execute: async (given) => ({ ok: true, output: `made ${changed(changes, given)}` }),
    }),
  ];
}

function changed(changes: string[], given: unknown): string {
  const id = JSON.stringify(given);
  changes.push(id);
  return id;
}

/** Lives a run to its end. The n-th process is killed where the n-th kill says. A person approves whatever is asked. */
export async function liveWithAgent(life: AgentLife, kills: readonly Kill[] = []): Promise<LivedRun> {
  const { pipeline, root, steps, habit, isNative } = life;
  const clock = handClock();
  const memory = createMemoryJournals();
  const changes: string[] = [];
  const read: string[] = [];
  let runId: string | undefined;
  const work = workList(steps);
  let processes = 0;
  for (;;) {
    const process = killableHost({ memory, clock, kill: kills[processes] });
    processes += 1;
    const { host } = process;
    const native = (handOver: (call: ToolCall, input: Json) => Promise<ToolResult>): readonly Tool[] =>
      workTools([]).map((one) =>
        tool(one.name, { effect: one.effect, execute: (given, call) => handOver(call, jsonOf(given)) }),
      );
    const resumed = runId;
    const run: GatewayRun = openGatewayRun({
      pipeline,
      agent: { name: "test", version: "1.0", class: "hard" },
      wait: true,
      clock: process.clock,
      ...(isNative === true ? { native } : {}),
      ...(resumed === undefined ? {} : { resumes: resumed }),
      session: (added) =>
        createSession({
          cwd: root,
          host,
          clock: process.clock,
          wait: true,
          sandbox: "off",
          env: { PATH: "/usr/bin:/bin" },
          ...added,
          tools: added.tools ?? [...workTools(changes)],
        }),
      begin: (session) =>
        resumed === undefined
          ? session.start(pipeline, { task: "Do it." }, { answers: "any" })
          : session.resume(pipeline, resumed),
    });
    run.onPhase(({ status }) => {
      if (status === "waiting") void approve(memory);
    });
    const made = async (step: AgentStep): Promise<string | undefined> => {
      const isOwn = isNative === true && (step.tool === "Look" || step.tool === "Change");
      const pending = run.call({ ...step, ...(isOwn ? { native: true } : {}) });
      const died = process.died.then(() => undefined);
      if (isOwn) {
        const verdict = await Promise.race([pending.verdict, died]);
        // What its host was allowed to run, it runs, whether the gateway lives or not.
        if (verdict?.kind === "allow") {
          const output = step.tool === "Change" ? changed(changes, step.input) : "seen";
          pending.report({ ok: true, output });
        }
      }
      const reply = await Promise.race([pending.answer, died]);
      if (reply === undefined) return undefined;
      read.push(reply.text);
      if (read.length > MOST_CALLS) throw new Error(`the agent does not come to an end: ${read.slice(-4).join("\n")}`);
      return reply.text.startsWith(READ_FIRST) ? await made(step) : reply.text;
    };
    if (resumed === undefined || habit === "reads the state first") {
      const news = await made({ tool: "get_state", input: {} });
      if (news !== undefined && work.isNamedIn(news)) work.finish();
    }
    while (!process.isDead() && run.now().status !== "ended") {
      const { state } = run.now();
      if (state === undefined && !work.isBegun()) {
        await made({ tool: "get_state", input: {} });
        await new Promise((resolve) => setImmediate(resolve));
        continue;
      }
      const step = work.step(state);
      const answers = await Promise.all(step.map(made));
      if (answers.includes(undefined)) break;
      work.finish();
    }
    if (process.isDead()) {
      // Killed before its first record, it left no run.
      const [begun] = await createHost(memory.connect()).list();
      runId = begun?.runId;
      if (habit === "leaves it out") work.leaveOut();
      continue;
    }
    const { status } = await Promise.race([run.ended, process.died.then(() => ({ status: "killed" }))]);
    if (process.isDead()) continue;
    const events = await eventsOf(host, run.runId ?? "");
    const replayed = await replayRun(pipeline, await host.journal(run.runId ?? ""), {
      tools: [...(isNative === true ? native(async () => ({ ok: true, output: null })) : workTools([]))],
      env: {},
    });
    expect(replayed.divergence?.message).toBeUndefined();
    await run.close();
    return { status, events, changes, read, processes, records: process.records() };
  }
}

interface WorkList {
  isBegun(): boolean;
  /** Whether the news of a restart say what became of the step that is not finished. */
  isNamedIn(news: string): boolean;
  /** The step that is not finished, or the next one of this phase. */
  step(phase: string | undefined): readonly AgentStep[];
  finish(): void;
  /** Whatever became of it; an agent does not leave out how it leaves a phase. */
  leaveOut(): void;
}

function workList(steps: AgentLife["steps"]): WorkList {
  const done = new Map<string, number>();
  let at: string | undefined;
  const stepOf = (phase: string): readonly AgentStep[] => steps[phase]?.[done.get(phase) ?? 0] ?? [];
  const finish = (): void => {
    if (at === undefined) return;
    const count = (done.get(at) ?? 0) + 1;
    // A phase that is entered again starts again.
    done.set(at, count === steps[at]?.length ? 0 : count);
    at = undefined;
  };
  return {
    isBegun: () => at !== undefined,
    isNamedIn: (news) => at !== undefined && stepOf(at).some(({ input }) => news.includes(`${JSON.stringify(input)},`)),
    step: (phase = "") => {
      at ??= phase;
      const step = stepOf(at);
      if (step.length === 0) throw new Error(`the agent does not know what to do in ${JSON.stringify(at)}`);
      return step;
    },
    finish,
    leaveOut: () => {
      if (at !== undefined && !stepOf(at).some((one) => one.tool === "transition")) finish();
    },
  };
}

function jsonOf(given: unknown): Json {
  return JSON.parse(JSON.stringify(given ?? null));
}

/** A person at another process, who approves what is asked. */
async function approve(memory: MemoryJournals): Promise<void> {
  const host = createHost(memory.connect());
  for (const { runId, requestId, digest } of await host.requests()) {
    const payload = { kind: "approve", digest };
    await host.signal(runId, { name: `request/${requestId}`, payload, digest, by: "Ada" });
  }
}
