import { readFile } from "node:fs/promises";
import { isJson, type Json, parseJson, SluiceError } from "@sluice/core";
import { jsonFaultPosition, jsonFaultText, messageOf, problemsError, shape } from "@sluice/core/runtime";

/** A scripted failure: an HTTP status, or a response that ends in the middle. */
export type ScriptedError =
  | { readonly status: number; readonly message?: string; readonly retryAfterMs?: number }
  | { readonly cut: true };

interface ScriptedCall {
  readonly tool: string;
  /** Default `{}`. */
  readonly input?: Json;
  /** The arguments as text, for invalid JSON. */
  readonly rawInput?: string;
}

/** The model's reply in one turn. */
export interface ScriptedTurn {
  readonly reasoning?: string;
  readonly text?: string;
  readonly calls?: readonly ScriptedCall[];
  /** Default `tool-calls` with calls, else `stop`. */
  readonly finish?: "stop" | "length" | "content-filter" | "tool-calls" | "other";
  /** The delay before the reply, by the session's clock. */
  readonly delayMs?: number;
  /** One failure per attempt; the attempt after the last one replies. */
  readonly errors?: readonly ScriptedError[];
}

/** Replies by name, one entry per turn over all attempts and visits. */
type ScriptedStages = Readonly<Record<string, readonly ScriptedTurn[]>>;

/** The replies of a scripted model. */
export interface Script {
  /** By stage. */
  readonly stages: ScriptedStages;
  /** By stage and key, for items of lists; the others use the turns of their stage. */
  readonly items?: Readonly<Record<string, ScriptedStages>>;
}

const errorShape = shape.either(
  shape.object({
    status: shape.integer({ min: 400, max: 599 }),
    message: shape.optional(shape.text()),
    retryAfterMs: shape.optional(shape.decimal({ min: 0 })),
  }),
  shape.object({ cut: shape.exactly(true) }),
);

const callShape = shape.holding(
  shape.object({
    tool: shape.text(),
    input: shape.optional(shape.custom<Json>(isJson, "is not JSON")),
    rawInput: shape.optional(shape.text()),
  }),
  (call) => call.input === undefined || call.rawInput === undefined,
  "has both input and rawInput; keep one",
);

const turnShape = shape.object({
  reasoning: shape.optional(shape.text()),
  text: shape.optional(shape.text()),
  calls: shape.optional(shape.list(callShape)),
  finish: shape.optional(shape.oneOf(["stop", "length", "content-filter", "tool-calls", "other"])),
  delayMs: shape.optional(shape.decimal({ min: 0 })),
  errors: shape.optional(shape.list(errorShape)),
});

const stagesShape = shape.mapOf(shape.list(turnShape));
const scriptShape = shape.object({
  stages: stagesShape,
  items: shape.optional(shape.mapOf(stagesShape)),
});

/** Validates a script. `source` names it in errors. Throws Validation `invalid_script`, which lists all problems. */
export function parseScript(value: unknown, source: string): Script {
  const issues: shape.ShapeIssue[] = [];
  if (scriptShape.fits(value, issues)) return value;
  const problems = issues.map((issue) => ({ path: pathOf(issue.path), message: issue.message }));
  throw problemsError("invalid_script", `${source} is not a script for the scripted model:`, problems);
}

/** Reads a script file. Throws Validation `script_not_found` or `invalid_script`. */
export async function loadScript(path: string): Promise<Script> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw new SluiceError("Validation", "script_not_found", `cannot read the script ${path}: ${messageOf(cause)}`, {
      cause,
    });
  }
  const json = parseJson(text);
  if (!json.ok) {
    const position = jsonFaultPosition(text);
    const at = position === undefined ? {} : { at: { file: path, ...position } };
    const message = `the script ${path} is not JSON: ${jsonFaultText(json.fault)}`;
    throw new SluiceError("Validation", "invalid_script", message, at);
  }
  return parseScript(json.value, `the script ${path}`);
}

function pathOf(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === "number") return `${text}[${key}]`;
    return text === "" ? String(key) : `${text}.${String(key)}`;
  }, "");
}
