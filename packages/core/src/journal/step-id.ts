import { field, parseJson } from "../base/json.ts";
import type { ChildRun, JournalRecord, RecordPhase, RunEnd } from "./seam.ts";

// The grammar of step ids:
//
//   id        = "project" | "initial" | fan-out [ "/failed" | "/approval" [ "/answer" ] ] | "wait/" signal | children
//             | execution "/a" attempt "/" name
//   fan-out   = "fan-" number, as the machine names it
//   children  = execution ":a" attempt ":" key, without a slash, since ids of runs hold it
//   execution = state "#" visit, as the machine formats it
//   name      = "enter" | "leave" | "output" | "precondition/" number [ "/now" | "/sleep" ]
//             | "turn/" turn "/" group "/" ( "verdicts" | "approvals" | "call" | "question" | "answer" )
//             | "turn/" turn "/accept/" number [ "/answer" ] | "approval" [ "/answer" ]
//             | "ask/" key [ "/answer" ] | "interrupt/" number | "suspension/" number
//             | a name that the state's executor chose

export const stepIds = {
  /** What the run reads of its project's files. */
  project: "project",
  initial: "initial",
  failedFanOut: (fanOut: string): string => `${fanOut}/failed`,
  /** A person is asked about the route that follows a failed fan-out; also the request's id. */
  fanOutApproval: (fanOut: string, part: RequestStepPart = "open"): string => `${fanOut}/approval${ENDING[part]}`,
  /** Child runs that a state's executor starts. */
  children: (executionId: string, attempt: number, name: string): string =>
    [executionId, `a${attempt}`, encodeKey(name)].join(":"),
  wait: (signal: string): string => `wait/${signal}`,
  /** `name` is one of `stepNames`, or the executor's own. Array.join, since V8 would retain a template as a cons-string. */
  inAttempt: (executionId: string, attempt: number, name: string): string =>
    [executionId, `a${attempt}`, name].join("/"),
} as const;

/** Names of core's steps inside an attempt. */
export const stepNames = {
  enter: "enter",
  leave: "leave",
  output: "output",
  precondition: (number: number): string => `precondition/${number}`,
  preconditionNow: (number: number): string => `precondition/${number}/now`,
  preconditionSleep: (number: number): string => `precondition/${number}/sleep`,
  /** A step of one group of a turn's tool calls. */
  calls: ({ turn, group }: CallGroupId, part: CallStepPart): string => `turn/${turn}/${group}/${part}`,
  /** The answer to an event of a turn; `number` counts those of the attempt, from 0. */
  accept: (turn: number, number: number, part: RequestStepPart = "open"): string =>
    `turn/${turn}/accept/${number}${ENDING[part]}`,
  /** A person is asked about the route that follows the attempt. */
  approval: (part: RequestStepPart = "open"): string => `approval${ENDING[part]}`,
  /** A person is asked for something that the state's executor needs. */
  ask: (name: string, part: RequestStepPart = "open"): string => `ask/${encodeKey(name)}${ENDING[part]}`,
  /** An interrupt of the attempt, from 0. */
  interrupt: (number: number): string => `interrupt/${number}`,
  /** A fault because of which the run may be suspended; `number` counts those of the attempt, from 1. */
  suspension: (number: number): string => `suspension/${number}`,
} as const;

/** Opens a request, or records its answer. */
export type RequestStepPart = "open" | "answer";
const ENDING: Readonly<Record<RequestStepPart, string>> = { open: "", answer: "/answer" };

/** Which group of a turn's calls; both are counted in the attempt, turns from 1 and groups from 0. */
export interface CallGroupId {
  readonly turn: number;
  readonly group: number;
}
export type CallStepPart = "verdicts" | "approvals" | "call" | "question" | "answer";

/** The attempt that a step belongs to. */
export interface AttemptRef {
  readonly executionId: string;
  readonly state: string;
  /** Counted from 1. */
  readonly visit: number;
  /** Counted from 1. */
  readonly attempt: number;
}

