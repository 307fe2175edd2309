// What happens in a simulated run, as a file lists it.

import { type FailureCode, isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { jsonFault, suggestOneOf } from "@sluice/core/runtime";

/** What happens next in a simulated run. With `state`, only in that state. */
export type Outcome = { readonly state?: string } & (
  | { readonly event: string; readonly data?: JsonObject }
  | { readonly output: Json; readonly context?: JsonObject }
  | { readonly failure: FailureCode; readonly message?: string }
  | { readonly skipped: true }
  /** The state asks a person, and this is the answer. */
  | { readonly pause: Json }
  /** A person approves the transition that waits, or does not. */
  | { readonly approve: boolean; readonly reason?: string }
  /** A tool call changes this file of the workspace. */
  | { readonly interrupt: string }
  /** How the children of a fan-out end, by key. */
  | { readonly children: Readonly<Record<string, ChildOutcome>> }
);
export type ChildOutcome =
  | { readonly output: Json }
  | { readonly failure: FailureCode; readonly message?: string }
  | { readonly skipped: true };

export interface OutcomeFault {
  /** Where in the list, such as `[2].event`. */
  readonly path: string;
  readonly message: string;
  readonly suggestion?: string;
}

const KINDS = ["event", "output", "failure", "skipped", "pause", "approve", "interrupt", "children"] as const;
type Kind = (typeof KINDS)[number];

/** What each kind may have beside itself and `state`. */
const BESIDE: Readonly<Record<Kind, readonly string[]>> = {
  event: ["data"],
  output: ["context"],
  failure: ["message"],
  skipped: [],
  pause: [],
  approve: ["reason"],
  interrupt: [],
  children: [],
};

const CODES: Readonly<Record<FailureCode, true>> = {
  schema: true,
  turn_cap: true,
  assert: true,
  precondition: true,
  model: true,
  context_overflow: true,
  tool: true,
  budget: true,
  timeout: true,
  hook: true,
  fan_out: true,
  unanswered: true,
  timer: true,
  pipeline: true,
  router: true,
  authored: true,
  orchestrator: true,
  script: true,
  poll: true,
  interrupted: true,
};

/** Outcomes of one simulation. */
const MOST_OUTCOMES = 10_000;

/** Reads a list of outcomes. */
export function readOutcomes(value: Json): {
  readonly outcomes: readonly Outcome[];
  readonly faults: readonly OutcomeFault[];
} {
  if (!Array.isArray(value)) {
    const message = "is not a list";
    return { outcomes: [], faults: [{ path: "", message, suggestion: 'write [{ "event": "READY" }]' }] };
  }
  if (value.length > MOST_OUTCOMES)
    return { outcomes: [], faults: [{ path: "", message: `has more than ${MOST_OUTCOMES} outcomes` }] };
  // What is nested too deep could not be printed either.
  const deep = value.findIndex((entry) => jsonFault(entry) !== undefined);
  if (deep >= 0) return { outcomes: [], faults: [{ path: `[${deep}]`, message: "is nested too deep" }] };
  const faults: OutcomeFault[] = [];
  const outcomes = value.flatMap((entry: Json, index): readonly Outcome[] => {
    const read = readOutcome(entry, `[${index}]`);
    if ("path" in read) faults.push(read);
    return "path" in read ? [] : [read];
  });
  return { outcomes, faults };
}

function readOutcome(value: Json, path: string): Outcome | OutcomeFault {
  if (!isJsonObject(value)) return { path, message: "is not an object", suggestion: `use one of ${KINDS.join(", ")}` };
  const kinds = KINDS.filter((kind) => Object.hasOwn(value, kind));
  const [kind, other] = kinds;
  if (kind === undefined) {
    const [key = ""] = Object.keys(value).filter((name) => name !== "state");
    const suggestion = suggestOneOf(key, KINDS) ?? `use one of ${KINDS.join(", ")}`;
    return { path, message: "has no outcome", suggestion };
  }
  if (other !== undefined) return { path, message: `has both ${kind} and ${other}`, suggestion: "write two outcomes" };
  const known = ["state", kind, ...BESIDE[kind]];
  const extra = Object.keys(value).find((key) => !known.includes(key));
  if (extra !== undefined) {
    const hint = suggestOneOf(extra, known);
    return {
      path,
      message: `cannot have ${JSON.stringify(extra)} beside ${kind}`,
      ...(hint === undefined ? {} : { suggestion: hint }),
    };
  }
  const { state } = value;
  if (state !== undefined && typeof state !== "string")
    return { path: `${path}.state`, message: "must be the name of a state" };
  const read = readKind(kind, value, path);
  return "path" in read ? read : { ...read, ...(state === undefined ? {} : { state }) };
}

function readKind(kind: Kind, value: JsonObject, path: string): Outcome | OutcomeFault {
  const wrong = (field: string, message: string): OutcomeFault => ({ path: `${path}.${field}`, message });
  const { data, context, reason } = value;
  switch (kind) {
    case "event": {
      if (typeof value.event !== "string") return wrong(kind, "must be the name of an event");
      if (data === undefined) return { event: value.event };
      return isJsonObject(data) ? { event: value.event, data } : wrong("data", "must be an object");
    }
    case "output": {
      const { output = null } = value;
      if (context === undefined) return { output };
      return isJsonObject(context) ? { output, context } : wrong("context", "must be an object");
    }
    case "failure":
      return readFailure(value, path);
    case "skipped":
      return value.skipped === true ? { skipped: true } : wrong(kind, "must be true");
    case "pause":
      return { pause: value.pause ?? null };
    case "approve": {
      if (typeof value.approve !== "boolean") return wrong(kind, "must be true or false");
      if (reason === undefined) return { approve: value.approve };
      return typeof reason === "string" ? { approve: value.approve, reason } : wrong("reason", "must be a text");
    }
    case "interrupt":
      return typeof value.interrupt === "string"
        ? { interrupt: value.interrupt }
        : wrong(kind, "must be the path of a file");
    case "children":
      return readChildren(value.children, `${path}.children`);
  }
}

function readFailure(
  value: JsonObject,
  path: string,
): Extract<ChildOutcome, { readonly failure: FailureCode }> | OutcomeFault {
  const { failure, message } = value;
  if (typeof failure !== "string" || !isCode(failure)) {
    const suggestion = suggestOneOf(typeof failure === "string" ? failure : "", Object.keys(CODES));
    return {
      path: `${path}.failure`,
      message: "must be the code of a failure",
      ...(suggestion === undefined ? {} : { suggestion }),
    };
  }
  if (message === undefined) return { failure };
  return typeof message === "string" ? { failure, message } : { path: `${path}.message`, message: "must be a text" };
}

function isCode(code: string): code is FailureCode {
  return Object.hasOwn(CODES, code);
}

function readChildren(value: Json | undefined, path: string): Outcome | OutcomeFault {
  if (!isJsonObject(value)) return { path, message: "must be an object of outcomes by key" };
  // By entries, since an item of a list may be called __proto__.
  const children: (readonly [string, ChildOutcome])[] = [];
  for (const [key, entry] of Object.entries(value)) {
    const at = `${path}.${key}`;
    if (!isJsonObject(entry))
      return { path: at, message: "must be an outcome", suggestion: '{ "output": … } or { "failure": "tool" }' };
    if (Object.hasOwn(entry, "failure")) {
      const read = readFailure(entry, at);
      if ("path" in read) return read;
      children.push([key, read]);
    } else if (entry.skipped === true) children.push([key, { skipped: true }]);
    else if (Object.hasOwn(entry, "output")) children.push([key, { output: entry.output ?? null }]);
    else
      return {
        path: at,
        message: "must be an outcome",
        suggestion: '{ "output": … }, { "failure": "tool" } or { "skipped": true }',
      };
  }
  return { children: Object.fromEntries(children) };
}
