// What a Statewright document has wrong beyond its shape: names that lead nowhere, operands, outcomes.

import type { Json } from "@sluice/core";
import { isJsonObject, field as memberOf } from "@sluice/core";
import { matchesName, readPattern } from "@sluice/core/gate";
import { suggestOneOf } from "@sluice/core/runtime";
import { ANY_EVENT } from "../check/moves.ts";
import type { DocumentPath } from "../diagnostic.ts";
import { eventsOfKind, KIND_WORDS } from "../kinds/compile.ts";
import { isPlainEnd, RETURN } from "../kinds/ends.ts";
import { KIND_NAMES, type KindState, kindsIn, routerTargets } from "../kinds/fields.ts";
import { fieldNames, suggestClosest } from "../read/field-names.ts";
import type { Finding } from "../read/shape.ts";
import { type Edge, edgesOf, kindOf } from "./edges.ts";
import { type StatewrightDocument, type StatewrightGuard, type StatewrightState, stateSchema } from "./schema.ts";

/** The names that a document has, mistaken parts included, so that one mistake is not reported twice. */
interface Names {
  readonly states: readonly string[];
  /** What a transition may lead to: the states, and the ends that every workflow has. */
  readonly targets: readonly string[];
  readonly guards: readonly string[];
  /** Whether a model chooses what follows every state. */
  readonly isOrchestrated: boolean;
  /** Whether a state was written with something in this field, be it mistaken. */
  has(state: string, field: string): boolean;
}

/** The ends that every workflow has, also without a state of that name. */
const ENDS = { failed: "failed", cancelled: "cancelled" } as const;
const END_NAMES: readonly string[] = Object.keys(ENDS);

/** The document with the ends that its states lead to and that it does not define. `whole` is the document as it was written. */
export function withEnds(document: StatewrightDocument, whole: Json): StatewrightDocument {
  const { states } = document;
  if (states === undefined) return document;
  const written = keysOf(whole, "states");
  const targets = new Set(Object.entries(states).flatMap(([name, state]) => targetsOf(name, state)));
  const added = Object.entries(ENDS).filter(([name]) => targets.has(name) && !written.includes(name));
  const ends = added.map(([name, outcome]): readonly [string, StatewrightState] => [name, { type: "final", outcome }]);
  return { ...document, states: { ...states, ...Object.fromEntries(ends) } };
}

/** Every state that a state may lead to. */
function targetsOf(name: string, state: StatewrightState): readonly string[] {
  const kind = kindOf(state);
  const chosen = kind?.kind === "router" ? routerTargets(kind.fields).map((target) => target.name) : [];
  return [...edgesOf(name, state).flatMap(({ targets }) => targets.map(({ target }) => target)), ...chosen];
}

/** What a run is in when a person interrupted it. */
const INTERRUPTED = "interrupted";

/** The findings, by paths in the schema's spelling. `whole` is the document as it was written. */
export function checkStatewright(document: StatewrightDocument, whole: Json): readonly Finding[] {
  const written = keysOf(whole, "states");
  const names: Names = {
    states: written,
    targets: [...new Set([...written, ...END_NAMES])],
    isOrchestrated: memberOf(whole, "orchestrator") !== undefined,
    guards: keysOf(whole, "guards"),
    has: (state, field) => isWritten(memberOf(memberOf(whole, "states"), state), field),
  };
  const { initial, states = {}, guards = {}, interrupts = {}, context = {} } = document;
  const found: Finding[] = [];
  if (initial !== undefined) found.push(...targetFindings(initial, ["initial"], names));
  const { orchestrator } = document;
  if (orchestrator?.fallback !== undefined)
    found.push(...targetFindings(orchestrator.fallback, ["orchestrator", "fallback"], names));
  const terminals = terminalsOf(document);
  for (const [name, state] of Object.entries(states)) {
    if (name === RETURN)
      found.push(reservedName(["states", name], "it is the target that goes back from an interrupt"));
    if (name === INTERRUPTED)
      found.push(reservedName(["states", name], "it says that a person interrupted the state that ran"));
    if (state.type !== "final") found.push(...stateFindings(name, state, names));
    else found.push(...finalFindings(name, state, terminals.has(name)));
    found.push(...undeclaredFields(name, state, Object.keys(context)));
  }
  for (const [name, guard] of Object.entries(guards)) found.push(...operandFindings(guard, ["guards", name]));
  for (const [name, { target }] of Object.entries(interrupts))
    found.push(...targetFindings(target, ["interrupts", name, "target"], names));
  for (const key of Object.keys(context)) {
    if (!key.startsWith("_")) continue;
    const message = `The context cannot hold ${JSON.stringify(key)}: names with a leading _ are reserved.`;
    found.push({ severity: "error", rule: "context-key", message, path: ["context", key], what: "key" });
  }
  return [...found, ...documentFindings(document, names)];
}

