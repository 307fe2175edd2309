// A state of a file that runs no agent, as a state of a pipeline, and what its mistakes are called in the file.

import { type AnyState, isJsonObject, type Json, type Problem } from "@sluice/core";
import { parseDuration } from "@sluice/stages";
import type { DocumentPath } from "../diagnostic.ts";
import type { Finding } from "../read/shape.ts";
import type { KindName, KindState } from "./fields.ts";
import { type KindNames, makeState } from "./make.ts";

/** What the fields of a kind mean in their format. */
export interface KindFormat extends KindNames {
  /** The faults of a text's templates. */
  templateFaults(text: string): readonly TemplateFault[];
}
export type TemplateFault = Pick<Finding, "message" | "suggestion" | "offset" | "length">;

export interface CompiledKind {
  readonly state: AnyState;
  /** The mistakes of its own. Their paths are relative to the fields of the kind. */
  readonly findings: readonly Finding[];
  /** Where a problem of the state is, relative to the fields of the kind. Its path is relative to the state. */
  locate(problem: Pick<Problem, "path">): DocumentPath;
}

/** Compiles the fields of one kind. */
export function compileKind(given: KindState, format: KindFormat): CompiledKind {
  const texts = textsOfKind(given);
  const findings = [
    ...texts.flatMap(({ path, text }) =>
      format
        .templateFaults(text)
        .map((fault): Finding => ({ severity: "error", rule: "bad-template", path, ...fault })),
    ),
    ...durationFindings(given),
    ...findingsOf(given),
  ];
  const broken = findings.some(({ severity }) => severity === "error");
  const state = makeState(broken ? withoutFaults(given) : given, format);
  return { state, findings, locate: ({ path }) => fieldPath(given, path) };
}

/** A text of a state, by its path in the fields of the kind. */
export interface TextAt {
  readonly path: DocumentPath;
  readonly text: string;
}

/** The texts of a state that may hold templates. */
export function textsOfKind(given: KindState): readonly TextAt[] {
  switch (given.kind) {
    case "script":
    case "poll": {
      const { command = [], stdin, env = {} } = given.fields;
      return [
        ...command.map((text, index) => ({ path: ["command", index], text })),
        ...(stdin === undefined ? [] : [{ path: ["stdin"], text: stdin }]),
        ...Object.entries(env).map(([name, text]) => ({ path: ["env", name], text })),
      ];
    }
    case "timer":
      return typeof given.fields.until === "string" ? [{ path: ["until"], text: given.fields.until }] : [];
    case "human":
      return [{ path: ["question"], text: given.fields.question }];
    case "pipeline":
      return textsIn(given.fields.input ?? {}, ["input"]);
    case "router":
      return [{ path: ["prompt"], text: given.fields.prompt }];
  }
}

/** Every text inside a value. */
function textsIn(value: Json, path: DocumentPath): readonly TextAt[] {
  if (typeof value === "string") return [{ path, text: value }];
  if (Array.isArray(value)) return value.flatMap((entry: Json, index) => textsIn(entry, [...path, index]));
  return isJsonObject(value) ? Object.entries(value).flatMap(([key, entry]) => textsIn(entry, [...path, key])) : [];
}

/** The durations of a state that cannot be read. */
function durationFindings(given: KindState): readonly Finding[] {
  return durationsOf(given).flatMap(({ field, value }): readonly Finding[] => {
    const read = value === undefined ? undefined : parseDuration(value);
    if (read === undefined || read.ok) return [];
    const message = `${JSON.stringify(field)} ${read.message}.`;
    return [{ severity: "error", rule: "duration", message, path: [field] }];
  });
}

interface DurationAt {
  readonly field: string;
  readonly value: number | string | undefined;
}

/** The fields of a state that are durations. */
function durationsOf(given: KindState): readonly DurationAt[] {
  switch (given.kind) {
    case "script":
      return [{ field: "timeout", value: given.fields.timeout }];
    case "poll": {
      const { timeout, every, total_timeout } = given.fields;
      return [
        { field: "timeout", value: timeout },
        { field: "every", value: every },
        { field: "total_timeout", value: total_timeout },
      ];
    }
    case "timer":
      return [{ field: "for", value: given.fields.for }];
    case "human":
      return [{ field: "deadline", value: given.fields.deadline }];
    default:
      return [];
  }
}

function findingsOf(given: KindState): readonly Finding[] {
  switch (given.kind) {
    case "script":
    case "poll":
      return commandFindings(given);
    case "timer": {
      const { for: length, until } = given.fields;
      if ((length === undefined) !== (until === undefined)) return [];
      const message = 'A timer has either "for" or "until".';
      const suggestion = 'write for: 15m, or until: "2027-01-31T09:00:00Z"';
      return [{ severity: "error", rule: "missing-field", message, suggestion, path: [], what: "key" }];
    }
    case "human": {
      const { deadline, on_deadline } = given.fields;
      if (on_deadline === undefined || deadline !== undefined) return [];
      const message = '"on_deadline" has no effect, since the question waits forever.';
      const suggestion = 'add "deadline", such as 5d';
      return [{ severity: "error", rule: "no-effect", message, suggestion, path: ["on_deadline"], what: "key" }];
    }
    default:
      return [];
  }
}

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/u;

