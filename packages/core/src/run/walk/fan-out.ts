import { field, isJsonObject, type Json, type JsonObject, numberField, textField } from "../../base/json.ts";
import { recordedGraph } from "../../definition/graph.ts";
import type { StageResult } from "../../definition/result.ts";
import { maskSecrets } from "../../journal/redaction.ts";
import type { ChildRun, RunChildrenOptions, SiblingEnd } from "../../journal/seam.ts";
import { stepIds } from "../../journal/step-id.ts";
import { childState, countOf, enteredOf, type MachineState, type MachineView } from "../../machine/machine-state.ts";
import { Outputs } from "../../machine/outputs.ts";
import { recordedChildren } from "../../machine/resolve-choice.ts";
import { decide, fanOutFailure, placeIn } from "../../machine/transition.ts";
import type { Child, ChildEnd, Effect, MachineInput } from "../../machine/transition-types.ts";
import { AttemptJournal } from "../attempt.ts";
import type { Decided, MadePipeline, StartedChild } from "../execution.ts";
import { type ConcurrencySlots, createConcurrencySlots, slotsWithin } from "../limits/concurrency-slot.ts";
import { cancelReason, type RunMeter } from "../limits/limits.ts";
import { addChildTo, type ChildAccount, readChildAccount } from "../run-result.ts";
import { decideRoute } from "../stage/decide-route.ts";
import { decidesRoute } from "../stage/recorded-phases.ts";
import type { Walk } from "./one-run.ts";

/** The input of a sibling's or a branch's run. Everything else it reads from its parent, which always runs in the same process. */
type StateInput = Exclude<Child, { readonly kind: "invoke" }> & {
  /** The visit of its state, counted over the whole run. */
  readonly visit: number;
  /** Turns of its state before this visit, over the whole run. */
  readonly turns: number;
};

interface EndedFanOut {
  /** In declared order. */
  readonly ended: readonly ChildEnd[];
  /** Of the children that were started. */
  readonly accounts: readonly ChildAccount[];
}

/** A failed fan-out is a failure of the state that started it, so that state's failure route decides. */
export async function runFanOut(walk: Walk, effect: Extract<Effect, { readonly kind: "fanOut" }>): Promise<Decided> {
  const { pipeline, steps, state: view, account } = walk;
  const { spec, deps } = pipeline;
  const { ended, accounts } = await childrenToEnd(walk, effect);
  for (const used of accounts) addChildTo(account, used);
  const reason = cancelReason(steps.signal);
  if (reason !== undefined) return { input: { kind: "cancelled", reason }, decision: undefined };
  const input: MachineInput = { kind: "children", ended };
  const failure = fanOutFailure(view, ended);
  if (failure === undefined) return { input, decision: await decide(spec, view, input) };
  const { executionId, attempts } = failure;
  const journal = new AttemptJournal(steps, executionId, attempts);
  const decision = await steps.run(
    stepIds.failedFanOut(effect.fanOut.id),
    (call) => decideRoute({ spec, stateId: enteredOf(view).state, view, steps, deps }, journal, call, input),
    { decides: decidesRoute },
  );
  return { input, decision };
}

/** Runs the children of a fan-out to their ends. */
async function childrenToEnd(
  walk: Walk,
  { fanOut, children }: Extract<Effect, { readonly kind: "fanOut" }>,
): Promise<EndedFanOut> {
  const { pipeline } = walk;
  const { id, choice } = fanOut;
  const { join, list, maxParallel, onFailure } = choice;
  const keys = children.map(({ key }) => key);
  const ofList = list === undefined ? {} : { list };
  const started = { fanOut: id, siblings: keys, join, ...ofList, ...recordedChildren(choice) };
  const { slots } = pipeline.deps;
  const own = maxParallel === undefined ? undefined : slotsWithin(slots, createConcurrencySlots(maxParallel));
  const runs = children.map((child) => childRunOf(walk, child, list !== undefined));
  const settled = await runChildren(
    walk,
    id,
    runs,
    {
      onFailure,
      failed: (end) => end.status === "failed",
      open: { events: [{ type: "fanOut.started", data: started }] },
      joined: (ends) => [{ type: "fanOut.joined", data: { fanOut: id, ...ofList, outcomes: outcomesOf(keys, ends) } }],
    },
    { slots: own },
  );
  return endedOf(children, list !== undefined, settled);
}

function childRunOf({ pipeline, steps, state: view }: Walk, child: Child, isItem: boolean): ChildRun {
  const { key } = child;
  const parent = steps.runId;
  if (child.kind === "invoke") {
    const of = pipeline.spec.pipelines.get(child.pipeline);
    const graph = of === undefined ? {} : maskSecrets(recordedGraph(of), pipeline.deps.secrets);
    const started = { pipeline: of?.id ?? child.pipeline, parent, key, ...graph };
    return { key, input: child, events: [{ type: "run.started", data: started }] };
  }
  const { state } = child;
  const { visits: visit, turns } = countOf(view, state);
  const input: StateInput = { ...child, visit, turns };
  const inputAs = (recorded: Json): Json => (isEarlierInput(recorded) ? earlierInput(input, view) : input);
  const named = isItem || child.kind === "branch" ? { key } : {};
  const data = { pipeline: pipeline.spec.id, state, parent, ...named };
  return { key, input, inputAs, events: [{ type: "run.started", data }] };
}

