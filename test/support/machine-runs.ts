import { join } from "node:path";
import * as core from "@sluice/core";
import {
  type Answer,
  type AnyState,
  callbackInteractor,
  cancel,
  done,
  fail,
  fanOut,
  field,
  isJsonObject,
  type Json,
  type JsonObject,
  type JsonSchema,
  type PersonRequest,
  type Pipeline,
  pipeline,
  type RunHost,
  route,
  type StageContext,
  type StageResult,
  type StateExecutor,
  state,
  to,
  withJsonSchema,
} from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore } from "@sluice/core/host";
import type { RunHandle, RunResult } from "@sluice/stages";
import type {
  Asked,
  End,
  Entered,
  Expr,
  GuardNode,
  ListNode,
  Machine,
  NoChoice,
  Outcome,
  PatchNode,
  RouteDecided,
  RouteFunctionNode,
  RouteNode,
  RowNode,
  Scope,
  Sight,
  StageEnd,
  StateNode,
  TraceEvent,
  Unrecordable,
} from "./reference-machine.ts";
import { actsOf, approvalMessage, branchOf, evaluate, itemKey, nodeOf, outcomeOf } from "./reference-machine.ts";
import { session, type TestSession, tool } from "./run-kit.ts";

// Random machines on the real run loop, through the public API, and what can be seen of them from outside.

/** One machine's run, in one process or in several. */
export interface Play {
  readonly machine: Machine;
  /** By run and execution: what its code read. */
  readonly entered: Map<string, Entered & { readonly run: string }>;
  /** By run, execution and result: what routes and conditions read. */
  readonly asked: Map<string, Asked & { readonly run: string }>;
  /** What no code of a user may see: a context that can be changed, or two contexts of one execution. */
  readonly faults: string[];
  /** Records of the first process so far. */
  written: number;
  /** Called before a record of the first process is written; what it throws is the store's failure. */
  beforeRecord?: () => void;
  /** Called when the work of a state begins. */
  onAct?: (run: string, signal: AbortSignal) => void | Promise<void>;
}

/** What a run showed: of each run of its tree the events, and what code was called with. */
export interface Observation {
  readonly runs: ReadonlyMap<
    string,
    { readonly events: readonly TraceEvent[]; readonly entered: readonly Entered[]; readonly asked: readonly Asked[] }
  >;
  readonly stages: readonly Omit<StageEnd, "raced">[];
  readonly end: End;
}

export interface MachineWorld {
  /** Begins a machine's run; `hooks` see its records and its work. */
  start(machine: Machine, hooks?: Pick<Play, "beforeRecord" | "onAct">): Started;
  /** Continues it in another process. */
  resume(started: Started): RunHandle<unknown>;
  /** Forks it, when it has ended, before an execution. What code reads in both is noted once, and has to be the same. */
  fork(started: Started, from: string): Started;
  observe(started: Started, result: RunResult<unknown> | ClosedRun): Promise<Observation>;
  readonly host: RunHost;
}
/** A run that ended without its code, and so without a result. */
export interface ClosedRun {
  readonly status: "cancelled";
  readonly stages: readonly never[];
  readonly error: { readonly code: string; readonly message: string };
}
export interface Started {
  readonly play: Play;
  readonly handle: RunHandle<unknown>;
  readonly pipeline: Pipeline<JsonObject, unknown>;
}

export function newPlay(machine: Machine): Play {
  return { machine, entered: new Map(), asked: new Map(), faults: [], written: 0 };
}

