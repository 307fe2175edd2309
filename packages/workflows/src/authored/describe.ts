// A pipeline that a model wrote, in words for the person who decides whether it runs. What the model wrote is in quotes or other JSON.
// All other words are Sluice's, so that no name and no text reads as a condition, an approval or a setting.

import type { Guard, Json, JsonObject, PipelineSpec, StateSpec } from "@sluice/core";
import { createReport, shortened, visibleJson } from "@sluice/core/runtime";
import { parseDuration } from "@sluice/stages";
import { durationText, readPointInTime } from "@sluice/stages/runtime";
import { nameOf } from "../check/finding.ts";
import { ANY_EVENT, type Move, moveTable, moveWords } from "../check/moves.ts";
import { comparisonWords, conditionsOf } from "../expressions/guard.ts";
import { kindOfState, type WrittenNames, writeKind } from "../kinds/write.ts";
import { writeState } from "../statewright/write-state.ts";

/** Characters of a text that the model wrote. What a state may do is never cut. */
const LONGEST_TEXT = 160;

/** What it may use comes first; then its states, with what each does and where it leads. */
export function pipelineWords(spec: PipelineSpec): string {
  const states = [...spec.states].filter(([, { final }]) => final === undefined);
  const names: WrittenNames = {
    states: new Map([...spec.states.keys()].map((id) => [id, nameOf(spec, id)])),
    references: new Map(),
  };
  const quotedName = (id: string): string => visibleJson(nameOf(spec, id));
  const tools = [...new Set(states.flatMap(([, state]) => toolsOf(state)))];
  const commands = [...new Set(states.flatMap(([, state]) => commandOf(state, names)))];
  const { maxHops, maxVisits, maxTokens, maxCostUsd, timeoutMs } = spec.limits;
  const caps = [
    ...(maxHops === undefined ? [] : [`${maxHops} transitions`]),
    ...(maxVisits === undefined ? [] : [`${maxVisits} visits of a state`]),
    ...(maxTokens === undefined ? [] : [`${maxTokens} tokens`]),
    ...(maxCostUsd === undefined ? [] : [`$${maxCostUsd}`]),
    ...(timeoutMs === undefined ? [] : [`${durationText(timeoutMs)} of working time`]),
  ];
  const table = moveTable(spec);
  const lines = states.map(([id, state]) => {
    const ways = table.of(id).map((move) => {
      const to = move.shape.kind === "to" ? quotedName(move.shape.state) : move.shape.kind;
      const condition = move.row.when === undefined ? "" : ` if ${conditionOf(move.row.when)}`;
      const approval = move.row.approval === undefined ? "" : ", with approval";
      return `    ${wayOf(move)}${condition} -> ${to}${approval}`;
    });
    return [`- ${quotedName(id)}: ${doing(id, state, names)}`, ...ways].join("\n");
  });
  const ends = [...spec.states].flatMap(([id, { final }]) =>
    final === undefined ? [] : [`${quotedName(id)} (${final.outcome})`],
  );
  return [
    `A model wrote the pipeline ${visibleJson(spec.id)}. It starts in ${quotedName(spec.initial)}.`,
    `Tools without asking: ${tools.length === 0 ? "none" : tools.join(", ")}`,
    `Commands: ${commands.length === 0 ? "none" : commands.join("; ")}`,
    ...(caps.length === 0 ? [] : [`At most: ${caps.join(", ")}`]),
    // Templates of inputs, questions and commands may read it.
    ...(Object.keys(spec.context).length === 0 ? [] : [`Context at the start: ${visibleJson(spec.context)}`]),
    `States:\n${lines.join("\n")}`,
    `Ends: ${ends.join(", ")}`,
  ].join("\n");
}

/** What leads to a move: the event of an agent, or a field of the document. A place in a list stands behind either. */
function wayOf(move: Move): string {
  const { on, label = "" } = move.row;
  if (move.index < 0 || typeof on === "string" || on.event === ANY_EVENT) return moveWords(move);
  return `${visibleJson(on.event)}${label.slice(on.event.length)}`;
}

/** The conditions of a guard in full. A field that is not of the context is one of the state's own output. */
function conditionOf(guard: Guard): string {
  const { conditions = [] } = conditionsOf(guard) ?? {};
  const each = conditions.map(({ name = "", field, op, value = null, reads }) => {
    const path = /^[\w.-]+$/u.test(field) ? field : visibleJson(field);
    const whole = reads === "result" ? path : `context.${path}`;
    return `${visibleJson(name)} (${whole} ${comparisonWords(op, visibleJson(value))})`;
  });
  return each.join(" and ");
}

/** What a state does. */
function doing(id: string, state: StateSpec, names: WrittenNames): string {
  const kind = kindOfState(state);
  if (kind === undefined) {
    const named = { id, name: names.states.get(id) ?? id, state };
    const fields = writeState(createReport(), id, named, names);
    const tools = toolsOf(state);
    const settings = otherFields(fields, "allowed_tools", "instructions");
    return `an agent with ${tools.length === 0 ? "no tools" : tools.join(", ")}: ${textOf(fields.instructions)}${settings}`;
  }
  const fields = writeKind(kind, state, names);
  switch (kind) {
    case "script":
    case "poll":
      return `runs ${commandOf(state, names).join("; ")}${otherFields(fields, "command", "stdin", "sandbox")}`;
    case "timer": {
      const [length, until] = [parseDuration(fields.for), readPointInTime(fields.until)];
      if (length.ok) return `sleeps for ${durationText(length.ms)}`;
      return `sleeps until ${until.ok ? new Date(until.at).toISOString() : textOf(fields.until)}`;
    }
    case "human":
      return `asks a person: ${textOf(fields.question)}${otherFields(fields, "question")}`;
    case "pipeline": {
      const { workflow = "", input } = fields;
      return `runs the pipeline ${visibleJson(workflow)}${input === undefined ? "" : ` with the input ${visibleJson(input)}`}`;
    }
    case "router":
      return `lets a model choose: ${textOf(fields.prompt)}${otherFields(fields, "prompt", "targets")}`;
  }
}

/** The fields of a state as its document has them, besides those that were said. */
function otherFields(fields: JsonObject, ...said: readonly string[]): string {
  const others = Object.entries(fields).filter(([name]) => !said.includes(name));
  if (others.length === 0) return "";
  return ` (${others.map(([name, value]) => `${name}: ${visibleJson(value)}`).join("; ")})`;
}

function toolsOf({ allowedTools = [] }: StateSpec): readonly string[] {
  return allowedTools.map((tool) => visibleJson(typeof tool === "string" ? tool : tool.tool));
}

/** The command of a state as a list of its words; [] for a state without one. */
function commandOf(state: StateSpec, names: WrittenNames): readonly string[] {
  const kind = kindOfState(state);
  if (kind !== "script" && kind !== "poll") return [];
  const { command = [], stdin } = writeKind(kind, state, names);
  const input = stdin === undefined ? "" : `, which reads ${visibleJson(stdin)}`;
  return [`${visibleJson(command)}${input}`];
}

/** The beginning of a text, in one line. */
function textOf(value: Json = ""): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return visibleJson(shortened(text.replaceAll(/\s+/gu, " ").trim(), LONGEST_TEXT));
}