/** Whether an object has a value that is not an empty object in a field of states, in any spelling. */
function isWritten(state: Json | undefined, field: string): boolean {
  if (!isJsonObject(state)) return false;
  const { fieldOf } = fieldNames(stateSchema);
  return Object.entries(state).some(
    ([key, value]) => fieldOf(key) === field && !(isJsonObject(value) && Object.keys(value).length === 0),
  );
}

function keysOf(whole: Json, field: string): readonly string[] {
  const member = isJsonObject(whole) ? whole[field] : undefined;
  return isJsonObject(member) ? Object.keys(member) : [];
}

function reservedName(path: DocumentPath, why: string): Finding {
  const message = `${JSON.stringify(path.at(-1))} cannot be a name here: ${why}.`;
  return { severity: "error", rule: "wrong-name", message, suggestion: "rename it", path, what: "key" };
}

/** Templates that read a field which the initial context lacks: an agent may forget to send it. */
function undeclaredFields(name: string, { instructions = "" }: StatewrightState, fields: readonly string[]): Finding[] {
  const reads = [...instructions.matchAll(/(?<!\\)\{\{\s*ctx\.context\.([\w-]+)[^}]*\}\}/gu)];
  return reads.flatMap(({ 0: template, 1: field = "", index: offset }): readonly Finding[] => {
    if (fields.includes(field)) return [];
    const message = `The context starts without ${JSON.stringify(field)}: if no event has sent it, the state fails.`;
    const suggestion = suggestClosest(field, fields) ?? `add "${field}": null to "context"`;
    const path = ["states", name, "instructions"];
    return [
      { severity: "warning", rule: "undeclared-field", message, suggestion, path, offset, length: template.length },
    ];
  });
}

/** The states that end a branch of a fork. */
function terminalsOf({ states = {} }: StatewrightDocument): ReadonlySet<string> {
  const edges = Object.entries(states).flatMap(([name, state]) => edgesOf(name, state));
  return new Set(
    edges.flatMap((edge) => edge.targets.filter(({ path }) => path.at(-1) === "terminal").map(({ target }) => target)),
  );
}

function documentFindings({ states, meta }: StatewrightDocument, names: Names): readonly Finding[] {
  if (states === undefined) return [];
  const found: Finding[] = [];
  const all = Object.entries(states);
  if (!names.isOrchestrated && !all.some(([, { type }]) => type === "final")) {
    const message = "No state is final, so the workflow cannot end.";
    const suggestion = 'add a state with "type": "final"';
    found.push({ severity: "error", rule: "no-final", message, suggestion, path: ["states"], what: "key" });
  }
  const asks = all.some(([name, state]) => edgesOf(name, state).some(({ approval }) => approval !== undefined));
  if (meta?.requires_human_approval === true && !asks) {
    const message = "The workflow requires human approval, but no transition asks for it.";
    const suggestion = "set requires_approval on a transition";
    const path = ["meta", "requires_human_approval"];
    found.push({ severity: "warning", rule: "approval-missing", message, suggestion, path, what: "key" });
  }
  return found;
}

