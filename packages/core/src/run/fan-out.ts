import { SluiceError } from "../base/errors.ts";
import { field, isJsonObject, type Json, type JsonObject, numberField, textField } from "../base/json.ts";
import type { PipelineSpec } from "../definition/spec.ts";
import type { ChildRun, SiblingEnd, StepRunner } from "../journal/seam.ts";
import { parseSiblingId } from "../journal/step-id.ts";
import { childState, countOf, type MachineState, type MachineView, type RunFacts } from "../machine/machine-state.ts";
import { Outputs } from "../machine/outputs.ts";
import type { Child, ChildEnd, Effect } from "../machine/transition.ts";
import { type ExecutionEnd, isDenied } from "./execution.ts";
import { type ConcurrencySlots, createConcurrencySlots, slotsWithin } from "./limits/concurrency-slot.ts";
import { isStageResult } from "./stage/recorded-phases.ts";

/** The input of a child's run. Everything else it reads from its parent, which always runs in the same process. */
type ChildInput = Extract<Child, { readonly kind: "sibling" }> & {
  /** The visit of its state, counted over the whole run. */
  readonly visit: number;
  /** Turns of its state before this visit, over the whole run. */
  readonly turns: number;
};
/** What children read of the fan-outs that run in this process, by `<run>/<fan-out>`. */
export type RunningFanOuts = Map<string, RunningFanOut>;
export interface RunningFanOut {
  readonly view: Pick<MachineView, "run" | "context" | "outputs">;
  /** Of a list with a limit of its own. */
  readonly slots: ConcurrencySlots | undefined;
}

export interface EndedFanOut {
  /** In declared order. */
  readonly ended: readonly ChildEnd[];
  /** Of the children that were started. */
  readonly executions: readonly ExecutionEnd[];
}

/** Runs the children of a fan-out to their ends. */
export async function runFanOut(
  spec: PipelineSpec,
  slots: ConcurrencySlots,
  running: RunningFanOuts,
  steps: StepRunner,
  view: MachineView,
  { fanOut, children }: Extract<Effect, { readonly kind: "fanOut" }>,
): Promise<EndedFanOut> {
  const { id, choice } = fanOut;
  const { join, list, maxParallel, onFailure } = choice;
  if (onFailure === "any") throw unsupported("a fork that ends with its first branch");
  const keys = children.map(({ key }) => key);
  const ofList = list === undefined ? {} : { list };
  const started = { fanOut: id, siblings: keys, join, ...ofList };
  const runs = children.map((child): ChildRun => {
    if (child.kind !== "sibling") throw unsupported(`a child of kind ${child.kind}`);
    const { key, state } = child;
    const { visits: visit, turns } = countOf(view, state);
    const input: ChildInput = { ...child, visit, turns };
    const data = { pipeline: spec.id, state, parent: steps.runId, ...(list === undefined ? {} : { key }) };
    const inputAs = (recorded: Json): Json => (isEarlierInput(recorded) ? earlierInput(input, view) : input);
    return { key, input, inputAs, events: [{ type: "run.started", data }] };
  });
  const at = `${steps.runId}/${id}`;
  const { run, context, outputs } = view;
  const own = maxParallel === undefined ? undefined : slotsWithin(slots, createConcurrencySlots(maxParallel));
  running.set(at, { view: { run, context, outputs }, slots: own });
  try {
    const settled = await steps.runChildren(id, runs, {
      onFailure,
      failed: (end) => end.status === "failed",
      open: { events: [{ type: "fanOut.started", data: started }] },
      joined: (ends) => [{ type: "fanOut.joined", data: { fanOut: id, ...ofList, outcomes: outcomesOf(keys, ends) } }],
    });
    return endedOf(children, list !== undefined, settled);
  } finally {
    running.delete(at);
  }
}

function unsupported(what: string): SluiceError {
  return new SluiceError("Host", "machine_input", `this session cannot run ${what}`);
}