function endedOf(
  children: readonly Child[],
  isList: boolean,
  settled: Readonly<Record<string, SiblingEnd>>,
): EndedFanOut {
  const ended: ChildEnd[] = [];
  const accounts: ChildAccount[] = [];
  for (const child of children) {
    const { key } = child;
    const end = endOf(settled, key);
    if (end === undefined) continue;
    const account = readChildAccount(end);
    const own = child.kind === "sibling" ? account?.stages[0] : undefined;
    ended.push(own === undefined ? childEnd(key, end) : siblingEnd(key, own));
    if (account !== undefined) accounts.push({ ...account, stages: stagesOf(child, account, isList) });
  }
  return { ended, accounts };
}

/** The executions of a child as its parent's result shows them: another pipeline's are its own. */
function stagesOf({ kind, key }: Child, { stages }: ChildAccount, isList: boolean): ChildAccount["stages"] {
  if (kind === "invoke") return [];
  return isList || kind === "branch"
    ? stages.map((stage) => (stage.key === undefined ? { ...stage, key } : stage))
    : stages;
}

function siblingEnd(key: string, result: StageResult<Json>): ChildEnd {
  const base = { key, turns: result.turns };
  switch (result.status) {
    case "completed":
      return { ...base, status: "completed", output: result.output };
    case "skipped":
      return { ...base, status: "skipped" };
    case "failed": {
      const { code, message, detail } = result;
      return { ...base, status: "failed", code, message, ...placeIn(detail) };
    }
    case "paused":
      return { ...base, status: "failed", code: "paused", message: "a parallel state cannot be left with a question" };
    case "cancelled":
      return { ...base, status: "cancelled", code: "cancelled", message: result.reason };
  }
}

/** The end of a branch, of another pipeline's run, or of a sibling that did not get to an execution. */
function childEnd(key: string, { status, value }: SiblingEnd): ChildEnd {
  const base = { key, turns: 0 };
  if (status === "completed") return { ...base, status, output: field(value, "output") ?? null };
  const error = field(value, "error");
  const message = textField(error, "message") ?? textField(value, "reason") ?? status;
  return { ...base, status, code: textField(error, "code") ?? status, message, ...placeIn(error) };
}

interface ChildSettings {
  /** Those of a list with a limit of its own. */
  readonly slots?: ConcurrencySlots | undefined;
  /** Of the execution that starts them. */
  readonly meter?: RunMeter;
  /** The pipelines that a state made, by the key of the child. */
  readonly made?: ReadonlyMap<string, MadePipeline>;
}

/** Runs children in one step. Each reads what its parent has now. */
export async function runChildren(
  { pipeline, steps, state }: Walk,
  stepId: string,
  children: readonly ChildRun[],
  options: RunChildrenOptions,
  { slots, meter, made = new Map() }: ChildSettings = {},
): Promise<Readonly<Record<string, SiblingEnd>>> {
  const { running } = pipeline;
  const { run, context, outputs, hops, counts, forks } = state;
  const at = `${steps.runId}/${stepId}`;
  running.byStep ??= new Map();
  running.byStep.set(at, (child, input) => {
    const own = made.get(textField(input, "key") ?? "");
    const parent = { run, context, outputs, hops, counts, forks };
    return pipeline.runChild({
      steps: child,
      input,
      parent,
      slots,
      ...(meter === undefined ? {} : { meter }),
      ...(own === undefined ? {} : { made: own }),
    });
  });
  try {
    return await steps.runChildren(stepId, children, options);
  } finally {
    running.byStep.delete(at);
  }
}

/** A key may be called as a member of every object is. */
export function endOf(ends: Readonly<Record<string, SiblingEnd>>, key: string): SiblingEnd | undefined {
  return Object.hasOwn(ends, key) ? ends[key] : undefined;
}

/**
 * Data of the join event. Keys are values, since redaction looks at keys and a state may be called `cookie`. The heads bind an
 * export, which leaves values out, to the children's journals.
 */
export function outcomesOf(keys: readonly string[], ends: Readonly<Record<string, SiblingEnd>>): JsonObject[] {
  return keys.flatMap((name) => {
    const end = endOf(ends, name);
    return end === undefined ? [] : [{ name, status: end.status, head: end.head }];
  });
}

/** The run of a sibling or a branch before its first execution, read from its input and its running parent. */
export function stateOfChild({ steps, input, parent }: StartedChild): MachineState {
  const { runId: id } = steps;
  const isEarlier = isEarlierInput(input);
  const view = isEarlier ? earlierView(parent, input) : parent;
  const state = textField(input, isEarlier ? "sibling" : "state") ?? "";
  const entered = { state, input: field(input, "input") ?? null, visit: numberField(input, "visit") ?? 1 };
  const terminal = textField(input, "terminal");
  const turns = numberField(input, "turns") ?? 0;
  return childState(view, { id, entered, turns, ...(terminal === undefined ? {} : { terminal }) });
}

// Until Sluice 0.1, a child's input repeated what it reads of its parent. Journals of that time are resumed and replayed.

function isEarlierInput(input: Json): boolean {
  return textField(input, "sibling") !== undefined;
}

function earlierInput({ state, input, visit, turns }: StateInput, { run, context, outputs }: MachineView): Json {
  return { sibling: state, input, run: run.input, context, upstream: outputs.object, visit, turns };
}

function earlierView({ run, ...parent }: StartedChild["parent"], input: Json): StartedChild["parent"] {
  const [context, upstream] = [field(input, "context"), field(input, "upstream")];
  return {
    ...parent,
    run: { ...run, input: field(input, "run") ?? null },
    context: isJsonObject(context) ? context : {},
    outputs: Outputs.of(isJsonObject(upstream) ? upstream : {}),
  };
}