function targetFindings(
  target: string,
  path: DocumentPath,
  { states, targets }: Names,
  mayReturn = false,
): readonly Finding[] {
  if (targets.includes(target) || (mayReturn && target === RETURN)) return [];
  const message =
    target === RETURN
      ? `${RETURN} is only the target of a transition.`
      : `There is no state ${JSON.stringify(target)}.`;
  const suggestion = suggestClosest(target, targets) ?? suggestOneOf(target, states);
  return [{ severity: "error", rule: "unknown-target", message, suggestion, path }];
}

function stateFindings(name: string, state: StatewrightState, names: Names): readonly Finding[] {
  const path = ["states", name];
  if (state.outcome !== undefined) {
    const message = `"outcome" is for final states.`;
    const suggestion = 'add "type": "final"';
    return [{ severity: "error", rule: "wrong-type", message, suggestion, path: [...path, "outcome"], what: "key" }];
  }
  const kinds = kindsIn(state);
  const [kind] = kinds;
  if (kind !== undefined) return kindFindings(name, state, kinds, names);
  // A kind whose fields cannot be read is reported where they are.
  if (KIND_NAMES.some((one) => names.has(name, one))) return [];
  const listsTools = names.has(name, "allowed_tools");
  const found = [
    ...(listsTools ? [] : toolFindings(path)),
    ...(listsTools && state.allowed_tools === undefined ? [] : commandFindings(state, path)),
    ...variableFindings(state, path),
  ];
  if (names.isOrchestrated) return [...found, ...orchestratedFindings(state, path)];
  if (state.output_schema !== undefined) {
    const message = "The agent leaves by an event, so it has no output of its own.";
    const suggestion = "send what later states need as data of the event";
    const at = [...path, "output_schema"];
    found.push({ severity: "error", rule: "no-effect", message, suggestion, path: at, what: "key" });
  }
  if (!names.has(name, "on") && !names.has(name, "safe_next")) {
    const message = `${JSON.stringify(name)} can never be left: it has no transitions and is not final.`;
    const suggestion = 'add "on", or "type": "final" if the run ends here';
    found.push({ severity: "error", rule: "dead-end", message, suggestion, path, what: "key" });
  }
  if (state.on !== undefined && Object.hasOwn(state.on, ANY_EVENT))
    found.push(
      reservedName([...path, "on", ANY_EVENT], "it would stand for every event, which is what safe_next is for"),
    );
  for (const edge of edgesOf(name, state)) found.push(...edgeFindings(edge, names));
  return found;
}

/** What a state may have beside the fields of its kind. */
const BESIDE_KIND: ReadonlySet<string> = new Set(["type", "on"]);

/** A state that runs no agent: it has one kind, no fields of agents, and is left by the events of its kind. */
function kindFindings(
  name: string,
  state: StatewrightState,
  kinds: readonly KindState[],
  names: Names,
): readonly Finding[] {
  const path = ["states", name];
  const [given, ...others] = kinds;
  if (given === undefined) return [];
  const { kind } = given;
  const found: Finding[] = [];
  const about = (at: DocumentPath, rule: string, message: string, suggestion?: string): void => {
    found.push({ severity: "error", rule, message, suggestion, path: at, what: "key" });
  };
  for (const other of others)
    about(
      [...path, other.kind],
      "two-kinds",
      `${JSON.stringify(name)} has both "${kind}" and "${other.kind}", and a state is of one kind.`,
      "split it into two states",
    );
  const all: readonly string[] = kinds.map((one) => one.kind);
  for (const field of Object.keys(state))
    if (!BESIDE_KIND.has(field) && !all.includes(field))
      about(
        [...path, field],
        "unknown-key",
        `${JSON.stringify(field)} is for states of agents, and ${KIND_WORDS[kind]} has none.`,
      );
  if (names.isOrchestrated) return [...found, ...orchestratedFindings(state, path)];
  const events: readonly string[] = eventsOfKind(kind);
  for (const event of Object.keys(state.on ?? {})) {
    if (events.includes(event)) continue;
    const message = `${JSON.stringify(event)} can never happen: ${KIND_WORDS[kind]} is left by ${listed(events)} alone.`;
    about([...path, "on", event], "unknown-event", message, suggestClosest(event, events));
  }
  if (kind === "router")
    for (const target of routerTargets(given.fields))
      found.push(...targetFindings(target.name, [...path, kind, ...target.path], names));
  else if (!names.has(name, "on"))
    about(
      path,
      "dead-end",
      `${JSON.stringify(name)} can never be left: it has no transitions.`,
      'add "on": { "success": … }',
    );
  else if (state.on !== undefined && !Object.hasOwn(state.on, "success"))
    about(
      [...path, "on"],
      "dead-end",
      `${JSON.stringify(name)} has no transition for "success", so a run fails where the state succeeds.`,
      'add "success": …',
    );
  for (const edge of edgesOf(name, state)) found.push(...edgeFindings(edge, names));
  return found;
}

