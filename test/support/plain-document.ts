import { isJsonObject, type Json, type JsonObject } from "@sluice/core";

/**
 * A Statewright document in the form in which `writeStatewright` writes it: one spelling for each field, no field that says what is so
 * without it, and nothing that a pipeline does not keep. Names of branches and interrupts are ids in it.
 */
export function plainDocument(document: JsonObject, idOf: (name: string) => string): JsonObject {
  const states = entries(document.states, (name, state) => [name, plainState(name, record(state), idOf)]);
  const named = new Set(namesIn(states));
  const used = Object.entries(record(document.guards)).filter(([name]) => named.has(name));
  const { danger_level, capture_output } = record(document.meta);
  return without({
    id: idOf(String(document.id)),
    initial: document.initial,
    context: filled(document.context),
    states,
    guards: filled(Object.fromEntries(used)),
    interrupts: filled(entries(document.interrupts, (name, interrupt) => [idOf(name), interrupt])),
    properties: document.properties,
    meta: filled(without({ danger_level, capture_output })),
  });
}

type Member = Json | undefined;

function plainState(name: string, state: JsonObject, idOf: (name: string) => string): JsonObject {
  if (state.type === "final") {
    const plain = name === "failed" ? "failed" : "completed";
    return { type: "final", outcome: state.outcome ?? plain };
  }
  const {
    allowed_commands,
    maxFilesPerState,
    deny_env,
    instructions,
    turn_cap,
    env_overrides,
    on,
    safe_next,
    ...same
  } = state;
  const commands = Array.isArray(allowed_commands)
    ? allowed_commands.map((one) => commandPattern(String(one)))
    : undefined;
  const tools = Array.isArray(state.allowed_tools) ? state.allowed_tools : undefined;
  const isPlain = instructions === "" || instructions === "Do the work of this phase, then leave it.";
  return without({
    ...same,
    allowed_tools: tools?.flatMap((tool: Json) => (tool === "Bash" && commands !== undefined ? commands : [tool])),
    instructions: isPlain
      ? undefined
      : instructions === undefined
        ? undefined
        : String(instructions).replace(" {{input.", " {{ctx.input."),
    turn_cap: turn_cap === 50 ? undefined : turn_cap,
    max_files_per_state: maxFilesPerState,
    blocked_env: deny_env,
    env_overrides:
      env_overrides === undefined ? undefined : entries(env_overrides, (key, value) => [key, String(value)]),
    on: entries(on, (event, transition) => [event, plainTransition(transition, idOf)]),
    safe_next: safe_next === undefined ? undefined : plainTransition(safe_next, idOf),
  });
}

function commandPattern(command: string): string {
  const words = command.trim();
  return /(?:^| )\*$/u.test(words) ? `Bash(${words})` : `Bash(${words} *)`;
}

function plainTransition(transition: Json, idOf: (name: string) => string): Json {
  if (Array.isArray(transition)) return transition.map((entry: Json) => plainEdge(record(entry), idOf));
  if (!isJsonObject(transition)) return transition;
  const edge = plainEdge(transition, idOf);
  return Object.keys(edge).join() === "target" ? (edge.target ?? "") : edge;
}

function plainEdge(edge: JsonObject, idOf: (name: string) => string): JsonObject {
  const { guard, guards, requires_approval, approval_message, fork, ...same } = edge;
  const all = [...(guard === undefined ? [] : [guard]), ...(Array.isArray(guards) ? guards : [])];
  const { branches, ...rest } = record(fork);
  const asks = requires_approval === true;
  return without({
    ...same,
    fork:
      fork === undefined ? undefined : { ...rest, branches: entries(branches, (key, branch) => [idOf(key), branch]) },
    guard: all.length === 1 ? all[0] : undefined,
    guards: all.length > 1 ? all : undefined,
    requires_approval: asks ? true : undefined,
    approval_message: asks ? approval_message : undefined,
  });
}

/** The guards that transitions name. */
function namesIn(value: Member): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(namesIn);
  if (!isJsonObject(value)) return [];
  const own = [value.guard, ...(Array.isArray(value.guards) ? value.guards : [])].filter(
    (name) => typeof name === "string",
  );
  return [...own, ...Object.values(value).flatMap(namesIn)];
}

function record(value: Member): JsonObject {
  return isJsonObject(value) ? value : {};
}
function entries(value: Member, entry: (key: string, value: Json) => readonly [string, Json]): JsonObject {
  return Object.fromEntries(Object.entries(record(value)).map(([key, member]) => entry(key, member)));
}
function filled(value: Member): Member {
  return Object.keys(record(value)).length === 0 ? undefined : value;
}
function without(fields: Readonly<Record<string, Member>>): JsonObject {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
  );
}