/** Two processes on one store in memory. */
export function machineWorld(): MachineWorld {
  const plays = new Map<string, Play>();
  const playOf = (runId: string): Play => {
    const play = plays.get(rootOf(runId));
    if (play === undefined) throw new Error(`no machine runs as ${runId}`);
    return play;
  };
  const memory = createMemoryJournals({ keepFinished: 2 });
  const madeOf = stateMaker(playOf);
  const executor = scriptedExecutor(playOf);
  const process = (store: JournalStore): TestSession =>
    session({
      executors: [executor],
      tools: [touch],
      interactors: [callbackInteractor("person", (request) => answerTo(playOf(request.runId), request))],
      host: createHost(store),
      cwd: join(import.meta.dirname, "..", "mutation"),
    });
  const store = memory.connect();
  const first = process({
    ...store,
    append: (commit) => {
      const play = plays.get(rootOf(commit.runId));
      play?.beforeRecord?.();
      const written = store.append(commit);
      if (play !== undefined) play.written += 1;
      return written;
    },
  });
  const second = process(memory.connect());

  return {
    host: second.host,
    start: (machine, hooks = {}) => {
      const play = { ...newPlay(machine), ...hooks };
      const defined = machinePipeline(machine, playOf, madeOf);
      const handle = first.start(defined, machine.input);
      plays.set(handle.runId, play);
      return { play, handle, pipeline: defined };
    },
    resume: ({ pipeline: defined, handle }) => second.resume(defined, handle.runId),
    fork: ({ play, pipeline: defined, handle: { runId } }, from) => {
      const handle = second.fork(defined, runId, { from });
      plays.delete(runId);
      plays.set(handle.runId, play);
      return { play, handle, pipeline: defined };
    },
    observe: async ({ play, handle: { runId } }, result) => {
      const observed = await observe(second.host, play, runId, result);
      plays.delete(runId);
      return observed;
    },
  };
}

/** What the row says that asks. */
function answerTo({ machine }: Play, { body, runId }: PersonRequest): Answer {
  const [, row] = /\(row (\d+)\)$/.exec(String(body.message)) ?? [];
  const [, state, visit] = /^(.+)#(\d+)$/.exec(String(body.executionId)) ?? [];
  const { rows } = { rows: [], ...machineOf(machine, state ?? "").routes };
  const says = rows[Number(row)]?.approval?.says ?? ["no"];
  const said = says[(Number(visit) - 1) % says.length];
  if (said === "yes") return { kind: "approve" };
  return said === "no" ? { kind: "deny", reason: `not in "${within(runId)}"` } : { kind: "defer" };
}

const rootOf = (runId: string): string => runId.split("/", 1)[0] ?? runId;
const within = (runId: string): string => runId.slice(rootOf(runId).length);

const OUTPUT: JsonSchema = { type: "object" };
/** Takes any input, and costs nothing to compile. */
const anyInput = { types: undefined, version: 1, vendor: "test", validate: (value: JsonObject) => ({ value }) };
const INPUT = withJsonSchema<JsonObject>({ "~standard": anyInput }, { type: "object" });
const WITH_X: JsonSchema = { type: "object", properties: { x: { type: "number" } }, required: ["x"] };

/** The machine as a pipeline, whose code notes what it reads in the play of its run. */
export function machinePipeline(
  machine: Machine,
  playOf: (runId: string) => Play,
  madeOf = (node: StateNode): AnyState => stateOf(node, playOf),
  id = "random",
): Pipeline<JsonObject, unknown> {
  const stages = Object.fromEntries(machine.states.map((node) => [node.id, madeOf(node)]));
  const { routes, initial, context, limits } = machine;
  const { interrupts = [], pipelines = {} } = machine;
  const common = {
    id,
    input: INPUT,
    stages,
    initial,
    context,
    limits,
    ...(interrupts.length === 0
      ? {}
      : { interrupts: Object.fromEntries(interrupts.map(({ name, files, target }) => [name, { files, target }])) }),
    ...(Object.keys(pipelines).length === 0
      ? {}
      : {
          pipelines: Object.fromEntries(
            Object.entries(pipelines).map(([id, invoked]) => [id, machinePipeline(invoked, playOf, madeOf, id)]),
          ),
        }),
  };
  const asking =
    ({ body }: RouteFunctionNode) =>
    (result: StageResult<unknown>, ctx: StageContext): unknown =>
      returned(body, ask(playOf(ctx.runId), result, ctx));
  const routeOf = (fn: RouteFunctionNode): unknown =>
    fn.targets === undefined ? asking(fn) : Reflect.apply(route, undefined, [fn.targets, asking(fn)]);
  // The types allow no wrong choice, and these routes make them, as JavaScript may.
  const define = (transitions: object): Pipeline<JsonObject, unknown> =>
    Reflect.apply(pipeline, undefined, [{ ...common, ...transitions }]);
  if (routes.kind === "functions") {
    const next = Object.fromEntries(
      Object.entries(routes.next).map(([id, { completed, failed, skipped }]) => [
        id,
        failed === undefined && skipped === undefined
          ? routeOf(completed)
          : {
              completed: routeOf(completed),
              ...(failed === undefined ? {} : { failed: routeOf(failed) }),
              ...(skipped === undefined ? {} : { skipped: routeOf(skipped) }),
            },
      ]),
    );
    return define({ next });
  }
  const transitions = routes.rows.map(({ from, on, when, to: target, approval }: RowNode, row) => ({
    from,
    on,
    label: `row ${row}`,
    to: typeof target === "string" ? target : choiceOf(target, { result: null, ctx: null }),
    ...(approval === undefined ? {} : { approval: { message: approvalMessage(approval, row) } }),
    ...(when === undefined
      ? {}
      : {
          when: (result: StageResult<unknown>, ctx: StageContext): unknown =>
            answered(when, ask(playOf(ctx.runId), result, ctx, row)),
        }),
  }));
  return define({ transitions });
}

