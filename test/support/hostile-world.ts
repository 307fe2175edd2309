import { getEventListeners } from "node:events";
import {
  done,
  fanOut,
  type Interactor,
  type Json,
  pipeline,
  type RunLimits,
  stage,
  type ToolCall,
  type ToolResult,
} from "@sluice/core";
import { digestOf } from "@sluice/core/runtime";
import type { RunHandle, TurnPosition } from "@sluice/stages";
import { z } from "zod";
import { type HostileModel, hostileModel } from "./hostile-model.ts";
import { COMPLETION, type PersonMood, type RandomStory, TOOLS, type ToolMood } from "./random-streams.ts";
import { session, type TestSession, tool, work } from "./run-kit.ts";

/** One real execution of a tool. */
export interface Ran {
  readonly tool: string;
  readonly runId: string;
  readonly executionId: string;
  readonly attempt: number;
  readonly callId: string;
  readonly argsDigest: string;
}
/** What one story came to. */
export interface PlayedStory {
  readonly runId: string;
  readonly status: string;
  readonly model: HostileModel;
  readonly ran: readonly Ran[];
  /** Requests that a person approved: run and request. */
  readonly approved: ReadonlySet<string>;
  /** What still listens to a signal. */
  readonly listeners: number;
}
export interface HostileWorld {
  readonly live: TestSession;
  play(story: RandomStory): Promise<PlayedStory>;
}

interface Scene {
  readonly story: RandomStory;
  readonly model: HostileModel;
  readonly ran: Ran[];
  readonly approved: Set<string>;
  readonly signals: Set<AbortSignal>;
  readonly release: (() => void)[];
  tools: number;
  people: number;
  hanging: number;
  /** Called whenever something happens: the story may end here. */
  happened(): void;
}

/** Real time, since a story loads code from the disk; only what hangs takes so long. */
const LONGEST_STORY_MS = 120_000;

/** One session in which one story after another is played. */
export function hostileWorld(maxParallel: number): HostileWorld {
  let scene: Scene | undefined;
  const now = (): Scene => {
    if (scene === undefined) throw new Error("no story is being played");
    return scene;
  };
  const execute = (name: string) => async (input: Json, call: ToolCall) => {
    const here = now();
    const { runId, executionId, attempt, proposalId: callId } = call;
    here.ran.push({ tool: name, runId, executionId, attempt, callId, argsDigest: digestOf(input) });
    here.signals.add(call.signal);
    here.happened();
    const mood = here.story.tools[here.tools] ?? "fine";
    here.tools += 1;
    return await toolIn(mood, here, call.signal);
  };
  const person = (name: string): Interactor => ({
    name,
    answer: async (request, signal) => {
      const here = now();
      here.signals.add(signal);
      here.happened();
      const mood = here.story.people[here.people] ?? "deny";
      here.people += 1;
      const answer = await personIn(mood, signal);
      if (Object(answer).kind === "approve" && !signal.aborted)
        here.approved.add(`${request.runId} ${request.requestId}`);
      return answer;
    },
  });
  const live = session({
    model: { id: "hostile", secrets: [], at: (position: TurnPosition) => now().model.at(position) },
    tools: [
      tool(TOOLS.read, { effect: "read", execute: execute(TOOLS.read) }),
      tool(TOOLS.write, { execute: execute(TOOLS.write) }),
      tool(TOOLS.outside, { execute: execute(TOOLS.outside) }),
      tool(TOOLS.ask, {
        effect: "ask",
        question: () => ({ question: "Which?", answer: { type: "string" } }),
      }),
    ],
    interactors: [person("first"), person("second")],
    requestTimeoutMs: 5_000,
    maxParallel,
  });
  return {
    live,
    play: async (story) => {
      const handles: RunHandle<unknown>[] = [];
      let happenings = 0;
      const happened = (): void => {
        happenings += 1;
        idle = 0;
        if (happenings === story.cancelAt) handles[0]?.cancel("the story ends here").catch(() => undefined); // the result tells
      };
      let idle = 0;
      const own: Scene = {
        story,
        model: hostileModel(story.streams, happened),
        ran: [],
        approved: new Set(),
        signals: new Set(),
        release: [],
        tools: 0,
        people: 0,
        hanging: 0,
        happened,
      };
      scene = own;
      const listening = watchListeners();
      let over = false;
      let cancelled = false;
      const handle = live.start(pipelineOf(story), { task: "Go." });
      handles.push(handle);
      if (story.listened) handle.onLive(() => undefined);
      const result = Promise.resolve(handle).finally(() => {
        over = true;
      });
      result.catch(() => undefined); // awaited below
      const deadline = performance.now() + LONGEST_STORY_MS;
      while (!over) {
        await new Promise(setImmediate);
        idle += 1;
        if (idle < 8) continue;
        idle = 0;
        if (performance.now() > deadline) throw new Error("this story does not end");
        // Until the cancel, each model call that hangs keeps its silence timer, which is far away.
        if (live.clock.waiting() > (cancelled ? 0 : own.model.hung)) live.clock.turn(story.stepMs);
        else if (own.hanging > 0 || own.model.hung > 0) {
          cancelled = true;
          handle.cancel("it hangs").catch(() => undefined);
        }
      }
      const { runId, status } = await result;
      for (const go of own.release) go();
      own.model.release();
      for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
      for (const signal of [...own.signals, ...own.model.signals]) listening.signals.add(signal);
      listening.stop();
      const listeners = [...listening.signals].reduce(
        (sum, signal) => sum + getEventListeners(signal, "abort").length,
        0,
      );
      return { runId, status, model: own.model, ran: own.ran, approved: own.approved, listeners };
    },
  };
}

