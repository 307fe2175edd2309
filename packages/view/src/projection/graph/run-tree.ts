import { field, type Json, type SluiceEvent } from "@sluice/core";
import { END_STATUSES, parseExecutionId, parseSiblingId } from "@sluice/core/runtime";
import { refusalTable, routeTable, type TableRow, tableRowsIn } from "../../words/decision-table.ts";
import { changedFiles, type EventLine, isMessage } from "../../words/describe-event.ts";
import { consideredIn, numberAt, textAt, textsAt } from "../../words/fields.ts";
import type { ForkChild, Hop, RouteView } from "../../words/routes.ts";
import type { ExecutionView, ForkView, InterruptView, PipelineView, RunView, StateView } from "../run-view.ts";
import { DetourReducer } from "./detour-reducer.ts";

type Fork = NonNullable<ExecutionView["fork"]>;
type Shape = Pick<RunView, "initial" | "states" | "rows" | "interrupts" | "invoked" | "path" | "routes" | "forks">;
type TreeFacts = Pick<ExecutionView, "fork" | "invoked" | "handles" | "interrupted" | "turnCap">;

type Graph = Pick<PipelineView, "states" | "rows" | "interrupts" | "initial">;

/** The states, rows and interrupts of one pipeline: those that a run recorded, and those that it used. */
class PipelineGraph {
  readonly #states = new Map<string, StateView>();
  #rows: readonly TableRow[] | undefined;
  #interrupts: readonly InterruptView[] = [];
  #initial: string | undefined;
  #startsIn: string | undefined;
  #view: Graph | undefined;

  /** Takes the graph that an event recorded. Returns whether there is one. */
  recorded(data: Json | undefined): boolean {
    const shape = field(data, "shape");
    const states = field(shape, "states");
    if (!Array.isArray(states)) return false;
    this.#view = undefined;
    this.#states.clear();
    for (const state of states) {
      const id = textAt(state, "id");
      if (id !== "") this.#states.set(id, stateView(id, state));
    }
    // A run may start in another state than the initial one, and does not start again when it continues.
    const from = textAt(field(data, "from"), "state");
    if (from !== "") this.#startsIn = from;
    const initial = this.#startsIn ?? textAt(shape, "initial");
    if (initial !== "") this.#initial = initial;
    const rows = field(data, "rows");
    this.#rows = rows === undefined ? undefined : tableRowsIn(rows);
    this.#interrupts = interruptsIn(field(data, "interrupts"));
    return true;
  }

  /** Forgets the rows: the pipeline differs from the recorded one. */
  changed(): void {
    this.#rows = undefined;
    this.#view = undefined;
  }