/** Makes each state once: most of a small run's time would go into compiling its schemas. */
export function stateMaker(playOf: (runId: string) => Play): (node: StateNode) => AnyState {
  const made = new Map<string, AnyState>();
  return (node) => {
    const key = `${node.id} ${node.needsX} ${node.final} ${node.events}`;
    const own = made.get(key) ?? stateOf(node, playOf);
    made.set(key, own);
    return own;
  };
}

/** Reports a changed file of the workspace to the run. */
const TOUCH = "touch";
const touch = tool(TOUCH, {
  subjects: (input, { root }) => [{ kind: "path", real: join(root, String(field(input, "path"))), access: "write" }],
});

/** A state of any machine: what it does is looked up when it runs. */
function stateOf({ id, needsX, final, events }: StateNode, playOf: (runId: string) => Play): AnyState {
  if (final !== undefined) return core.final(final);
  const made = state({
    kind: "scripted",
    output: OUTPUT,
    allowedTools: [TOUCH],
    ...(needsX ? { inputSchema: WITH_X } : {}),
    precondition: (ctx) => (enter(playOf(ctx.runId), id, ctx).status === "skipped" ? "skip" : "proceed"),
  });
  if (events === undefined) return made;
  const { output: _none, ...spec } = made.spec;
  return { ...made, spec: { ...spec, completesByEvents: true } };
}

function scriptedExecutor(playOf: (runId: string) => Play): StateExecutor {
  return {
    kind: "scripted",
    act: async (_init, scope) => {
      const { ctx, stateId, signal } = scope;
      const play = playOf(ctx.runId);
      const outcome = enter(play, stateId, ctx);
      await play.onAct?.(within(ctx.runId), signal);
      const spent = { turns: 0, usage: { inputTokens: 0, outputTokens: 0 } };
      const acts = actsOf(lookUp(play, stateId), ctx.visit, sightOf(play, ctx).input);
      for (const [index, act] of acts.entries()) {
        const turn = index + 1;
        if (act.act === "touch") {
          await scope.calls(turn, [{ id: `t${turn}.c0`, tool: TOUCH, input: { path: act.path } }]);
          if (signal.aborted) return { ...spent, status: "cancelled", reason: "aborted" };
          continue;
        }
        const { accepted, output } = await scope.accept({ turn, event: act.event, data: act.data });
        if (accepted) return { ...spent, status: "completed", output };
      }
      // A skipped state does not work; if it does, the trace says so.
      return outcome.status === "skipped"
        ? { ...spent, status: "cancelled", reason: "worked although it was skipped" }
        : { ...spent, ...outcome };
    },
  };
}

function enter(play: Play, id: string, ctx: StageContext): Outcome {
  const sight = sightOf(play, ctx);
  const run = within(ctx.runId);
  const execution = `${id}#${ctx.visit}`;
  note(play, play.entered, `${run} ${execution}`, { run, execution, sight });
  return outcomeOf(lookUp(play, id), sight.visit, sight.input);
}

/** The machine that a state is part of, which may be one that another invokes. */
function machineOf(machine: Machine, id: string): Machine {
  const machines = [machine, ...Object.values(machine.pipelines ?? {})];
  const found = machines.find(({ states }) => states.some((state) => state.id === id));
  if (found === undefined) throw new Error(`there is no state ${id}`);
  return found;
}
const lookUp = ({ machine }: Play, id: string): StateNode => nodeOf(machineOf(machine, id), id);