export type AttemptStepRef = AttemptRef & StepNameRef;
type StepNameRef =
  | { readonly kind: "enter" | "leave" | "output" }
  | { readonly kind: "precondition"; readonly number: number }
  | { readonly kind: "calls"; readonly turn: number; readonly group: number; readonly part: CallStepPart }
  | { readonly kind: "accept"; readonly turn: number; readonly number: number; readonly part: RequestStepPart }
  | { readonly kind: "approval"; readonly part: RequestStepPart }
  | { readonly kind: "ask"; readonly name: string; readonly part: RequestStepPart }
  | { readonly kind: "interrupt" | "suspension"; readonly number: number }
  /** A step of the state's executor, by its name in the attempt. */
  | { readonly kind: "custom"; readonly name: string };

export type StepRef =
  | { readonly kind: "project" | "initial" }
  | { readonly kind: "fanOut" | "failedFanOut" | "fanOutApproval"; readonly fanOut: string }
  /** The child runs that an executor started, by the name it gave them. */
  | (AttemptRef & { readonly kind: "children"; readonly name: string })
  | { readonly kind: "wait"; readonly signal: string }
  | AttemptStepRef
  /** A lifecycle record, or a step that no pipeline takes. */
  | { readonly kind: "unknown" };

/** Reads a step's id. Never throws: a journal may hold any text. */
export function parseStepId(text: string): StepRef {
  const inAttempt = parseAttemptStep(text);
  if (inAttempt !== undefined) return inAttempt;
  if (text === stepIds.project || text === stepIds.initial) return { kind: text };
  if (text.startsWith("wait/")) return { kind: "wait", signal: text.slice("wait/".length) };
  const [, fanOut, after] = FAN_OUT.exec(text) ?? [];
  if (fanOut === undefined) return parseChildrenStep(text) ?? { kind: "unknown" };
  if (after === undefined) return { kind: "fanOut", fanOut };
  return { kind: after === "/failed" ? "failedFanOut" : "fanOutApproval", fanOut };
}

function parseChildrenStep(text: string): Extract<StepRef, { readonly kind: "children" }> | undefined {
  const [, executionId, state, visit, attempt, name] = CHILDREN_STEP.exec(text) ?? [];
  if (executionId === undefined || state === undefined || name === undefined) return undefined;
  const of = { executionId, state, visit: Number(visit), attempt: Number(attempt) };
  return { kind: "children", ...of, name: decodeKey(name) };
}

/** The same for a step inside an attempt; undefined for any other. */
export function parseAttemptStep(text: string): AttemptStepRef | undefined {
  const [, executionId, state, visit, attempt, name = ""] = IN_ATTEMPT.exec(text) ?? [];
  if (executionId === undefined || state === undefined) return undefined;
  const ref: AttemptRef = { executionId, state, visit: Number(visit), attempt: Number(attempt) };
  return { ...ref, ...parseStepName(name) };
}

/** The part of a step's id that names it inside its attempt. Its first word decides what it can be. */
function parseStepName(name: string): StepNameRef {
  switch (name) {
    case stepNames.enter:
    case stepNames.leave:
    case stepNames.output:
      return { kind: name };
  }
  const slash = name.indexOf("/");
  switch (slash < 0 ? name : name.slice(0, slash)) {
    case "turn":
      return parseTurnStep(name) ?? { kind: "custom", name };
    case "precondition": {
      const [, number] = PRECONDITION.exec(name) ?? [];
      return number === undefined ? { kind: "custom", name } : { kind: "precondition", number: Number(number) };
    }
    case "interrupt": {
      const [, number] = INTERRUPT.exec(name) ?? [];
      return number === undefined ? { kind: "custom", name } : { kind: "interrupt", number: Number(number) };
    }
    case "suspension": {
      const [, number] = SUSPENSION.exec(name) ?? [];
      return number === undefined ? { kind: "custom", name } : { kind: "suspension", number: Number(number) };
    }
    case "approval": {
      const part = (["open", "answer"] as const).find((known) => stepNames.approval(known) === name);
      return part === undefined ? { kind: "custom", name } : { kind: "approval", part };
    }
    case "ask": {
      const [, asked, answer] = ASK.exec(name) ?? [];
      if (asked === undefined) return { kind: "custom", name };
      return { kind: "ask", name: decodeKey(asked), part: answer === undefined ? "open" : "answer" };
    }
    default:
      return { kind: "custom", name };
  }
}