  /** A state that the run uses. */
  uses(id: string): void {
    if (id === "" || this.#states.has(id)) return;
    this.#states.set(id, { id, kind: "" });
    this.#view = undefined;
  }

  /** The first state that is entered is the initial one, unless one is recorded. */
  begins(id: string): void {
    if (this.#initial === undefined) this.#view = undefined;
    this.#initial ??= id;
  }

  kindOf(state: string): string {
    return this.#states.get(state)?.kind ?? "";
  }

  turnCapOf(state: string): number | undefined {
    return this.#states.get(state)?.turnCap;
  }

  get rows(): readonly TableRow[] | undefined {
    return this.#rows;
  }

  view(): Graph {
    this.#view ??= {
      ...(this.#initial === undefined ? {} : { initial: this.#initial }),
      states: [...this.#states.values()],
      rows: this.#rows ?? [],
      interrupts: this.#interrupts,
    };
    return this.#view;
  }
}

function stateView(id: string, state: Json): StateView {
  const turnCap = numberAt(state, "turnCap");
  const [label, outcome] = [textAt(state, "label"), textAt(state, "outcome")];
  return {
    id,
    kind: textAt(state, "kind"),
    ...(Array.isArray(field(state, "targets")) ? { targets: textsAt(state, "targets") } : {}),
    ...(turnCap > 0 ? { turnCap } : {}),
    ...(label === "" || label === id ? {} : { label }),
    ...(outcome === "" ? {} : { outcome }),
  };
}

function interruptsIn(interrupts: Json | undefined): readonly InterruptView[] {
  if (!Array.isArray(interrupts)) return [];
  return interrupts.map((one: Json) => ({
    name: textAt(one, "name"),
    files: textAt(one, "files"),
    target: textAt(one, "target"),
  }));
}

/** A position among the records of a tree of runs: a child's records come after the fan-out that started it. */
type Position = readonly number[];

interface Begun {
  readonly key: string;
  readonly runId: string;
  readonly seq: number;
}

/** The graphs of a run's pipelines, its transitions, fan-outs and interrupts, and the order of its executions. */
export class RunTree {
  readonly #rootId: string;
  readonly #root: PipelineGraph;
  /** The next position of each run. */
  readonly #next = new Map<string, number>();
  /** The graphs of pipelines, by the runs that run them. */
  readonly #graphs = new Map<string, PipelineGraph>();
  readonly #invoked = new Map<string, Pick<PipelineView, "runId" | "pipeline" | "key">>();
  /** Absent before the first interrupt. */
  #detours: DetourReducer | undefined;
  /** The state that each run last fanned out from. */
  readonly #lastFanOut = new Map<string, string>();
  readonly #forks = new Map<string, ForkView>();
  /** The record of each fan-out, and the positions of its siblings. */
  readonly #forkedAt = new Map<string, { readonly seq: number; readonly places: ReadonlyMap<string, number> }>();
  readonly #positions = new Map<string, Position>();
  readonly #routes: RouteView[] = [];
  readonly #begun: Begun[] = [];
  #order: readonly string[] | undefined;
  #view: Shape | undefined;

  constructor(rootId: string) {
    this.#rootId = rootId;
    this.#root = new PipelineGraph();
    this.#graphs.set(rootId, this.#root);
  }

  /** Advances a run from `position` to `next`. Returns false for a position that was passed before. */
  take(runId: string, position: number, next: number): boolean {
    if (position < (this.#next.get(runId) ?? 0)) return false;
    this.#next.set(runId, next);
    return true;
  }

  began(
    key: string,
    { runId, stateId, executionId }: Pick<ExecutionView, "runId" | "stateId" | "executionId">,
    seq: number,
  ): void {
    this.#begun.push({ key, runId, seq });
    this.#order = undefined;
    this.#detours?.began(runId, executionId);
    // The fan-out names the states of siblings.
    if (!this.#graphs.has(runId)) return;
    this.#graphs.get(runId)?.begins(stateId);
    this.#uses(runId, stateId);
  }

  /** A run of a pipeline, from `run.started`. Siblings, items and branches run a part of their parent's. */
  started({ runId, data }: SluiceEvent): void {
    this.#view = undefined;
    if (runId === this.#rootId) {
      this.#root.recorded(data);
      // The records that follow are of another pipeline, until the fork.
      if (data.originalPipeline !== undefined) this.#root.changed();
      return;
    }
    const graph = new PipelineGraph();
    if (!graph.recorded(data)) return;
    this.#graphs.set(runId, graph);
    this.#invoked.set(runId, { runId, pipeline: textAt(data, "pipeline"), key: textAt(data, "key") });
  }

  /** A run continues, from `run.resumed` or `run.forked`, perhaps with a changed pipeline. */
  continued({ data }: SluiceEvent): void {
    const { changed } = data;
    if (changed === undefined) return;
    this.#view = undefined;
    if (!this.#root.recorded(changed)) this.#root.changed();
  }

  interrupted(event: SluiceEvent): void {
    const { runId, executionId = "", at, data } = event;
    const from = parseExecutionId(executionId).state;
    this.#detours ??= new DetourReducer();
    this.#detours.started(event, from);
    const [to, interrupt] = [textAt(data, "to"), textAt(data, "interrupt")];
    const hop: Hop = { runId, from, choice: "interrupt", to: [to], event: interrupt };
    const led = isMessage(data)
      ? { by: "a message", why: "" }
      : { by: "a changed file", why: `interrupt ${interrupt}: ${changedFiles(data)}` };
    this.#addRoute({ ...NOT_LED, ...led, runId, executionId, at, outcome: "moved", hop, from });
  }

  /** An execution continues after its interrupt, or has ended. */
  resumed({ runId, executionId = "" }: SluiceEvent): void {
    this.#detours?.ended(runId, executionId);
  }

  forked({ runId, data }: SluiceEvent, seq: number): void {
    const fork = textAt(data, "fanOut");
    const siblings = textsAt(data, "siblings");
    const join = textAt(data, "join");
    const list = textAt(data, "list");
    const key = forkKey(runId, fork);
    const children = childrenIn(data);
    const isOfRoute = /^fan-\d+$/.test(fork);
    this.#forks.set(key, {
      runId,
      fork,
      siblings,
      ...(list === "" ? {} : { list }),
      ...(children === undefined ? {} : { children }),
      ...(data.any === true ? { any: true } : {}),
      ...(textAt(data, "onFail") === "" ? {} : { onFail: textAt(data, "onFail") }),
      from: isOfRoute ? (this.#lastFanOut.get(runId) ?? "") : join,
      join,
      joined: false,
    });
    this.#forkedAt.set(key, { seq, places: new Map(siblings.map((sibling, at) => [sibling, at])) });
    this.#positions.clear();
    this.#order = undefined;
    this.#view = undefined;
    for (const state of [...(children === undefined ? (list === "" ? siblings : [list]) : statesOf(children)), join])
      this.#uses(runId, state);
  }

  joined({ runId, data }: SluiceEvent): void {
    const key = forkKey(runId, textAt(data, "fanOut"));
    const fork = this.#forks.get(key);
    if (fork === undefined) return;
    const joined = { ...fork, joined: true };
    this.#view = undefined;
    if (fork.children === undefined) {
      this.#forks.set(key, joined);
      return;
    }
    const outcomes = outcomesIn(data);
    const isCompleted = (status: string): boolean => status === "completed";
    const ends = [...outcomes.values()];
    const isSound = fork.any === true ? ends.some(isCompleted) : ends.every(isCompleted);
    this.#forks.set(key, { ...joined, outcomes, ...(isSound ? {} : { failed: true }) });
  }

  routed(event: SluiceEvent, { by, why }: EventLine): void {
    const { type, runId, executionId: id, at, data } = event;
    const hop = hopOf(event, this.#detours?.returnsTo(runId));
    if (type === "route.decided" && hop === undefined) return;
    const executionId = id || textAt(data, "from");
    const from = textAt(data, "from") || parseExecutionId(executionId).state;
    const { rows } = this.#graphOf(runId);
    const isRefused = type === "transition.rejected";
    const led = field(data, "why");
    const isModel = textAt(led, "by") === "model";
    const rationale = textAt(led, isModel ? "reason" : "rationale");
    // A refused choice is answered like a refused event: the state continues.
    const named = type === "route.rejected" && data.callId !== undefined ? { named: textAt(data, "to") } : {};
    this.#addRoute({
      runId,
      executionId,
      at,
      outcome: isRefused || named.named !== undefined ? "stayed" : hop === undefined ? "rejected" : "moved",
      ...(hop === undefined ? {} : { hop }),
      from,
      event: textAt(isRefused ? data : led, "event"),
      rationale,
      approved: field(led, "approved") === true,
      by,
      // The words of an event's reason are its rationale.
      why: rationale !== "" && textAt(data, "reason") === "" ? "" : why,
      considered: consideredIn(data),
      ...named,
      rows: isRefused ? refusalTable(data, from, rows) : isByTable(led) ? routeTable(data, rows) : [],
    });
    if (hop?.choice === "fanOut") this.#lastFanOut.set(runId, hop.from);
  }

  #addRoute(route: RouteView): void {
    this.#routes.push(route);
    this.#view = undefined;
    const { hop } = route;
    if (hop === undefined) return;
    for (const state of [hop.from, ...hop.to, hop.join ?? ""]) this.#uses(hop.runId, state);
  }

  /** The fan-out that a run is a sibling of. */
  forkOf(runId: string): Fork | undefined {
    const parts = parseSiblingId(runId);
    if (parts === undefined || !runId.startsWith(`${this.#rootId}/`)) return undefined;
    const known = this.#forks.get(forkKey(parts.parentId, parts.fanOut));
    return { runId: parts.parentId, fork: parts.fanOut, join: known?.join ?? "" };
  }

  /** Where an execution is in the tree. */
  factsOf({ runId, stateId, executionId }: Pick<ExecutionView, "runId" | "stateId" | "executionId">): TreeFacts {
    const fork = this.forkOf(runId);
    const invoked = this.#pipelineRunOf(runId);
    const turnCap = this.#graphOf(runId).turnCapOf(stateId);
    const handles = this.#detours?.handlesOf(runId, executionId);
    const interrupted = this.#detours?.interruptedOf(runId, executionId);
    return {
      ...(fork === undefined ? {} : { fork }),
      ...(invoked === this.#rootId ? {} : { invoked }),
      ...(turnCap === undefined ? {} : { turnCap }),
      ...(handles === undefined ? {} : { handles }),
      ...(interrupted === undefined ? {} : { interrupted }),
    };
  }

  /** The kind of an execution's state; empty if unknown. */
  kindOf({ runId, stateId }: Pick<ExecutionView, "runId" | "stateId">): string {
    return this.#graphOf(runId).kindOf(stateId);
  }

  /** Keys of all executions, in the order they began. */
  order(): readonly string[] {
    this.#order ??= this.#begun
      .map(({ key, runId, seq }) => ({ key, runId, seq, at: this.#positionOf(runId) }))
      .sort((a, b) => compare(a.at, b.at, a.seq, b.seq) || (a.runId < b.runId ? -1 : a.runId > b.runId ? 1 : 0))
      .map(({ key }) => key);
    return this.#order;
  }

  view(): Shape {
    this.#view ??= {
      ...this.#root.view(),
      invoked: [...this.#invoked.values()].map((run) => ({ ...run, ...this.#graphOf(run.runId).view() })),
      path: this.#routes.flatMap(({ hop }) => hop ?? []),
      routes: [...this.#routes],
      forks: [...this.#forks.values()],
    };
    return this.#view;
  }

  #positionOf(runId: string): Position {
    const known = this.#positions.get(runId);
    if (known !== undefined) return known;
    const parts = parseSiblingId(runId);
    const forked = parts && this.#forkedAt.get(forkKey(parts.parentId, parts.fanOut));
    const last = Number.POSITIVE_INFINITY;
    const position =
      parts === undefined
        ? []
        : [...this.#positionOf(parts.parentId), forked?.seq ?? last, forked?.places.get(parts.key) ?? last];
    this.#positions.set(runId, position);
    return position;
  }

  /** The run whose pipeline a run runs a part of, or its own. */
  #pipelineRunOf(runId: string): string {
    let at = runId;
    while (!this.#graphs.has(at)) {
      const parent = parseSiblingId(at)?.parentId;
      if (parent === undefined) return this.#rootId;
      at = parent;
    }
    return at;
  }

  #graphOf(runId: string): PipelineGraph {
    return this.#graphs.get(this.#pipelineRunOf(runId)) ?? this.#root;
  }

  /** Adds a state that the recorded shape lacks. */
  #uses(runId: string, state: string): void {
    this.#graphOf(runId).uses(state);
    this.#view = undefined;
  }
}

/** A route that no event led to. */
const NOT_LED = { event: "", rationale: "", approved: false, rows: [], considered: [] } as const;

/** Of two records, by the positions of their runs and their own. */
function compare(a: Position, b: Position, aSeq: number, bSeq: number): number {
  for (let index = 0; index <= Math.max(a.length, b.length); index += 1) {
    const left = a[index] ?? (index === a.length ? aSeq : -1);
    const right = b[index] ?? (index === b.length ? bSeq : -1);
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}

function forkKey(runId: string, fork: string): string {
  return JSON.stringify([runId, fork]);
}

/** Whether rows of a table decided, or were tried. */
function isByTable(why: Json | undefined): boolean {
  const by = textAt(why, "by");
  return by === "table" || by === "event" || by === "safe_next" || field(why, "rejectedRows") !== undefined;
}

/** The branches of a fork, or the pipelines that run; undefined for siblings and lists. */
function childrenIn(data: Json): readonly ForkChild[] | undefined {
  const children = field(data, "children");
  if (!Array.isArray(children)) return undefined;
  return children.map((child: Json): ForkChild => {
    const [key, pipeline] = [textAt(child, "key"), textAt(child, "pipeline")];
    return pipeline === ""
      ? { kind: "branch", key, state: textAt(child, "state"), terminal: textAt(child, "terminal") }
      : { kind: "pipeline", key, pipeline };
  });
}

function statesOf(children: readonly ForkChild[]): readonly string[] {
  return children.flatMap((child) => (child.kind === "branch" ? [child.state, child.terminal] : []));
}

function outcomesIn(data: Json): NonNullable<ForkView["outcomes"]> {
  const outcomes = field(data, "outcomes");
  if (!Array.isArray(outcomes)) return new Map();
  return new Map(
    outcomes.map((outcome: Json) => {
      const status = END_STATUSES.find((known) => known === textAt(outcome, "status")) ?? "failed";
      return [textAt(outcome, "name"), status] as const;
    }),
  );
}

/** Undefined for a rejected or unreadable route. `back` is the state that a return leads to. */
function hopOf({ type, runId, data }: SluiceEvent, back: string | undefined): Hop | undefined {
  const choice = textAt(data, "choice");
  if (type !== "route.decided" || !isChoice(choice)) return undefined;
  const to = field(data, "to");
  const join = textAt(data, "join");
  const items = numberAt(data, "items");
  const event = textAt(field(data, "why"), "event");
  const children = childrenIn(data);
  const named = typeof to === "string" ? [to] : textsAt(data, "to");
  const entered = children?.flatMap((child) => (child.kind === "branch" ? [child.state] : [])) ?? named;
  return {
    runId,
    from: textAt(data, "from"),
    choice,
    to: choice === "return" && back !== undefined ? [back] : entered,
    ...(join === "" ? {} : { join }),
    ...(event === "" ? {} : { event }),
    ...(children === undefined ? {} : { children }),
    ...(field(data, "any") === true ? { any: true } : {}),
    ...(items === 0 ? {} : { items }),
  };
}

const CHOICES = ["to", "fanOut", "done", "fail", "cancel", "return"] as const;

function isChoice(choice: string): choice is (typeof CHOICES)[number] {
  return CHOICES.some((known) => known === choice);
}
