// What a document may not say that a model wrote, although a file may.

import { isDeepStrictEqual } from "node:util";
import { field, type Json } from "@sluice/core";
import { isSameJson, shortened, visibleJson } from "@sluice/core/runtime";
import { parseDuration } from "@sluice/stages";
import { durationText, readPointInTime } from "@sluice/stages/runtime";
import type { DocumentPath } from "../diagnostic.ts";
import { KIND_WORDS, textsOfKind } from "../kinds/compile.ts";
import { KIND_NAMES, type KindState, kindsIn } from "../kinds/fields.ts";
import type { Finding } from "../read/shape.ts";
import { type Edge, edgesOf } from "../statewright/edges.ts";
import type { StatewrightDocument, StatewrightGuard, StatewrightState } from "../statewright/schema.ts";
import type { AuthoredRules } from "./allow.ts";
import { isCovered, readsBeyond } from "./covers.ts";

/** Characters of a name that people read. */
const LONGEST_NAME = 64;
/** Characters of a command that people read. */
const LONGEST_COMMAND = 500;
/** How long a command may run. */
const LONGEST_RUN_MS = 3_600_000;
/** Model calls of one attempt. */
const MOST_TURNS = 50;

/** The findings about a document. `now` is in epoch milliseconds; paths are in the spelling of the schema. */
export function authoredFindings(document: StatewrightDocument, rules: AuthoredRules, now: number): readonly Finding[] {
  const { states = {} } = document;
  const guards = new Map(Object.entries(document.guards ?? {}));
  const found: Finding[] = [];
  for (const field of Object.keys(document))
    if (!DOCUMENT_FIELDS.has(field)) found.push(error("authored-field", [field], `${quoted(field)} ${FORBIDDEN}.`));
  const count = Object.keys(states).length;
  if (count > rules.maxStates)
    found.push(
      error(
        "authored-size",
        ["states"],
        `The pipeline has ${count} states, and at most ${rules.maxStates} are allowed.`,
      ),
    );
  for (const [name, state] of Object.entries(states).slice(0, rules.maxStates)) {
    const path = ["states", name];
    found.push(...nameFindings(name, path), ...stateFindings(state, path, rules, now));
    for (const edge of edgesOf(name, state)) {
      found.push(...nameFindings(edge.event, edge.path), ...answerFindings(state, edge, guards));
      if (typeof edge.action === "string" || "target" in edge.action) continue;
      const what = "invoke" in edge.action ? "invoke" : "fork";
      found.push(error("authored-field", [...edge.path, what], `${quoted(what)} ${FORBIDDEN}.`));
    }
  }
  return found;
}

const DOCUMENT_FIELDS: ReadonlySet<string> = new Set(["id", "initial", "context", "states", "guards"]);
const FORBIDDEN = "is not part of what a model may write";

const AGENT_FIELDS: ReadonlySet<string> = new Set([
  "allowed_tools",
  "instructions",
  "max_iterations",
  "turn_cap",
  "safe_next",
  "max_edit_lines",
  "max_files_per_state",
  "context_budget_bytes",
  "on",
  "type",
  "outcome",
]);

function stateFindings(
  state: StatewrightState,
  path: DocumentPath,
  rules: AuthoredRules,
  now: number,
): readonly Finding[] {
  const kinds = kindsIn(state);
  const kindNames: readonly string[] = KIND_NAMES;
  const found: Finding[] = [];
  for (const field of Object.keys(state)) {
    if (AGENT_FIELDS.has(field) || kindNames.includes(field)) continue;
    if (field === "model") found.push(...modelFindings(state.model, [...path, field], rules));
    else found.push(error("authored-field", [...path, field], `${quoted(field)} ${FORBIDDEN}.`));
  }
  for (const given of kinds) found.push(...kindFindings(given, [...path, given.kind], rules, now));
  if (kinds.length > 0 || state.type === "final") return found;
  return [...found, ...agentFindings(state, path, rules)];
}

function agentFindings(state: StatewrightState, path: DocumentPath, rules: AuthoredRules): readonly Finding[] {
  if (!rules.kinds.has("agent")) return [notAllowed("a state with an agent", path, rules)];
  const { allowed_tools: tools, turn_cap: turns = MOST_TURNS } = state;
  const found: Finding[] = [];
  if (turns > MOST_TURNS)
    found.push(error("authored-size", [...path, "turn_cap"], `An agent has at most ${MOST_TURNS} turns.`));
  if (tools === undefined) {
    const message = "The agent's tools have to be listed.";
    const suggestion = 'write "allowed_tools", with [] for none';
    return [...found, { ...error("authored-tool", path, message, suggestion), what: "key" }];
  }
  for (const [index, tool] of tools.entries()) {
    if (isCovered(tool, rules.tools)) continue;
    const message = `${quoted(tool)} is not within what the pipeline may use.`;
    found.push(
      error("authored-tool", [...path, "allowed_tools", index], message, oneOf(rules.tools, "no tool is allowed")),
    );
  }
  if (!readsBeyond(tools, rules.tools)) return found;
  const message = "Bash without a rule for Read would read every file.";
  const suggestion = oneOf(rules.tools, "no tool is allowed");
  return [...found, error("authored-tool", [...path, "allowed_tools"], message, suggestion)];
}

