import { isAbsolute } from "node:path";
import { messageOf, type Problem, problemsError } from "../base/errors.ts";
import { cloneJson, deepFreeze, type Json, type JsonObject } from "../base/json.ts";
import { compileSchema } from "../schema/compile-schema.ts";
import type { Issue } from "../schema/schema.ts";
import type {
  CallScene,
  FileEdit,
  MeasureScene,
  RecoverAnswer,
  Subject,
  ToolCall,
  ToolEffect,
  ToolResult,
  ToolSpec,
  Workspace,
} from "./subjects.ts";
import type { MeasuredEdits } from "./usage.ts";

/** A tool without its input type: `bind` checks every input against the schema. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly effect: ToolEffect;
  /** The schema shown to models. */
  readonly inputSchema: JsonObject;
  readonly schemaDigest: string;
  /** Checks an input. What it returns can act, so only the permission gate calls it; stages never get a tool. */
  bind(input: Json): Promise<Bound>;
  /** Whether its calls may start processes without a sandbox. */
  readonly startsProcesses?: true;
  /** Without it, the outcome of an interrupted call is unknown. */
  readonly recover?: (intent: Json, call: ToolCall) => Promise<RecoverAnswer>;
}
export type Bound = BoundInput | { readonly ok: false; readonly issues: readonly Issue[] };

/** An input that its tool accepted. */
export interface BoundInput {
  readonly ok: true;
  /** The input as returned by the schema, which the tool gets. */
  readonly input: Json;
  /** For tools of effect `ask`. */
  readonly question: Question | undefined;
  /** What the call would touch. If the tool throws, the call is refused. */
  subjects(workspace: Workspace, scene?: CallScene): readonly Subject[];
  /** What the call would edit. Absent when the tool does not measure its calls. */
  readonly measure?: (scene: MeasureScene) => Promise<MeasuredEdits>;
  /** Absent when the tool records no intent. */
  readonly prepare?: (call: ToolCall) => Promise<Json>;
  readonly execute: (call: ToolCall) => Promise<ToolResult>;
}

/** A tool's question to a person, with the JSON Schema of the answer. */
export type Question = ReturnType<NonNullable<ToolSpec["question"]>>;

const NO_SCENE: CallScene = { env: {}, mayWrite: false };

const NAME_GRAMMAR = /^[A-Za-z][A-Za-z0-9_-]{0,127}$/;
const EFFECTS: readonly ToolEffect[] = ["read", "write", "ask"];

/** Makes a tool from its spec. Throws `invalid_tool`, or the schema's error, if the spec is invalid. */
export function defineTool<I>(spec: ToolSpec<I>): Tool {
  const problems = problemsOf(spec);
  if (problems.length > 0) throw problemsError("invalid_tool", "This tool cannot be used:", problems);
  const { recover } = spec;
  return toolOf(spec, () => spec, recover && (async (intent, call) => recover(intent, call)));
}

/** What models see of a tool: its spec without its code. */
export type ToolFacts<I> = Pick<ToolSpec<I>, "name" | "description" | "input" | "effect" | "startsProcesses">;

/** A tool whose code is loaded with its first call. */
export function lazyTool<I>(facts: ToolFacts<I>, load: () => Promise<ToolSpec<I>>): Tool {
  let loading: Promise<ToolSpec<I>> | undefined;
  const loaded = (): Promise<ToolSpec<I>> => {
    // A promise of another realm would be taken for the code itself.
    loading ??= Promise.resolve(load()).catch((thrown: unknown) => {
      // The next call tries again: a process can be out of file descriptors for a moment.
      loading = undefined;
      throw thrown;
    });
    return loading;
  };
  return toolOf(facts, loaded, async (intent, call) => (await loaded()).recover?.(intent, call) ?? "unknown");
}