function ask(play: Play, given: StageResult<unknown>, ctx: StageContext, row?: number): Scope {
  const sight = sightOf(play, ctx);
  const run = within(ctx.runId);
  const result = factsOf(given);
  const execution = given.executionId;
  // A state may send the same event again, when the context is another.
  const isEvent = given.status === "completed" && isJsonObject(result.output) && "event" in result.output;
  const of = isEvent
    ? JSON.stringify([result, sight])
    : JSON.stringify(given.status === "failed" ? (given.detail ?? null) : null);
  const asked = { run, execution, ...(row === undefined ? {} : { row }), result, sight };
  note(play, play.asked, `${run} ${execution} ${given.status} ${of} ${row ?? ""}`, asked);
  const { joined: _order, ...read } = sight;
  return { result, ctx: JSON.parse(JSON.stringify(read)) };
}

/** User code may be called twice for one execution, after a kill, and must then read the same. */
function note<T>(play: Play, into: Map<string, T>, key: string, value: T): void {
  const before = into.get(key);
  if (before !== undefined && JSON.stringify(before) !== JSON.stringify(value))
    play.faults.push(`${key} read ${JSON.stringify(before)} and then ${JSON.stringify(value)}`);
  into.set(key, value);
}

function sightOf(play: Play, ctx: StageContext): Sight {
  const { visit, input, upstream, context, fork } = ctx;
  for (const part of [ctx, upstream, context, fork ?? upstream, ...Object.values(upstream)])
    if (!Object.isFrozen(part)) play.faults.push(`a context is not frozen: ${JSON.stringify(part)}`);
  const joined = fork && Object.keys(upstream).filter((id) => Object.hasOwn(fork, id));
  return JSON.parse(
    JSON.stringify({ visit, input, upstream, context, fork, joined, items: Reflect.get(ctx, "items") }),
  );
}

/** What the reference says of a result; Sluice words the message of a failed fan-out. */
function factsOf(result: StageResult<unknown>): JsonObject {
  const { executionId, status } = result;
  switch (status) {
    case "completed":
      return { executionId, status, output: JSON.parse(JSON.stringify(result.output)) };
    case "failed": {
      const { code, message } = result;
      return code === "fan_out" ? { executionId, status, code } : { executionId, status, code, message };
    }
    default:
      return { executionId, status };
  }
}

/** What a route function returns, throws or promises. */
function returned(body: RouteNode, scope: Scope): unknown {
  const { node, later } = branchOf(body, scope);
  return later ? (async () => choiceOf(node, scope))() : choiceOf(node, scope);
}

function answered(guard: GuardNode, scope: Scope): unknown {
  switch (guard.guard) {
    case "later":
      return (async () => answered(guard.promised, scope))();
    case "throws":
      throw new Error("a condition threw");
    case "returns":
      return evaluate(guard.value, scope);
  }
}

function choiceOf(node: RouteNode, scope: Scope): unknown {
  const inputOf = (expr: Expr | undefined): unknown => (expr === undefined ? undefined : evaluate(expr, scope));
  const contextOf = (patch: PatchNode | undefined): { context?: JsonObject } =>
    patch === undefined
      ? {}
      : { context: Object.fromEntries(patch.map(([key, value]) => [key, evaluate(value, scope)])) };
  switch (node.do) {
    case "to":
      return to(node.state, inputOf(node.input), contextOf(node.context));
    case "fanOut": {
      const { join, onFailure } = node;
      const siblings = node.siblings.map(({ state: id, input, context }) =>
        input === undefined && context === undefined ? id : to(id, inputOf(input), contextOf(context)),
      );
      return fanOut(siblings, { join, input: inputOf(node.input), ...(onFailure === undefined ? {} : { onFailure }) });
    }
    case "forEach":
      return listOf(node, scope);
    case "fork": {
      const { branches, join, onComplete, onFail } = node;
      const options = { join, onComplete, onFail, input: inputOf(node.input) };
      const each = branches.map(({ key, initial, terminal, input }) => [
        key,
        present({ initial, terminal, input: inputOf(input) }),
      ]);
      return made("fork", Object.fromEntries(each), present(options));
    }
    case "invoke": {
      const { pipeline: invoked, key, onComplete, onFail } = node;
      return made("invoke", invoked, present({ key, onComplete, onFail, input: inputOf(node.input) }));
    }
    case "return":
      return made("backToInterrupted");
    case "stages": {
      const { stages, execution, join } = node;
      return { stages, execution, ...(join === undefined ? {} : { join }) };
    }
    case "done":
      return done(inputOf(node.output));
    case "fail":
      return fail(node.reason);
    case "cancel":
      return cancel(node.reason);
    case "unrecordable":
      return unrecordableChoice(node.as, node.state, unrecordable(node.value));
    case "noChoice":
      return noChoice(node.value, node.states);
    case "throw":
      throw new Error(node.message);
    case "later":
    case "if":
      throw new Error(`${node.do} is no last node`);
  }
}

