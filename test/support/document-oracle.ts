import { isJsonObject, type Json, type JsonObject, type SluiceEvent } from "@sluice/core";
import { CHILD, type DocumentStory, type Ran } from "./document-worlds.ts";
import { holds } from "./reference-guards.ts";

// Judges the records of a run by its document alone: whether it has moved only along edges that the document has, whose guards held
// and which a person approved where they ask for it, and whether each call was inside of its state's envelope or was granted.

type Member = Json | undefined;
const record = (value: Member): JsonObject => (isJsonObject(value) ? value : {});
const list = (value: Member): readonly Json[] => (Array.isArray(value) ? value : []);
const idOf = (name: string): string =>
  name.replaceAll(/[^A-Za-z0-9_-]+/gu, "-").replace(/^[^A-Za-z]+$/u, "") || "state";

/** What a run may do next. */
type Due =
  | { readonly kind: "enter"; readonly state: string }
  | { readonly kind: "fork"; readonly action: JsonObject; readonly children: ReadonlyMap<string, Task> }
  /** A fork has failed: the state of `next` is entered, or, without one, the execution that forked has failed. */
  | { readonly kind: "failed"; readonly next: Member }
  | { readonly kind: "return" }
  | { readonly kind: "end"; readonly status: string; readonly state?: string }
  | { readonly kind: "work" };
/** A run as its parent started it. */
interface Task {
  readonly document: JsonObject;
  readonly initial: string;
  readonly terminal?: string;
  readonly context: JsonObject;
}
interface Scene {
  readonly story: DocumentStory;
  readonly ran: readonly Ran[];
  readonly byRun: ReadonlyMap<string, readonly SluiceEvent[]>;
  readonly faults: string[];
  readonly seen: Map<string, number>;
}

/** The faults, and how often each kind of thing happened. */
export function judge(
  story: DocumentStory,
  rootId: string,
  events: readonly SluiceEvent[],
  ran: readonly Ran[],
): { readonly faults: readonly string[]; readonly seen: ReadonlyMap<string, number> } {
  const byRun = Map.groupBy(events, ({ runId }) => runId);
  const scene: Scene = { story, ran, byRun, faults: [], seen: new Map() };
  const { document } = story;
  judgeRun(scene, rootId, { document, initial: String(document.initial), context: record(document.context) });
  const started = new Set(
    events.flatMap(({ type, runId, executionId, data }) =>
      type === "call.started" ? [JSON.stringify([runId, executionId, data.callId, data.tool])] : [],
    ),
  );
  // A call that only reads is recorded when it has ended, which its process may not live to see.
  const wasKilled = events.some(({ type }) => type === "run.resumed");
  for (const { runId, executionId, callId, tool } of ran) {
    if (tool === "Peek" && wasKilled) continue;
    if (!started.has(JSON.stringify([runId, executionId, callId, tool])))
      scene.faults.push(`${tool} ran in ${executionId} without a record`);
  }
  return scene;
}