function toolOf<I>(
  facts: ToolFacts<I>,
  code: () => ToolSpec<I> | Promise<ToolSpec<I>>,
  recover: Tool["recover"] | undefined,
): Tool {
  const { name, description, effect, startsProcesses } = facts;
  const schema = compileSchema<I>(facts.input, `the input of tool ${name}`);

  const bind = async (given: Json): Promise<Bound> => {
    const checked = schema.check(given);
    const verdict = checked instanceof Promise ? await checked : checked;
    if (!verdict.ok) return verdict;
    const found = code();
    const spec = found instanceof Promise ? await found : found;
    if (spec.ready !== undefined) await spec.ready();
    const { value } = verdict;
    let question: Question | undefined;
    try {
      // A copy, since a person approves what is recorded: a tool's own object could read differently later.
      const asked = spec.question && cloneJson(spec.question(value));
      if (asked?.ok === false) throw new TypeError(`it is not JSON: ${asked.fault}`);
      question = asked && deepFreeze(asked.value);
    } catch (thrown) {
      return { ok: false, issues: [{ path: "$", message: `the question could not be made: ${messageOf(thrown)}` }] };
    }
    const { prepare, measure } = spec;
    return Object.freeze({
      ok: true,
      input: deepFreeze(value),
      question,
      subjects: (workspace: Workspace, scene: CallScene = NO_SCENE): readonly Subject[] => {
        try {
          return [...spec.subjects(value, workspace, scene)];
        } catch (thrown) {
          const reason = `${name} failed to determine what this call would touch: ${messageOf(thrown)}`;
          return [{ kind: "refused", reason }];
        }
      },
      ...(measure === undefined
        ? {}
        : { measure: async (scene: MeasureScene) => await measured(name, () => measure(value, scene)) }),
      ...(prepare === undefined ? {} : { prepare: async (call: ToolCall) => prepare(value, call) }),
      execute: async (call: ToolCall) => spec.execute(value, call),
    });
  };

  return Object.freeze({
    name,
    description,
    effect,
    inputSchema: schema.jsonSchema,
    schemaDigest: schema.digest,
    bind,
    ...(startsProcesses === true ? { startsProcesses } : {}),
    ...(recover === undefined ? {} : { recover }),
  });
}

/** What a tool measures of one of its calls. Its code is not Sluice's, so anything but a list of edits is a failure. */
async function measured(
  tool: string,
  measure: () => readonly FileEdit[] | Promise<readonly FileEdit[]>,
): Promise<MeasuredEdits> {
  try {
    // A copy, since the limits count what is recorded: a tool's own list could read differently later.
    const own = cloneJson(await measure());
    if (own.ok && Array.isArray(own.value) && own.value.every(isEdit)) {
      return { ok: true, edits: own.value.map(({ real, removed, added }) => ({ real, removed, added })) };
    }
    return { ok: false, reason: `${tool} did not report what this call would change as a list of edits` };
  } catch (thrown) {
    return { ok: false, reason: `${tool} failed to determine what this call would change: ${messageOf(thrown)}` };
  }
}

function isEdit(edit: FileEdit): boolean {
  const isLines = (lines: number): boolean => Number.isSafeInteger(lines) && lines >= 0;
  return typeof edit?.real === "string" && isAbsolute(edit.real) && isLines(edit.removed) && isLines(edit.added);
}

function problemsOf<I>(spec: ToolSpec<I>): readonly Problem[] {
  const problems: Problem[] = [];
  const problem = (path: string, message: string, suggestion?: string): void => {
    problems.push({ path, message, ...(suggestion === undefined ? {} : { suggestion }) });
  };
  const { name, description, effect, subjects, execute, question } = spec;
  if (typeof name !== "string" || !NAME_GRAMMAR.test(name))
    problem("name", `${JSON.stringify(name)} is not a tool name: a letter, then up to 127 letters, digits, _ or -`);
  if (typeof description !== "string" || description.trim() === "")
    problem("description", "is required: a model has to read what the tool is for");
  if (!EFFECTS.includes(effect)) problem("effect", `${JSON.stringify(effect)} is not an effect`, "read, write or ask");
  if (typeof subjects !== "function")
    problem("subjects", "has to be a function", "() => [] when the gate has nothing to compare");
  if (typeof execute !== "function") problem("execute", "has to be a function");
  if (effect === "ask" && typeof question !== "function") problem("question", "is required for a tool of effect ask");
  return problems;
}
