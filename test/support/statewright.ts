import type { Json, JsonObject, RowSpec, SluiceEvent } from "@sluice/core";
import { initialState, type MachineInput, type Transition } from "@sluice/core/machine";
import type { RunResult, ScriptedTurn } from "@sluice/stages";
import type { LoadedWorkflow } from "@sluice/workflows";
import { test } from "vitest";
import { walkOf } from "./machine-kit.ts";
import { eventsOf, session, type TestSession, type TestSessionOptions } from "./run-kit.ts";
import { type Heard, lastResults, type Talker, talker } from "./talker.ts";
import { type TestWorkspace, tempFolder } from "./tools.ts";
import { loadDocument } from "./workflows.ts";

// What a test of a Statewright fact is made of: a document, a walk of its machine, and a run with a model that plays a script.

/** A fact that Sluice keeps. */
export function fact(number: number, says: string, body: () => Promise<void> | void): void {
  test(`${number}: ${says}`, body);
}
/** A fact that Sluice decides otherwise: what it does instead. */
export function ours(number: number, says: string, body: () => Promise<void> | void): void {
  test(`${number}, decided otherwise: ${says}`, body);
}

const FINALS = { done: { type: "final" }, failed: { type: "final" } };
/** A document whose run begins in `a`, with the final states that it names. */
export function documentOf(states: object, more: object = {}): object {
  const named = JSON.stringify([states, more]);
  const finals = Object.entries(FINALS).filter(([name]) => named.includes(`"${name}"`));
  return { id: "w", initial: "a", states: { ...states, ...Object.fromEntries(finals) }, ...more };
}
/** A document around its only working state `a`. */
export function oneState(state: object, more: object = {}): object {
  return documentOf({ a: { allowed_tools: [], on: { DONE: "done", FAIL: "failed" }, ...state } }, more);
}

export function pipelineOf({ pipeline, diagnostics }: LoadedWorkflow): NonNullable<LoadedWorkflow["pipeline"]> {
  if (pipeline === undefined) throw new Error(JSON.stringify(diagnostics));
  return pipeline;
}
export function rowsOf(loaded: LoadedWorkflow): readonly RowSpec[] {
  const { routes } = pipelineOf(loaded).spec;
  if (routes.kind !== "table") throw new Error("it has no table");
  return routes.rows;
}
export interface MachineWalk {
  /** Sends an event of the state that was entered last. */
  send(event: string, data?: JsonObject): Promise<Transition>;
  give(input: MachineInput): Promise<Transition>;
  /** The state that was entered last. */
  at(): string | undefined;
  context(): JsonObject;
  /** How often it has moved. */
  moves(): number;
}

/** The machine of a document in its initial state; nothing runs its states. */
export async function machineOf(given: object): Promise<MachineWalk> {
  const { spec } = pipelineOf(await loadDocument(given));
  const walk = await walkOf(spec, initialState(spec, { input: { task: "Do it." } }));
  return {
    send: async (event, data = {}) => await walk.step({ kind: "event", event, data }),
    give: walk.step,
    at: () => walk.state.at?.state,
    context: () => walk.state.context,
    moves: () => walk.state.hops,
  };
}

/** The turn that sends an event. */
export function send(event: string, data?: Json): ScriptedTurn {
  return { calls: [{ tool: "transition", input: data === undefined ? { event } : { event, data } }] };
}
/** A turn of calls: `calls(["Read", {…}])`. */
export function calls(...made: readonly (readonly [tool: string, input: Json])[]): ScriptedTurn {
  return { calls: made.map(([tool, input]) => ({ tool, input })) };
}
export const bash = (...lines: readonly string[]): ScriptedTurn =>
  calls(...lines.map((command) => ["Bash", { command }] as const));
export const read = (file_path: string): ScriptedTurn => calls(["Read", { file_path }]);
export const write = (file_path: string, content: string): ScriptedTurn => calls(["Write", { file_path, content }]);

/** The turns of each state, in the order in which they come, also over several visits. */
export type Turns = Readonly<Record<string, readonly ScriptedTurn[]>>;
export function script(turns: Turns): Talker {
  const next = new Map<string, number>();
  return talker(({ stage }) => {
    const at = next.get(stage) ?? 0;
    next.set(stage, at + 1);
    return turns[stage]?.[at] ?? {};
  });
}

export interface Played {
  readonly result: RunResult<unknown>;
  readonly events: readonly SluiceEvent[];
  readonly heard: readonly Heard[];
  /** The results of each turn that had calls and was followed by another one of its execution, in order. */
  readonly results: readonly (readonly unknown[])[];
  readonly walked: readonly string[];
  readonly folder: TestWorkspace;
  readonly live: TestSession;
}
export interface PlayOptions extends TestSessionOptions {
  readonly files?: Readonly<Record<string, string>>;
  /** Prepares the folder further. */
  readonly prepare?: (folder: TestWorkspace) => void;
}

/** Runs a document, or what was loaded from one, with a script in a folder of these files. */
export async function play(given: object | LoadedWorkflow, turns: Turns, options: PlayOptions = {}): Promise<Played> {
  const { files = {}, prepare, ...rest } = options;
  const loaded = isLoaded(given) ? given : await loadDocument(given);
  const folder = tempFolder();
  for (const [name, content] of Object.entries(files)) folder.put(name, content);
  prepare?.(folder);
  const model = script(turns);
  const live = session({ model, cwd: folder.root, env: { PATH: process.env.PATH }, ...rest });
  const result = await live.run(pipelineOf(loaded), { task: "Do it." });
  return {
    result,
    events: await eventsOf(live.host, result.runId),
    heard: model.heard,
    results: resultsOf(model.heard),
    walked: result.stages.map(({ executionId }) => executionId),
    folder,
    live,
  };
}

/** The results of each turn that had calls. A turn without calls, and a notice, leave the results before them where they were. */
function resultsOf(heard: readonly Heard[]): readonly (readonly unknown[])[] {
  const last = new Map<string, number>();
  return heard.flatMap((now) => {
    const { stage, turn, messages } = now;
    const at = messages.findLastIndex(({ role }) => role === "tool");
    const isNew = turn > 0 && at > (last.get(stage) ?? -1);
    last.set(stage, turn === 0 ? -1 : at);
    return isNew ? [lastResults({ ...now, messages: messages.slice(0, at + 1) })] : [];
  });
}

function isLoaded(given: object): given is LoadedWorkflow {
  return "diagnostics" in given;
}

/** The system message of the nth model call, as text. */
export function systemOf(heard: Heard | undefined): string {
  return String(heard?.messages[0]?.content);
}