function kindFindings(given: KindState, path: DocumentPath, rules: AuthoredRules, now: number): readonly Finding[] {
  if (!rules.kinds.has(given.kind)) return [{ ...notAllowed(KIND_WORDS[given.kind], path, rules), what: "key" }];
  switch (given.kind) {
    case "script":
    case "poll":
      return [
        ...commandFindings(given, path, rules),
        ...schemaFindings(given.fields.output, [...path, "output"]),
        ...(given.kind === "poll" ? pollFindings(given, path, rules) : []),
      ];
    case "timer":
      return timerFindings(given, path, rules, now);
    case "pipeline": {
      const { workflow } = given.fields;
      if (rules.pipelines.has(workflow)) return [];
      const known = [...rules.pipelines.keys()];
      const message = `The pipeline ${quoted(workflow)} is not one that may be run.`;
      return [error("authored-pipeline", [...path, "workflow"], message, oneOf(known, "none may be run"))];
    }
    case "router":
      return [...modelFindings(given.fields.model, [...path, "model"], rules), ...tryFindings(given, path)];
    case "human":
      return [...deadlineFindings(given, path, rules), ...schemaFindings(given.fields.answer, [...path, "answer"])];
  }
}

/** What the command of a model may do in the sandbox, in which it always is. */
export const AUTHORED_SANDBOX = { write: true } as const;

/** What the command of a model may have. What decides where it runs and which code it loads is not its. */
const COMMAND_FIELDS: ReadonlySet<string> = new Set([
  "command",
  "stdin",
  "timeout",
  "success_codes",
  "output",
  "every",
  "not_yet_codes",
  "total_timeout",
  "max_attempts",
]);

function commandFindings(
  given: Extract<KindState, { readonly kind: "script" | "poll" }>,
  path: DocumentPath,
  { commands }: AuthoredRules,
): readonly Finding[] {
  const { command = [], timeout } = given.fields;
  const found = Object.keys(given.fields).flatMap((field): readonly Finding[] =>
    COMMAND_FIELDS.has(field) || (field === "sandbox" && isDeepStrictEqual(given.fields.sandbox, AUTHORED_SANDBOX))
      ? []
      : [error("authored-command", [...path, field], `${quoted(field)} ${FORBIDDEN}.`)],
  );
  const at = [...path, "command"];
  if (!commands.some((words) => words.every((word, index) => command[index] === word)))
    found.push(
      error(
        "authored-command",
        at,
        `The command ${quoted(command.join(" "))} does not begin with the words of an allowed one.`,
        oneOf(
          commands.map((words) => JSON.stringify(words)),
          "no command is allowed",
        ),
      ),
    );
  const limit = timeout === undefined ? undefined : parseDuration(timeout);
  if (limit?.ok === true && limit.ms > LONGEST_RUN_MS)
    found.push(
      error("authored-schedule", [...path, "timeout"], `A command runs for at most ${durationText(LONGEST_RUN_MS)}.`),
    );
  if (JSON.stringify(command).length > LONGEST_COMMAND)
    found.push(error("authored-size", at, `A command has at most ${LONGEST_COMMAND} characters.`));
  for (const { path: inside } of textsOfKind(given).filter(({ text }) => text.includes("{{"))) {
    if (inside[0] !== "command") continue;
    const suggestion = 'pass the value on standard input: "stdin": "upstream"';
    found.push(
      error("authored-command", [...path, ...inside], "The command of a model holds no template.", suggestion),
    );
  }
  return found;
}

function pollFindings(
  { fields: { every } }: Extract<KindState, { readonly kind: "poll" }>,
  path: DocumentPath,
  { floorMs }: AuthoredRules,
): readonly Finding[] {
  const read = parseDuration(every);
  if (!read.ok || read.ms >= floorMs) return [];
  const message = `The time between two attempts is at least ${durationText(floorMs)}.`;
  return [error("authored-schedule", [...path, "every"], message)];
}

function timerFindings(
  { fields: { for: length, until } }: Extract<KindState, { readonly kind: "timer" }>,
  path: DocumentPath,
  { floorMs }: AuthoredRules,
  now: number,
): readonly Finding[] {
  const least = durationText(floorMs);
  if (length !== undefined) {
    const read = parseDuration(length);
    return !read.ok || read.ms >= floorMs
      ? []
      : [error("authored-schedule", [...path, "for"], `A timer waits for at least ${least}.`)];
  }
  if (until === undefined) return [];
  const at = [...path, "until"];
  if (typeof until === "string" && until.includes("{{"))
    return [error("authored-schedule", at, "The time of a timer is fixed, so it holds no template.")];
  const read = readPointInTime(until);
  if (read.ok && read.at >= now + floorMs) return [];
  const message = read.ok ? `A timer wakes ${least} from now at the earliest.` : "This is not a time.";
  return [error("authored-schedule", at, message, `it is ${new Date(now).toISOString()} now`)];
}

