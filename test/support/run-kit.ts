import {
  type ActOutcome,
  type ActScope,
  type AvailableTools,
  type CompiledSchema,
  defineTool,
  type Json,
  type JsonObject,
  type RunHost,
  type Schema,
  type SluiceEvent,
  type StageContext,
  type State,
  type StateExecutor,
  type StateSpec,
  type Tool,
  type ToolSpec,
} from "@sluice/core";
import { createHost, createMemoryJournals, verifyJournal } from "@sluice/core/host";
import { compileSchema } from "@sluice/core/runtime";
import { eventData } from "@sluice/core/schemas";
import { createSession, type ResolvedModel, type Session, type SessionOptions } from "@sluice/stages";
import { expect, onTestFinished } from "vitest";
import { type HandClock, handClock } from "./hand-clock.ts";

/** What a state of kind `work` does; the smallest executor there is. */
export interface WorkOptions<I = unknown>
  extends Pick<
    StateSpec,
    "allowedTools" | "retryPolicy" | "limits" | "onCall" | "setup" | "precondition" | "assert" | "exit"
  > {
  readonly inputSchema?: Schema<I>;
  readonly init?: (ctx: StageContext, offer: AvailableTools) => Json;
  readonly act?: (scope: ActScope, init: Json) => ActOutcome | Promise<ActOutcome>;
}
interface Work {
  readonly init: WorkOptions<unknown>["init"];
  readonly act: WorkOptions<unknown>["act"];
}

/** A state whose work is a function. Completes with null when it is given none. */
export function work<O extends Json = Json>(options?: Omit<WorkOptions, "inputSchema">): State<O, unknown>;
export function work<O extends Json, I>(options: WorkOptions<I>): State<O, I>;
export function work(options: WorkOptions = {}): State {
  const { inputSchema, init, act, ...common } = options;
  const schema: { inputSchema?: CompiledSchema<unknown> } =
    inputSchema === undefined ? {} : { inputSchema: compileSchema(inputSchema, "the input") };
  const own: Work = { init, act };
  return { kind: "work", spec: { kind: "work", ...common, ...schema, options: own } };
}

/** A state of kind `work` that completes by events. */
export function byEvents(
  act: NonNullable<WorkOptions["act"]>,
  options: Omit<WorkOptions, "inputSchema" | "act"> = {},
): State<Json, unknown> {
  const { kind, spec } = work<Json>({ ...options, act });
  return { kind, spec: { ...spec, completesByEvents: true } };
}

function workOf(state: StateSpec): Work {
  const { options } = state;
  if (typeof options !== "object" || options === null || !("act" in options)) throw new Error("not a work state");
  return Object.assign<Work, object>({ init: undefined, act: undefined }, options);
}

export const workExecutor: StateExecutor = {
  kind: "work",
  init: (state, ctx, offer) => workOf(state).init?.(ctx, offer) ?? null,
  act: async (init, scope) => (await workOf(scope.state).act?.(scope, init)) ?? completed(null),
};

/** A value that came through `unknown`, as JSON. */
export function json(value: unknown): Json {
  return JSON.parse(JSON.stringify(value ?? null));
}

const spent = { turns: 0, usage: { inputTokens: 0, outputTokens: 0 } };
export function completed(output: Json): ActOutcome {
  return { ...spent, status: "completed", output };
}
export function failed(message: string): ActOutcome {
  return { ...spent, status: "failed", code: "tool", message };
}
export function cancelled(reason: string): ActOutcome {
  return { ...spent, status: "cancelled", reason };
}

/** A tool that takes any object and touches nothing. */
export function tool(name: string, spec: Partial<ToolSpec> = {}): Tool {
  return defineTool<Json>({
    name,
    description: `${name}.`,
    input: { type: "object" },
    effect: "write",
    subjects: () => [],
    execute: async () => ({ ok: true, output: `${name} ran` }),
    ...spec,
  });
}

/** Calls a tool through the gate, as the next turn of its attempt. */
export function caller(scope: ActScope): (name: string, input?: Json) => Promise<Json> {
  let turn = 0;
  return async (name, input = {}) => {
    turn += 1;
    const [outcome] = await scope.calls(turn, [{ id: `t${turn}.c0`, tool: name, input }]);
    return outcome?.output ?? null;
  };
}

export interface TestSession extends Session {
  readonly clock: HandClock;
}
export type TestSessionOptions = Omit<Partial<SessionOptions>, "clock"> & { readonly clock?: HandClock };
/** A session that sees nothing of this process: no environment, time that stands still, journals in memory. */
export function session(options: TestSessionOptions = {}): TestSession {
  const clock = options.clock ?? handClock();
  const made = createSession({
    env: {},
    cwd: import.meta.dirname,
    // A wall is proven in real time, which these sessions' clocks know nothing of.
    sandbox: "off",
    ...options,
    clock,
    executors: [workExecutor, ...(options.executors ?? [])],
  });
  onTestFinished(() => made.close());
  return Object.defineProperties({ ...made, clock }, { host: { get: () => made.host } });
}

/** Two hosts on one memory, as two processes on one store. */
export function twoHosts(): { readonly clock: HandClock; readonly first: RunHost; readonly second: RunHost } {
  const clock = handClock();
  const memory = createMemoryJournals();
  const host = (): RunHost => createHost(memory.connect(), { clock });
  return { clock, first: host(), second: host() };
}

/** A model nobody may ask. */
export const noModel: ResolvedModel = {
  id: "none",
  secrets: [],
  at: () => {
    throw new Error("no model is asked here");
  },
};

/** All events of a run and its children, each checked against its schema; the chains are checked too. */
export async function eventsOf(host: RunHost, runId: string): Promise<readonly SluiceEvent[]> {
  const events: SluiceEvent[] = [];
  for await (const event of host.events(runId, { children: true })) {
    const parsed = eventData[event.type].safeParse(event.data);
    if (!parsed.success) throw new Error(`${event.type}: ${parsed.error.message}\n${JSON.stringify(event.data)}`);
    events.push(event);
  }
  expect(verifyJournal(await host.journal(runId)).faults).toEqual([]);
  return events;
}

/** The data of the events of one type. */
export function dataOf(events: readonly SluiceEvent[], type: SluiceEvent["type"]): readonly JsonObject[] {
  return events.filter((event) => event.type === type).map((event) => event.data);
}

/** `stage.setup entered`: the walk through the phases, in order. */
export function phasesOf(events: readonly SluiceEvent[]): readonly string[] {
  return events
    .filter(({ type }) => type.startsWith("stage.") || type.startsWith("attempt."))
    .map(({ type, data }) => (data.phase === undefined ? type : `${type} ${String(data.phase)}`));
}

/** Shorter than the time limit of a test, so that the error says what did not happen. */
const EVENTUALLY_MS = 120_000;
/** How many turns of the event loop are waited for without a pause. */
const SPUN_TURNS = 500;

/** Lets everything go on that waits for nothing but its turn, until `holds` does. */
export async function eventually(holds: () => boolean | Promise<boolean>, what = "what was waited for"): Promise<void> {
  // A number of turns would not do: files and sockets take as long as the machine is busy.
  const end = performance.now() + EVENTUALLY_MS;
  for (let turn = 0; performance.now() < end; turn += 1) {
    if (await holds()) return;
    // What has not come by then comes from a disk or a process, which need the processor more than this loop.
    await new Promise((resolve) => (turn < SPUN_TURNS ? setImmediate(resolve) : setTimeout(resolve, 2)));
  }
  throw new Error(`${what} did not happen`);
}

/** Lets everything go on that can: for proving that something does not happen. */
export async function quiet(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