function listed(words: readonly string[]): string {
  return words.map((word) => JSON.stringify(word)).join(" or ");
}

/** Transitions of a state whose orchestrator chooses what follows it. */
function orchestratedFindings(state: StatewrightState, path: DocumentPath): readonly Finding[] {
  const found = (["on", "safe_next"] as const).flatMap((field): readonly Finding[] => {
    if (state[field] === undefined) return [];
    const message = `The orchestrator chooses what follows this state, so ${JSON.stringify(field)} has no effect.`;
    const suggestion = 'remove it, or remove "orchestrator"';
    return [{ severity: "error", rule: "no-effect", message, suggestion, path: [...path, field], what: "key" }];
  });
  if (state.output_schema?.type === undefined || state.output_schema.type === "object") return found;
  const at = [...path, "output_schema", "type"];
  return [
    ...found,
    { severity: "error", rule: "wrong-type", message: "The output of an agent must be an object.", path: at },
  ];
}

const DEFINE_GUARD = 'define it under "guards", as in { field: tests, op: eq, value: pass }, and write its name here';

function edgeFindings(edge: Edge, names: Names): readonly Finding[] {
  const found: Finding[] = [];
  for (const { target, path, mayReturn } of edge.targets) found.push(...targetFindings(target, path, names, mayReturn));
  for (const { name, path } of edge.guards) {
    if (names.guards.includes(name)) continue;
    const message = `There is no guard ${JSON.stringify(name)}.`;
    const suggestion = suggestClosest(name, names.guards) ?? DEFINE_GUARD;
    found.push({ severity: "error", rule: "unknown-guard", message, suggestion, path });
  }
  if (edge.unusedMessage) {
    const message = "The approval message is never shown, since the transition does not ask for approval.";
    const suggestion = "set requires_approval to true";
    const path = [...edge.path, "approval_message"];
    found.push({ severity: "warning", rule: "approval-message", message, suggestion, path, what: "key" });
  }
  return found;
}

function toolFindings(path: DocumentPath): readonly Finding[] {
  const message = "This state lists no tools, so the session's mode decides every tool call.";
  const suggestion = 'write "allowed_tools", with [] for none';
  return [{ severity: "warning", rule: "no-envelope", message, suggestion, path, what: "key" }];
}