function deadlineFindings(
  { fields: { deadline } }: Extract<KindState, { readonly kind: "human" }>,
  path: DocumentPath,
  { floorMs }: AuthoredRules,
): readonly Finding[] {
  const read = deadline === undefined ? undefined : parseDuration(deadline);
  if (read?.ok !== true || read.ms >= floorMs) return [];
  const message = `A person has at least ${durationText(floorMs)} to answer.`;
  return [error("authored-schedule", [...path, "deadline"], message)];
}

/** A condition on an answer that no one can give looks like the one that is meant, and lets all answers pass. */
function answerFindings(
  { human }: StatewrightState,
  { on, guards: named }: Edge,
  guards: ReadonlyMap<string, StatewrightGuard>,
): readonly Finding[] {
  const answers = answersIn(human?.answer);
  if (on !== "success" || answers === undefined) return [];
  return named.flatMap(({ name, path }) => {
    const { field: asked, op, value = null } = guards.get(name) ?? {};
    if (asked !== "output") return [];
    const values = op === "eq" || op === "neq" ? [value] : op === "in" && Array.isArray(value) ? value : [];
    const other = values.find((one: Json) => !answers.some((answer: Json) => isSameJson(answer, one)));
    if (other === undefined) return [];
    const known = answers.map((answer: Json) => JSON.stringify(answer));
    const message = `${visibleJson(other)} is no answer to the question.`;
    return [error("authored-answer", path, message, oneOf(known, "no answer fits"))];
  });
}

/** The answers that a schema lists. */
function answersIn(schema: Json | undefined): readonly Json[] | undefined {
  const [listed, only] = [field(schema, "enum"), field(schema, "const")];
  if (Array.isArray(listed)) return listed;
  if (only !== undefined) return [only];
  return field(schema, "type") === "boolean" ? [true, false] : undefined;
}

/** Keywords of regular expressions, and of references, whose checks can double with each of them. */
const UNBOUNDED: ReadonlySet<string> = new Set(["pattern", "$ref", "$dynamicRef", "$recursiveRef"]);

/** Checking a regular expression or references can take longer than any run, and nothing stops it. */
function schemaFindings(schema: Json | undefined, path: DocumentPath): readonly Finding[] {
  if (schema === undefined || schema === null || typeof schema !== "object") return [];
  return Object.entries(schema).flatMap(([key, value]: [string, Json]): readonly Finding[] => {
    const at = [...path, Array.isArray(schema) ? Number(key) : key];
    const isUnbounded = (UNBOUNDED.has(key) && typeof value === "string") || key === "patternProperties";
    if (isUnbounded) return [error("authored-field", at, `${quoted(key)} ${FORBIDDEN}.`)];
    return schemaFindings(value, at);
  });
}

function tryFindings(
  { fields: { tries } }: Extract<KindState, { readonly kind: "router" }>,
  path: DocumentPath,
): readonly Finding[] {
  if (tries === undefined || tries <= MOST_TURNS) return [];
  return [error("authored-size", [...path, "tries"], `A model chooses at most ${MOST_TURNS} times.`)];
}

function modelFindings(model: string | undefined, path: DocumentPath, { models }: AuthoredRules): readonly Finding[] {
  if (model === undefined || models.includes(model)) return [];
  const message = `The model ${quoted(model)} is not one that may be used.`;
  return [error("authored-model", path, message, oneOf(models, 'leave "model" out'))];
}

/** People read names in the request whether the pipeline runs. */
function nameFindings(name: string, path: DocumentPath): readonly Finding[] {
  if (name.length > LONGEST_NAME)
    return [{ ...error("authored-size", path, `A name has at most ${LONGEST_NAME} characters.`), what: "key" }];
  if (!/[\p{Cc}\p{Zl}\p{Zp}]/u.test(name)) return [];
  return [{ ...error("wrong-name", path, "A name is one line."), what: "key" }];
}

function notAllowed(what: string, path: DocumentPath, { kinds }: AuthoredRules): Finding {
  return error(
    "authored-kind",
    path,
    `The pipeline may not have ${what}.`,
    `it may have ${[...kinds, "final"].join(", ")}`,
  );
}

function oneOf(known: readonly string[], none: string): string {
  return known.length === 0 ? none : `allowed: ${known.slice(0, 12).join(", ")}`;
}

function quoted(text: string): string {
  return JSON.stringify(shortened(text, 80));
}

function error(rule: string, path: DocumentPath, message: string, suggestion?: string): Finding {
  return { severity: "error", rule, message, path, suggestion };
}