function parseTurnStep(name: string): StepNameRef | undefined {
  const [, turn, group, last, number, answer] = IN_TURN.exec(name) ?? [];
  if (turn === undefined) return undefined;
  if (number !== undefined)
    return {
      kind: "accept",
      turn: Number(turn),
      number: Number(number),
      part: answer === undefined ? "open" : "answer",
    };
  const part = CALL_PARTS.find((known) => known === last);
  return part === undefined ? undefined : { kind: "calls", turn: Number(turn), group: Number(group), part };
}

/**
 * Whether a state's executor may give a step this name in its attempt: none of the run's own steps has it. What is not a text could
 * pass for another name here than in the id.
 */
export function isKindStepName(name: unknown): boolean {
  return typeof name === "string" && name !== "" && parseStepName(name).kind === "custom";
}

const FAN_OUT = /^(fan-\d+)(\/failed|\/approval(?:\/answer)?)?$/;
const CHILDREN_STEP = /^(([A-Za-z][\w-]*)#(\d+)):a(\d+):([^/:]+)$/;
const IN_ATTEMPT = /^(([A-Za-z][\w-]*)#(\d+))\/a(\d+)\/(.+)$/s;
const PRECONDITION = /^precondition\/(\d+)(?:\/now|\/sleep)?$/;
const IN_TURN = /^turn\/(\d+)\/(?:(\d+)\/(\w+)|accept\/(\d+)(\/answer)?)$/;
const ASK = /^ask\/([^/]+)(\/answer)?$/;
const INTERRUPT = /^interrupt\/(\d+)$/;
const SUSPENSION = /^suspension\/(\d+)$/;
const CALL_PARTS: readonly CallStepPart[] = ["verdicts", "approvals", "call", "question", "answer"];

/** The call that a request is about. Its id is `<execution>/a<attempt>/<call>`, followed by `/question` for a question. */
export function parseRequestId(
  text: string,
): (AttemptRef & { readonly callId: string; readonly isQuestion: boolean }) | undefined {
  const step = parseAttemptStep(text);
  if (step?.kind !== "custom") return undefined;
  const { kind: _kind, name, ...attempt } = step;
  const [callId = "", question, ...others] = name.split("/");
  const isQuestion = question === QUESTION;
  if (callId === "" || others.length > 0 || (question !== undefined && !isQuestion)) return undefined;
  return { ...attempt, callId, isQuestion };
}

export function questionId(executionId: string, attempt: number, callId: string): string {
  return stepIds.inAttempt(executionId, attempt, `${callId}/${QUESTION}`);
}

const QUESTION = "question";

/** The id of a child's run: its parent's, the step and the key, encoded so that an id names one child only. */
export function childRunId(parentId: string, stepId: string, key: string): string {
  return `${parentId}/${stepId}/${encodeKey(key)}`;
}

/** The run at the root of the tree that a run belongs to. */
export function rootRunId(runId: string): string {
  return runId.split("/", 1)[0] ?? runId;
}

/** Levels of a run below its root: each adds a step and a key to the id. */
export function runDepth(runId: string): number {
  return Math.floor((runId.split("/").length - 1) / 2);
}

/** The run, the fan-out and the key that a sibling's run id names; undefined for a root's. */
export function parseSiblingId(
  runId: string,
): { readonly parentId: string; readonly fanOut: string; readonly key: string } | undefined {
  const [, parentId, fanOut, encoded] = SIBLING.exec(runId) ?? [];
  if (parentId === undefined || fanOut === undefined || encoded === undefined) return undefined;
  return { parentId, fanOut, key: decodeKey(encoded) };
}

/**
 * The key of the list's item that a run is, from its id and its state. Undefined for any other run; an item whose key is the
 * state's id is named by the state alone.
 */
export function itemKeyOf(runId: string, state: string): string | undefined {
  if (!runId.includes("/")) return undefined;
  const key = parseSiblingId(runId)?.key;
  return key === state ? undefined : key;
}

const SIBLING = /^(.+)\/([^/]+)\/([^/]+)$/s;

/** A key as part of a run id: ids of states stay as they are, and nothing in it separates or leaves a path. Never throws. */
function encodeKey(key: string): string {
  // A host refuses keys that are not valid Unicode, but a journal from elsewhere may hold one.
  return encodeURIComponent(key.toWellFormed()).replaceAll(
    /[!'()*~]|^\./g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** The key of an encoded one. A text that `encodeKey` never returns stands for itself, so that no two ids have the same key. */
function decodeKey(encoded: string): string {
  let key = encoded;
  try {
    key = decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
  return encodeKey(key) === encoded ? key : encoded;
}

/** The value of the open record of a step that runs children. */
export function childrenIntent(children: readonly ChildRun[]): { readonly children: readonly string[] } {
  return { children: children.map(({ key }) => key) };
}

/** The keys in the open record of a step that runs children; undefined for another step's. */
export function childKeys({ phase, value }: JournalRecord): readonly string[] | undefined {
  if (phase !== "open" || !CHILDREN.test(value)) return undefined;
  const read = parseJson(value);
  const keys = read.ok ? (field(read.value, "children") ?? field(read.value, "fork")) : undefined;
  return Array.isArray(keys) ? keys.filter((key) => typeof key === "string") : undefined;
}

/** Journals of version 1, which are verified and never resumed, say `fork`. */
const CHILDREN = /^\{"(?:children|fork)":\[/;

/** The step ids of lifecycle records: what happens to a run from outside its program. */
export const LIFECYCLE_STEP = {
  start: "start",
  resume: "resume",
  suspend: "suspend",
  /** Ends the records that were copied from another run: those that follow are the run's own. */
  forked: "forked",
  /** Who cancelled the run, when and why; directly before its end. */
  cancel: "cancel",
  /** The end that the program returned. */
  end: "end",
  /** The end of a run that was cancelled while it had no owner; holds the heads of everything below it. */
  closed: "closed",
} as const;

/** The ordinal of lifecycle records, which are not steps. */
export const NO_ORDINAL = -1;

/** Every status that an end may have. */
export const END_STATUSES: readonly RunEnd["status"][] = ["completed", "failed", "cancelled"];

/** Every phase that a journal may hold. */
export const RECORD_PHASES: readonly RecordPhase[] = ["open", "done", "lifecycle", "life"];

/** Journals of version 1, which are verified and never resumed, say `life`. */
export function isLifecycle({ phase }: Pick<JournalRecord, "phase">): boolean {
  return phase === "lifecycle" || phase === "life";
}

export function isEnd(record: Pick<JournalRecord, "phase" | "stepId">): boolean {
  const { stepId: id } = record;
  return isLifecycle(record) && (id === LIFECYCLE_STEP.end || id === LIFECYCLE_STEP.closed);
}

/** The end that a run's last record holds; undefined for any other record, and for one that cannot be read. */
export function readEnd(record: Pick<JournalRecord, "phase" | "stepId" | "value">): RunEnd | undefined {
  const read = isEnd(record) ? parseJson(record.value) : undefined;
  if (read?.ok !== true) return undefined;
  const status = END_STATUSES.find((known) => known === field(read.value, "status"));
  const value = field(read.value, "value");
  return status === undefined || value === undefined ? undefined : { status, value };
}