function commandFindings(
  { allowed_commands, allowed_tools }: StatewrightState,
  path: DocumentPath,
): readonly Finding[] {
  if (allowed_commands === undefined) return [];
  const here = [...path, "allowed_commands"];
  const found = allowed_commands.flatMap((command, index): readonly Finding[] => {
    if (command.trim() === "") {
      const message = "A command is blank. As a pattern it would allow every command.";
      const suggestion = "remove it";
      return [{ severity: "error", rule: "tool-pattern", message, suggestion, path: [...here, index] }];
    }
    const offset = command.indexOf("{{");
    if (offset < 0) return [];
    const message = "A command cannot hold a template: its value would be read as shell text.";
    const suggestion = 'pass the value in a variable, which programs read as $NAME: "env_overrides": { "NAME": "…" }';
    return [
      {
        severity: "error",
        rule: "template-in-command",
        message,
        suggestion,
        path: [...here, index],
        offset,
        length: 2,
      },
    ];
  });
  const other = allowed_tools?.find((tool) => tool !== "Bash" && allowsBash(tool));
  if (other === undefined && allowed_tools?.includes("Bash") === true) return found;
  const message =
    other === undefined
      ? "allowed_commands limits nothing, since allowed_tools does not list Bash."
      : `allowed_commands and ${JSON.stringify(other)} in allowed_tools both say which commands may run.`;
  const suggestion =
    other === undefined ? 'add "Bash" to allowed_tools, or remove allowed_commands' : "use one of the two";
  // Without a list of tools the session's mode may allow every command.
  const severity = allowed_tools === undefined || other !== undefined ? "error" : "warning";
  return [...found, { severity, rule: "commands-without-tools", message, suggestion, path: here, what: "key" }];
}

/** Whether a pattern is one for Bash, by its name or by a `*` in it. One that cannot be read is reported elsewhere. */
function allowsBash(tool: string): boolean {
  const reading = readPattern(tool);
  return reading.ok && matchesName(reading.value, "Bash");
}

function variableFindings({ env_overrides = {} }: StatewrightState, path: DocumentPath): readonly Finding[] {
  return Object.entries(env_overrides).flatMap(([name, value]): readonly Finding[] => {
    const offset = typeof value === "string" ? value.indexOf("{{") : -1;
    if (offset < 0) return [];
    const message = "The value of a variable holds no template: it is passed on as it is written.";
    const here = [...path, "env_overrides", name];
    return [{ severity: "error", rule: "template-in-command", message, path: here, offset, length: 2 }];
  });
}

/** What a final state may have. Everything else would be for a body, which it has not. */
const FINAL_FIELDS: ReadonlySet<string> = new Set(["type", "outcome"]);

/** A state that ends a branch ends no run, so its outcome is not in doubt. */
function finalFindings(name: string, state: StatewrightState, isTerminal: boolean): readonly Finding[] {
  const path = ["states", name];
  const found = Object.keys(state).flatMap((key): readonly Finding[] => {
    if (FINAL_FIELDS.has(key)) return [];
    const message = `${JSON.stringify(name)} is final, so its ${JSON.stringify(key)} has no effect.`;
    return [{ severity: "warning", rule: "final-body", message, path: [...path, key], what: "key" }];
  });
  if (isTerminal || isPlainEnd(name, state.outcome)) return found;
  const message = `A run that ends in ${JSON.stringify(name)} counts as completed.`;
  const suggestion = 'write "outcome": "completed", "failed" or "cancelled"';
  return [...found, { severity: "warning", rule: "final-outcome", message, suggestion, path, what: "key" }];
}

const NUMERIC: ReadonlySet<string> = new Set(["gt", "gte", "lt", "lte"]);

function operandFindings({ op, value }: StatewrightGuard, path: DocumentPath): readonly Finding[] {
  const finding = (message: string, at: DocumentPath): readonly Finding[] => [
    { severity: "error", rule: "guard-operand", message, path: at },
  ];
  const here = [...path, "value"];
  if (op === "exists" || op === "not_exists")
    return value === undefined ? [] : finding(`"${op}" compares with nothing, so it has no "value".`, here);
  if (value === undefined) return finding(`"${op}" needs a "value" to compare with.`, [...path, "op"]);
  if (NUMERIC.has(op) && typeof value !== "number")
    return finding(`"${op}" compares numbers, and this is ${valueWord(value)}.`, here);
  if (op === "in" && !Array.isArray(value))
    return finding(`"in" needs a list of values, and this is ${valueWord(value)}.`, here);
  if (op === "contains" && value === null)
    return finding(`"contains" looks for a text or an element, and this is null.`, here);
  return [];
}

function valueWord(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return typeof value === "string" ? "a text" : typeof value === "object" ? "an object" : `a ${typeof value}`;
}