function commandFindings({ fields }: Extract<KindState, { readonly kind: "script" | "poll" }>): readonly Finding[] {
  const { command, shell, secrets = [], output } = fields;
  const found: Finding[] = [];
  if ((command === undefined) === (shell === undefined)) {
    const message = 'A command is either a list in "command" or a line in "shell".';
    const suggestion =
      command === undefined
        ? 'write "command": ["npm", "test"]'
        : 'keep "command", whose values cannot become shell text';
    found.push({ severity: "error", rule: "missing-field", message, suggestion, path: [], what: "key" });
  }
  const offset = shell?.indexOf("{{") ?? -1;
  if (shell !== undefined && offset >= 0) {
    const [template = "{{"] = /^\{\{[^}]*\}\}/u.exec(shell.slice(offset)) ?? [];
    const shown = template.length <= 80 ? template : "{{…}}";
    const message = "A shell line holds no template: its value would be read as shell text.";
    const suggestion = `pass the value in a variable: "env": { "VALUE": ${JSON.stringify(shown)} }, and write "$VALUE" in the line`;
    const at = { path: ["shell"], offset, length: template.length };
    found.push({ severity: "error", rule: "template-in-command", message, suggestion, ...at });
  }
  if (output?.type !== undefined && output.type !== "object") {
    const message = "What a command prints is read as an object.";
    const suggestion = "let it print an object, or leave the schema out";
    found.push({ severity: "error", rule: "wrong-type", message, suggestion, path: ["output", "type"] });
  }
  for (const [index, name] of secrets.entries()) {
    if (VARIABLE.test(name)) continue;
    // Without the text, which may be a secret itself.
    const message = "A secret is named by its environment variable, and this is not such a name.";
    const suggestion = 'write the name, such as "NPM_TOKEN", and set the variable where sluice runs';
    found.push({ severity: "error", rule: "secret-name", message, suggestion, path: ["secrets", index] });
  }
  return found;
}

/** The state without what was reported, so that it can be made and other problems are found. */
function withoutFaults(given: KindState): KindState {
  const plain = (text: string): string => text.replaceAll("{{", "\\{{");
  switch (given.kind) {
    case "script":
      return { kind: "script", fields: { command: ["true"] } };
    case "poll":
      return { kind: "poll", fields: { command: ["true"], every: "1d" } };
    case "timer":
      return { kind: "timer", fields: { for: "1d" } };
    case "human":
      return { kind: "human", fields: { question: plain(given.fields.question), answer: given.fields.answer } };
    case "pipeline":
      return { kind: "pipeline", fields: { workflow: given.fields.workflow } };
    case "router":
      return { kind: "router", fields: { ...given.fields, prompt: plain(given.fields.prompt) } };
  }
}

/** The fields by the options of their functions, where they are called otherwise. */
const FIELDS: Readonly<Record<string, string>> = {
  timeoutMs: "timeout",
  successCodes: "success_codes",
  notYetCodes: "not_yet_codes",
  totalTimeoutMs: "total_timeout",
  maxAttempts: "max_attempts",
  onDeadline: "on_deadline",
  "command.shell": "shell",
};

/** The path of a field by that of an option: `env.TOKEN`, `command[2]`. */
function fieldPath({ fields }: KindState, path: string): DocumentPath {
  if (path.startsWith("command.shell")) return ["shell"];
  const [, option = "", rest = ""] = /^(\w+)(.*)$/su.exec(path) ?? [];
  const field = FIELDS[option] ?? option;
  if (!Object.hasOwn(fields, field)) return [];
  const index = /^\[(\d+)\]/u.exec(rest)?.[1];
  if (index !== undefined) return [field, Number(index)];
  const member = rest.startsWith(".") ? rest.slice(1) : "";
  const value: unknown = Object.entries(fields).find(([name]) => name === field)?.[1];
  return member !== "" && typeof value === "object" && value !== null && Object.hasOwn(value, member)
    ? [field, member]
    : [field];
}

/** A kind as the subject of a sentence. */
export const KIND_WORDS: Readonly<Record<KindName, string>> = {
  script: "a script state",
  poll: "a poll state",
  timer: "a timer",
  human: "a state that asks a person",
  pipeline: "a state that runs a workflow",
  router: "a router",
};

/** The events by which such a state is left. A router chooses its target itself. */
export function eventsOfKind(kind: KindName): readonly ("success" | "failure")[] {
  return kind === "router" ? ["failure"] : ["success", "failure"];
}