function judgeRun(scene: Scene, runId: string, task: Task): void {
  const { document, terminal } = task;
  const states = record(document.states);
  let context = task.context;
  let due: Due = { kind: "enter", state: task.initial };
  const at: string[] = [];
  const calls = new Map<string, { readonly args: string; readonly granted: boolean; readonly consumed: boolean }>();
  const executed = new Map<string, number>();
  const moves = new Map<string, { event: string; approved: boolean }>();
  let answered = "";
  const fault = (what: string): void => void scene.faults.push(`${runId}: ${what}`);
  const count = (what: string): void => void scene.seen.set(what, (scene.seen.get(what) ?? 0) + 1);
  const enter = (state: string): Due => {
    if (state === terminal) return { kind: "end", status: "completed", state };
    const body = record(states[state]);
    if (body.type !== "final") return { kind: "enter", state };
    const byName = { ended: "completed", failed: "failed", gone: "cancelled", over: "completed" }[state];
    const outcome = String(body.outcome ?? byName);
    // A branch that ends anywhere but at its terminal has failed.
    return { kind: "end", status: terminal === undefined ? outcome : "failed", state };
  };

  for (const { type, executionId = "", data } of scene.byRun.get(runId) ?? []) {
    const call = `${executionId} ${String(data.callId)}`;
    const known = calls.get(call) ?? { args: "", granted: false, consumed: false };
    const [state = ""] = executionId.split("#");
    switch (type) {
      case "attempt.started":
        if (due.kind !== "enter" || due.state !== state)
          fault(`${executionId} began instead of ${JSON.stringify(due)}`);
        due = { kind: "work" };
        at.push(executionId);
        break;
      case "request.answered":
        answered = String(data.answer);
        break;
      case "transition.rejected":
        answered = "";
        break;
      case "transition.accepted":
        moves.set(executionId, { event: String(data.event), approved: answered === "approve" });
        answered = "";
        break;
      case "call.decided":
        calls.set(call, { ...known, args: String(data.args) });
        break;
      case "grant.answered":
        if (data.answer === "approve") calls.set(call, { ...known, granted: true });
        break;
      case "grant.consumed":
        calls.set(call, { ...known, consumed: true });
        break;
      case "call.started": {
        if (at.at(-1) !== executionId) fault(`${executionId} called a tool while ${at.at(-1)} worked`);
        if (moves.has(executionId)) fault(`${executionId} called a tool after its transition`);
        const body = record(states[state]);
        const inside = covers(body, String(data.tool), known.args, scene.story.mode);
        if (!inside && !(known.granted && known.consumed))
          fault(`${executionId} ran ${String(data.tool)} outside of its envelope`);
        count(inside ? "inside" : "granted");
        executed.set(executionId, (executed.get(executionId) ?? 0) + 1);
        if (Number(body.max_iterations ?? 99) < (executed.get(executionId) ?? 0))
          fault(`${executionId} called too often`);
        break;
      }
      case "interrupt.started": {
        const name = Object.keys(record(document.interrupts)).find((key) => idOf(key) === data.interrupt) ?? "";
        const { trigger, target } = record(record(document.interrupts)[name]);
        const pattern = String(record(trigger).file_pattern);
        if (target !== data.to || !list(data.files).every((file) => fits(pattern, String(file))))
          fault(`an interrupt that the document does not have: ${JSON.stringify(data)}`);
        const written = scene.ran.filter((one) => one.runId === runId && one.executionId === executionId);
        if (!list(data.files).every((file) => written.some(({ path }) => path === file)))
          fault(`${executionId} was interrupted for a file that it has not written`);
        due = { kind: "enter", state: String(data.to) };
        count("interrupt");
        break;
      }
      case "interrupt.returned":
        if (due.kind !== "return" || at.at(-1) !== executionId) fault(`${executionId} continued without a return`);
        due = { kind: "work" };
        count("return");
        break;
      case "route.decided": {
        if (at.at(-1) !== executionId || state !== data.from) fault(`${executionId} routed while ${at.at(-1)} worked`);
        const { by, event } = record(data.why);
        if (by === "default" && data.choice === "cancel") {
          due = { kind: "end", status: "cancelled" };
          break;
        }
        if (by === "default") {
          const next: Member = due.kind === "failed" ? due.next : undefined;
          if (next === undefined ? data.choice !== "fail" : data.to !== next)
            fault(`${executionId} failed, and led on`);
          if (next !== undefined) at.length = 0;
          due = next === undefined ? { kind: "end", status: "failed" } : enter(String(next));
          break;
        }
        const move = moves.get(executionId);
        if (move === undefined || move.event !== event) {
          fault(`${executionId} moved by ${String(by)} ${String(event)}, and accepted ${move?.event}`);
          break;
        }
        const edge = edgeOf(document, state, move.event, context);
        if (edge === undefined) {
          fault(`${state} has no edge for ${move.event} whose guards hold`);
          break;
        }
        if (edge.requires_approval === true && !move.approved) fault(`nobody approved ${move.event} of ${state}`);
        count(edge.requires_approval === true ? "approved" : "unasked");
        at.pop();
        due = dueOf(edge, { data, move: move.event, document, enter, fault });
        if (due.kind === "return" && at.length === 0) fault(`${executionId} returned to nothing`);
        // Whatever else a handler leads to, the executions that it interrupted are over.
        if (due.kind !== "return") at.length = 0;
        // A fork that fails without another way is a failure of the execution that forked.
        if (due.kind === "fork") at.push(executionId);
        count(due.kind);
        break;
      }
      case "context.changed":
        context = { ...context, ...record(data.patch) };
        break;
      case "fanOut.joined": {
        if (due.kind !== "fork") {
          fault(`a fan-out joined instead of ${JSON.stringify(due)}`);
          break;
        }
        const outcomes = list(data.outcomes).map(record);
        const completed = outcomes.filter(({ status }) => status === "completed").length;
        const isDone: boolean = record(due.action).join === "any" ? completed > 0 : completed === outcomes.length;
        const { action }: { readonly action: JsonObject } = due;
        if (isDone) at.length = 0;
        due = isDone ? enter(String(action.on_complete)) : { kind: "failed", next: action.on_fail };
        count(isDone ? "fork completed" : "fork failed");
        break;
      }
      case "fanOut.started": {
        if (due.kind !== "fork") {
          fault(`a fan-out began instead of ${JSON.stringify(due)}`);
          break;
        }
        const keys = list(data.siblings).map(String);
        if (keys.toSorted().join() !== [...due.children.keys()].toSorted().join()) fault(`branches ${keys.join()}`);
        for (const key of keys) {
          const child = due.children.get(key);
          const id = [...scene.byRun.keys()].find((one) => one === `${runId}/${String(data.fanOut)}/${key}`);
          // Of a fork that was cancelled, a branch may never have begun.
          if (child !== undefined && id !== undefined)
            judgeRun(scene, id, { ...child, context: { ...context, ...child.context } });
        }
        break;
      }
      case "run.finished":
        if (data.status === "completed" && (due.kind !== "end" || due.status !== "completed"))
          fault(`it completed, and was to ${JSON.stringify(due)}`);
        if (due.kind === "end" && data.status !== due.status && data.status !== "cancelled")
          fault(`it ended as ${String(data.status)}, and was to end as ${due.status}`);
        if (due.kind === "enter" && data.status === "failed" && !/^limit_\w+ /u.test(errorOf(data)))
          fault(`it failed instead of ${JSON.stringify(due)}`);
        count(`run ${String(data.status)}`);
        break;
      default:
        break;
    }
  }
}