function endedOf(
  children: readonly Child[],
  isList: boolean,
  settled: Readonly<Record<string, SiblingEnd>>,
): EndedFanOut {
  const ended: ChildEnd[] = [];
  const executions: ExecutionEnd[] = [];
  for (const { key } of children) {
    const end = ownEnd(settled, key);
    if (end === undefined) continue;
    const execution = readExecution(end);
    ended.push(childEnd(key, end, execution));
    if (execution === undefined) continue;
    const { result } = execution;
    executions.push(isList ? { ...execution, result: { ...result, key } } : execution);
  }
  return { ended, executions };
}

/** A key may be called as a member of every object is. */
function ownEnd(ends: Readonly<Record<string, SiblingEnd>>, key: string): SiblingEnd | undefined {
  return Object.hasOwn(ends, key) ? ends[key] : undefined;
}

function readExecution(end: SiblingEnd): ExecutionEnd | undefined {
  const [result, denied] = [field(end.value, "result"), field(end.value, "denied")];
  if (!isStageResult(result) || !Array.isArray(denied) || !denied.every(isDenied)) return undefined;
  return { result, denied, next: undefined };
}

function childEnd(key: string, end: SiblingEnd, execution: ExecutionEnd | undefined): ChildEnd {
  const result = execution?.result;
  const base = { key, turns: result?.turns ?? 0 };
  if (result?.status === "completed") return { ...base, status: "completed", output: result.output };
  if (result?.status === "skipped") return { ...base, status: "skipped" };
  if (result?.status === "failed") {
    const { code, message } = result;
    return { ...base, status: "failed", code, message };
  }
  const reason = result?.status === "cancelled" ? result.reason : textField(end.value, "reason");
  return { ...base, status: "cancelled", code: "cancelled", message: reason ?? "cancelled" };
}

/**
 * Data of the join event. Keys are values, since redaction looks at keys and a state may be called `cookie`. The heads bind an
 * export, which leaves values out, to the children's journals.
 */
function outcomesOf(keys: readonly string[], ends: Readonly<Record<string, SiblingEnd>>): JsonObject[] {
  return keys.flatMap((name) => {
    const end = ownEnd(ends, name);
    return end === undefined ? [] : [{ name, status: end.status, head: end.head }];
  });
}

/** A child's run before its execution, read from its input and its running parent. Undefined for an input of no child. */
export function childRun(
  running: RunningFanOuts | undefined,
  { runId, workspace, input }: { readonly runId: string; readonly workspace: string; readonly input: Json },
): { readonly state: MachineState; readonly slots: ConcurrencySlots | undefined } | undefined {
  const id = textField(input, field(input, "kind") === "sibling" ? "state" : "sibling");
  const parent = parseSiblingId(runId);
  if (id === undefined || parent === undefined) return undefined;
  const fanOut = running?.get(`${parent.parentId}/${parent.fanOut}`);
  const view = isEarlierInput(input) ? earlierView({ id: runId, workspace }, input) : fanOut?.view;
  if (view === undefined) {
    const message = `run ${runId} reads from its parent, which does not run in this process`;
    throw new SluiceError("Host", "journal_mismatch", message);
  }
  const entered = { state: id, input: field(input, "input") ?? null, visit: numberField(input, "visit") ?? 1 };
  const state = childState(view, { id: runId, entered, turns: numberField(input, "turns") ?? 0 });
  return { state, slots: fanOut?.slots };
}

// Until Sluice 0.1, a child's input repeated what it reads of its parent. Journals of that time are resumed and replayed.

function isEarlierInput(input: Json): boolean {
  return textField(input, "sibling") !== undefined;
}

function earlierInput({ state, input, visit, turns }: ChildInput, { run, context, outputs }: MachineView): Json {
  return { sibling: state, input, run: run.input, context, upstream: outputs.object, visit, turns };
}

function earlierView(run: Pick<RunFacts, "id" | "workspace">, input: Json): RunningFanOut["view"] {
  const [context, upstream] = [field(input, "context"), field(input, "upstream")];
  return {
    run: { ...run, input: field(input, "run") ?? null },
    context: isJsonObject(context) ? context : {},
    outputs: Outputs.of(isJsonObject(upstream) ? upstream : {}),
  };
}