/** What a maker of core returns for arguments that no type allows. */
function made(maker: string, ...args: readonly unknown[]): unknown {
  const make: unknown = Reflect.get(core, maker);
  if (typeof make !== "function") throw new Error(`core has no ${maker}`);
  return Reflect.apply(make, undefined, args);
}

function present(options: object): object {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

function listOf(node: ListNode, scope: Scope): unknown {
  const { join, input, onFailure, maxParallel } = node;
  const options = {
    key: (item: Json, index: number) => itemKey(node, item, index),
    join,
    ...(input === undefined ? {} : { input: evaluate(input, scope) }),
    ...(onFailure === undefined ? {} : { onFailure }),
    ...(maxParallel === undefined ? {} : { maxParallel }),
  };
  return made("forEach", node.state, evaluate(node.items, scope), options);
}

function unrecordable(value: Unrecordable): unknown {
  switch (value) {
    case "map":
      return new Map([["a", 1]]);
    case "date":
      return new Date(0);
    case "bigint":
      return 1n;
    case "nan":
      return Number.NaN;
    case "function":
      return () => null;
    case "cycle": {
      const cycle: Record<string, unknown> = {};
      cycle.self = cycle;
      return cycle;
    }
  }
}

function unrecordableChoice(as: "output" | "input" | "context", id: string, value: unknown): unknown {
  if (as === "output") return { kind: "done", output: { value } };
  if (as === "input") return { kind: "to", state: id, input: { x: 1, value } };
  return { kind: "to", state: id, input: { x: 1 }, context: { value } };
}

function noChoice(value: NoChoice, [id, other]: readonly [string, string]): unknown {
  switch (value) {
    case "undefined":
      return undefined;
    case "null":
      return null;
    case "number":
      return 5;
    case "text":
      return "done";
    case "list":
      return [];
    case "unknown kind":
      return { kind: "goto", state: "a" };
    case "no reason":
      return { kind: "fail" };
    case "no state":
      return { kind: "to" };
    case "no siblings":
      return { kind: "fanOut", join: id };
    case "odd sibling":
      return { kind: "fanOut", siblings: [5], join: id, input: { x: 1 } };
    case "odd policy":
      return { kind: "fanOut", siblings: [other], join: id, input: { x: 1 }, onFailure: "ignore" };
    case "odd context":
      return { kind: "to", state: id, input: { x: 1 }, context: ["k"] };
    case "odd stages":
      return { stages: id, execution: "sequential" };
    case "odd execution":
      return { stages: [id], execution: "later" };
  }
}

/** Everything that the run's journals and its user code show, in the reference's words. */
async function observe(
  host: RunHost,
  play: Play,
  runId: string,
  result: RunResult<unknown> | ClosedRun,
): Promise<Observation> {
  const runs = new Map<string, { events: TraceEvent[]; entered: Entered[]; asked: Asked[] }>();
  const runOf = (id: string) => {
    const run = runs.get(id) ?? { events: [], entered: [], asked: [] };
    runs.set(id, run);
    return run;
  };
  for (const { run, ...entered } of play.entered.values()) runOf(run).entered.push(entered);
  for (const { run, ...asked } of play.asked.values()) runOf(run).asked.push(asked);
  /** The status that the next route of an execution is about, by its run and its id. */
  const statuses = new Map<string, string>();
  for await (const event of host.events(runId, { children: true })) {
    const { events } = runOf(within(event.runId));
    const { data, executionId: execution = "", type } = event;
    const of = `${event.runId} ${execution}`;
    switch (type) {
      case "attempt.started":
        events.push({ type, execution, visit: Number(data.visit) });
        break;
      case "attempt.finished":
        statuses.set(of, String(data.outcome));
        events.push({ type, execution, outcome: String(data.outcome), ...textAt(data, "code") });
        break;
      case "route.rejected":
        events.push({ type, execution, from: String(data.from) });
        break;
      case "route.decided":
        events.push(decidedOf(play.machine, execution, statuses.get(of) ?? "", data));
        if (data.choice === "fanOut") statuses.set(of, "failed");
        break;
      case "context.changed":
        events.push({ type, execution, patch: objectAt(data, "patch") });
        break;
      case "transition.accepted":
      case "transition.rejected":
        events.push({ type, execution, turn: Number(data.turn), event: String(data.event) });
        break;
      case "interrupt.started":
      case "interrupt.returned": {
        const { interrupt, to: target, by } = data;
        events.push({ type, execution, interrupt: String(interrupt), other: String(target ?? by) });
        break;
      }
      case "limit.reached":
        events.push({ type, limit: String(data.limit) });
        break;
      case "fanOut.started":
        events.push({
          type,
          fanOut: String(data.fanOut),
          siblings: listAt(data, "siblings").map(String),
          join: String(data.join),
        });
        break;
      case "fanOut.joined":
        events.push({
          type,
          fanOut: String(data.fanOut),
          outcomes: listAt(data, "outcomes").map((outcome) => ({
            name: String(field(outcome, "name")),
            status: String(field(outcome, "status")),
          })),
        });
        break;
      case "run.finished": {
        const error = objectAt(data, "error");
        events.push({ type, status: String(data.status), ...textAt(error, "code"), ...textAt(error, "message") });
        break;
      }
      default:
    }
  }
  const stages = result.stages.map((stage) => ({
    execution: stage.executionId,
    status: stage.status,
    ...(stage.status === "failed" ? { code: stage.code } : {}),
    ...(stage.status === "completed" ? { output: JSON.parse(JSON.stringify(stage.output)) } : {}),
  }));
  return { runs, stages, end: endOf(result) };
}

function endOf(result: RunResult<unknown> | ClosedRun): End {
  switch (result.status) {
    case "completed":
      return { status: "completed", output: JSON.parse(JSON.stringify(result.output)) };
    case "failed":
    case "cancelled":
      return { status: result.status, ...result.error };
    default:
      throw new Error(`the run is ${result.status}`);
  }
}

const BY = ["function", "table", "default", "event", "safe_next", "interrupt"] as const;

function decidedOf(machine: Machine, execution: string, status: string, data: JsonObject): RouteDecided {
  const why = objectAt(data, "why");
  const by = BY.find((one) => one === why.by) ?? "default";
  const on = { completed: "success", failed: "failure", paused: "pause" }[status] ?? status;
  const isEvent = by === "event" || by === "safe_next";
  const { routes } = machineOf(machine, String(data.from));
  const rows = routes.kind === "table" ? routes.rows : [];
  // The event may also name the rows that are for something else.
  const refused = listAt(why, "rejectedRows")
    .map((row) => Number(field(row, "row")))
    .filter((row) => (isEvent ? typeof rows[row]?.on === "object" : rows[row]?.on === on));
  const { to: target } = data;
  return {
    type: "route.decided",
    execution,
    from: String(data.from),
    by,
    ...(typeof why.row === "number" ? { row: why.row } : {}),
    ...(refused.length === 0 ? {} : { refused }),
    choice: String(data.choice),
    ...(typeof target === "string" ? { to: target } : Array.isArray(target) ? { to: target.map(String) } : {}),
    ...textAt(data, "join"),
    // The words of Sluice's own reasons are free.
    ...(by === "default" || why.rejected !== undefined || why.code !== undefined ? {} : textAt(data, "reason")),
  };
}

type Words = Partial<Readonly<Record<"code" | "join" | "message" | "reason", string>>>;
function textAt(data: JsonObject, key: keyof Words): Words {
  const value = data[key];
  return typeof value === "string" ? { [key]: value } : {};
}
function objectAt(data: JsonObject, key: string): JsonObject {
  const value = data[key];
  return core.isJsonObject(value) ? value : {};
}
function listAt(data: JsonObject, key: string): readonly Json[] {
  const value = data[key];
  return Array.isArray(value) ? value : [];
}