function errorOf({ error }: JsonObject): string {
  const { code, message } = record(error);
  return `${String(code)} ${String(message)}`;
}

/** Where an edge leads, compared with what was recorded. */
function dueOf(
  edge: JsonObject,
  {
    data,
    move,
    document,
    enter,
    fault,
  }: {
    readonly data: JsonObject;
    readonly move: string;
    readonly document: JsonObject;
    enter(state: string): Due;
    fault(what: string): void;
  },
): Due {
  const { target } = edge;
  const wrong = (): void => fault(`${move} led to ${JSON.stringify(data)}, and its edge is ${JSON.stringify(edge)}`);
  if (target === "$return") {
    if (data.choice !== "return") wrong();
    return { kind: "return" };
  }
  if (typeof target === "string") {
    if (data.choice !== "to" || data.to !== target) wrong();
    return enter(target);
  }
  const action = "fork" in edge ? record(edge.fork) : edge;
  if (data.choice !== "fanOut" || data.join !== action.on_complete) wrong();
  if ("invoke" in edge) {
    const context = { ...record(CHILD.context), ...record(edge.input) };
    const child: Task = { document: CHILD, initial: String(CHILD.initial), context };
    return { kind: "fork", action, children: new Map([[move, child]]) };
  }
  const children = Object.entries(record(action.branches)).map(([key, branch]): readonly [string, Task] => {
    const { initial, terminal } = record(branch);
    return [idOf(key), { document, initial: String(initial), terminal: String(terminal), context: {} }];
  });
  return { kind: "fork", action, children: new Map(children) };
}

/** The first edge of an event whose guards all hold. */
function edgeOf(document: JsonObject, state: string, event: string, context: JsonObject): JsonObject | undefined {
  const { on, safe_next } = record(record(document.states)[state]);
  const given = Object.hasOwn(record(on), event) ? record(on)[event] : safe_next;
  const edges = (Array.isArray(given) ? list(given) : [given]).map(
    (edge): Member => (typeof edge === "string" ? { target: edge } : edge),
  );
  return edges
    .filter((edge) => isJsonObject(edge))
    .find(({ guard, guards }) => {
      const names = [...(guard === undefined ? [] : [guard]), ...list(guards)];
      return names.every((name) => {
        const { field, op, value } = record(record(document.guards)[String(name)]);
        const known = OPERATORS.find((one) => one === op);
        return (
          known !== undefined &&
          holds({ field: String(field), op: known, ...(value === undefined ? {} : { value }) }, context)
        );
      });
    });
}
const OPERATORS = ["eq", "neq", "gt", "gte", "lt", "lte", "in", "contains", "exists", "not_exists"] as const;

/** Whether a call needs no grant. */
function covers({ allowed_tools }: JsonObject, tool: string, args: string, mode: string): boolean {
  if (allowed_tools === undefined) return mode === "yolo" || (mode === "allowlist" && tool === "Push");
  return list(allowed_tools).some((pattern) => {
    if (pattern === "P*") return tool.startsWith("P");
    return pattern === tool || (pattern === `${tool}(db/**)` && args.startsWith(`${tool}(path: "db/`));
  });
}

function fits(pattern: string, file: string): boolean {
  if (pattern === "db/**") return file.startsWith("db/");
  return pattern === "**/*.sql" ? file.endsWith(".sql") : file === pattern;
}