async function toolIn(mood: ToolMood, scene: Scene, signal: AbortSignal): Promise<ToolResult> {
  const ticks = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
  };
  switch (mood) {
    case "fine":
      return { ok: true, output: { done: true } };
    case "refuses":
      return { ok: false, output: { code: "nothing_there" } };
    case "throws":
      throw scene.tools % 2 === 0 ? new Error("a tool's bug") : Object.create(null);
    case "garbage": {
      const cycle: { self?: object } = {};
      cycle.self = cycle;
      const given = [undefined, null, "ok", {}, { ok: true, output: 1n }, { ok: "yes", output: cycle }][
        scene.tools % 6
      ];
      const held: { result: ToolResult } = { result: { ok: true, output: null } };
      return Object.assign(held, { result: given }).result;
    }
    case "slow":
      await ticks();
      return { ok: true, output: "at last\ud83d" };
    case "hangs":
      scene.hanging += 1;
      return await new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(new Error("stopped")), { once: true });
      });
    case "unstoppable":
      scene.hanging += 1;
      return await new Promise((resolve, reject) => {
        const late = (): void =>
          scene.tools % 2 === 0 ? reject(new Error("late")) : resolve({ ok: true, output: "late" });
        scene.release.push(late);
      });
  }
}

async function personIn(mood: PersonMood, signal: AbortSignal) {
  switch (mood) {
    case "approve":
    case "deny":
    case "defer":
      return { kind: mood };
    case "value":
      return { kind: mood, value: "left" };
    case "silent":
      return undefined;
    case "throws":
      throw new Error("an interactor's bug");
    case "garbage":
      return Object.assign({ kind: "deny" as const }, { kind: "of course" });
    case "slow":
      for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
      return { kind: "approve" as const };
    case "hangs":
      return await new Promise<undefined>((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(new Error("dismissed")), { once: true });
      });
  }
}

/** Every signal that anybody listens to from now on. */
function watchListeners(): { readonly signals: Set<AbortSignal>; stop(): void } {
  const signals = new Set<AbortSignal>();
  const { prototype } = EventTarget;
  const { addEventListener } = prototype;
  prototype.addEventListener = function (this: EventTarget, ...args) {
    if (this instanceof AbortSignal) signals.add(this);
    addEventListener.apply(this, args);
  };
  return {
    signals,
    stop: () => {
      prototype.addEventListener = addEventListener;
    },
  };
}

const made = new Map<string, ReturnType<typeof build>>();
export function pipelineOf({ shape, turnCap }: RandomStory) {
  const key = `${shape} ${turnCap}`;
  const known = made.get(key) ?? build(shape, turnCap);
  made.set(key, known);
  return known;
}

const completionSchema = z.object({ summary: z.string() });
const input = z.object({ task: z.string() });
function build(shape: RandomStory["shape"], turnCap: number) {
  const worker = (limits: RunLimits = {}) =>
    stage({
      prompt: "Work.",
      allowedTools: [TOOLS.read, TOOLS.write, TOOLS.ask],
      visibility: "session",
      completionTool: COMPLETION,
      completionSchema,
      turnCap,
      limits,
      retryPolicy: { maxAttempts: 2 },
      assert: (_result, { attempt }) => (shape === "again" && attempt === 1 ? { retry: "once more" } : "ok"),
    });
  if (shape !== "fork") {
    const limits = shape === "again" ? { timeoutMs: 30_000 } : {};
    return pipeline({
      id: shape,
      input,
      stages: { one: worker(limits) },
      initial: "one",
      next: { one: ({ output }) => done(output) },
    });
  }
  return pipeline({
    id: shape,
    input,
    stages: { start: work(), a: worker(), b: worker({ maxTokens: 1_000_000 }), join: work() },
    initial: "start",
    next: { start: () => fanOut(["a", "b"], { join: "join" }), join: ({ output }) => done(output) },
  });
}
