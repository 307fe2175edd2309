import { messageOf, type Problem, problemsError } from "../base/errors.ts";
import { deepFreeze, isJson, type Json, type JsonObject } from "../base/json.ts";
import { compileSchema } from "../schema/compile-schema.ts";
import type { Issue } from "../schema/schema.ts";
import type {
  CallScene,
  RecoverAnswer,
  Subject,
  ToolCall,
  ToolEffect,
  ToolResult,
  ToolSpec,
  Workspace,
} from "./subjects.ts";

/** A tool whose input type is gone: its schema stands at the only way in. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly effect: ToolEffect;
  /** What a model is shown. */
  readonly inputSchema: JsonObject;
  readonly schemaDigest: string;
  /** Checks an input. An accepted one becomes a call that can be looked at, but that only a permit can run. */
  bind(input: Json): Promise<Bound>;
  /** Absent when the tool cannot tell: then the outcome of an interrupted call is unknown. */
  readonly recover?: (intent: Json, call: ToolCall) => Promise<RecoverAnswer>;
}
export type Bound =
  | { readonly ok: true; readonly call: BoundCall }
  | { readonly ok: false; readonly issues: readonly Issue[] };

/** What a tool asks a person, and the JSON Schema of the answer. */
export interface Question {
  readonly question: string;
  readonly answer: JsonObject;
}

/** The part of a call that acts. Only grants.ts takes it out of a call, and only for a permit. */
export interface PreparedCall {
  /** Absent when the tool records no intent. */
  readonly prepare?: (call: ToolCall) => Promise<Json>;
  readonly execute: (call: ToolCall) => Promise<ToolResult>;
}

interface CallParts {
  readonly tool: string;
  readonly given: Json;
  readonly input: Json;
  readonly question: Question | undefined;
  readonly subjects: (workspace: Workspace, scene: CallScene) => readonly Subject[];
  readonly work: PreparedCall;
}

/** A stage of which nothing is known. */
const NO_SCENE: CallScene = { env: {}, mayWrite: false };

let takeWork: (call: BoundCall) => PreparedCall;

/** A call whose input its tool accepted. A class because its work has to be out of reach of whoever holds the call. */
export class BoundCall {
  readonly tool: string;
  /** The input as it was proposed: the very value that was bound. */
  readonly given: Json;
  /** The input as the schema accepted it, which is what will run. */
  readonly input: Json;
  /** For tools of effect `ask`. */
  readonly question: Question | undefined;
  readonly #subjects: (workspace: Workspace, scene: CallScene) => readonly Subject[];
  readonly #work: PreparedCall;

  static {
    takeWork = (call) => call.#work;
  }

  constructor(parts: CallParts) {
    this.tool = parts.tool;
    this.given = parts.given;
    this.input = parts.input;
    this.question = parts.question;
    this.#subjects = parts.subjects;
    this.#work = parts.work;
    Object.freeze(this);
  }

  /** What this call would touch. A tool that cannot tell has hit a limit: what is not known is not run. */
  subjects(workspace: Workspace, scene: CallScene = NO_SCENE): readonly Subject[] {
    try {
      return deepFreeze([...this.#subjects(workspace, scene)]);
    } catch (thrown) {
      return [{ kind: "refused", reason: `${this.tool} cannot tell what this call would touch: ${messageOf(thrown)}` }];
    }
  }
}

/** The acting part of a call. Not exported by the package: grants.ts is its one caller. */
export function executeOf(call: BoundCall): PreparedCall {
  return takeWork(call);
}

const NAME_GRAMMAR = /^[A-Za-z][A-Za-z0-9_-]{0,127}$/;
const EFFECTS: readonly ToolEffect[] = ["read", "write", "ask"];

/** Makes a tool from its spec. Throws SluiceError `invalid_tool` (or the schema's own) when it could never be called. */
export function defineTool<I>(spec: ToolSpec<I>): Tool {
  const problems = problemsOf(spec);
  if (problems.length > 0) throw problemsError("invalid_tool", "This tool cannot be used:", problems);
  const { name, recover } = spec;
  const schema = compileSchema<I>(spec.input, `the input of tool ${name}`);

  const bind = async (given: Json): Promise<Bound> => {
    const verdict = await schema.check(given);
    if (!verdict.ok) return verdict;
    await spec.ready?.();
    const { value } = verdict;
    let question: Question | undefined;
    try {
      question = deepFreeze(spec.question?.(value));
    } catch (thrown) {
      return { ok: false, issues: [{ path: "$", message: `no question can be made of it: ${messageOf(thrown)}` }] };
    }
    const work: PreparedCall = { execute: async (call) => spec.execute(value, call) };
    const prepare = spec.prepare;
    const parts: CallParts = {
      tool: name,
      given,
      input: isJson(value) ? deepFreeze(value) : given,
      question,
      subjects: (workspace, scene) => spec.subjects(value, workspace, scene),
      work: prepare === undefined ? work : { ...work, prepare: async (call) => prepare(value, call) },
    };
    return { ok: true, call: new BoundCall(parts) };
  };

  return Object.freeze({
    name,
    description: spec.description,
    effect: spec.effect,
    inputSchema: schema.jsonSchema,
    schemaDigest: schema.digest,
    bind,
    ...(recover === undefined ? {} : { recover: async (intent: Json, call: ToolCall) => recover(intent, call) }),
  });
}

function problemsOf<I>(spec: ToolSpec<I>): readonly Problem[] {
  const problems: Problem[] = [];
  const must = (ok: boolean, path: string, message: string, suggestion?: string): void => {
    if (!ok) problems.push({ path, message, ...(suggestion === undefined ? {} : { suggestion }) });
  };
  const named = typeof spec.name === "string" && NAME_GRAMMAR.test(spec.name);
  must(
    named,
    "name",
    `${JSON.stringify(spec.name)} is not a tool's name: a letter, then up to 127 letters, digits, _ or -`,
  );
  must(
    typeof spec.description === "string" && spec.description.trim() !== "",
    "description",
    "a model needs to read what the tool is for",
  );
  must(EFFECTS.includes(spec.effect), "effect", `${JSON.stringify(spec.effect)} is no effect`, "read, write or ask");
  must(
    typeof spec.subjects === "function",
    "subjects",
    "has to be a function",
    "() => [] when the call touches nothing the gate could compare",
  );
  must(typeof spec.execute === "function", "execute", "has to be a function");
  must(
    spec.effect !== "ask" || typeof spec.question === "function",
    "question",
    "a tool of effect ask has to say what it asks",
  );
  return problems;
}
