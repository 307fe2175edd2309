// A pipeline that a model wrote, in words for the person who decides whether it runs.

import type { Guard, Json, JsonObject, PipelineSpec, StateSpec } from "@sluice/core";
import { shortened, visible } from "@sluice/core/runtime";
import { durationText } from "@sluice/stages/runtime";
import { nameOf } from "../check/finding.ts";
import { type Move, moveTable, moveWords } from "../check/moves.ts";
import { kindOfState, writeKind } from "../kinds/write.ts";

/** Characters of a text that the model wrote. What a state may do is never cut. */
const LONGEST_TEXT = 160;

/** What it may use comes first; then its states, with what each does and where it leads. */
export function pipelineWords(spec: PipelineSpec): string {
  const states = [...spec.states].filter(([, { final }]) => final === undefined);
  const tools = unique(states.flatMap(([, { allowedTools = [] }]) => allowedTools.map(String)));
  const commands = unique(states.flatMap(([, state]) => commandOf(state)));
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
      const to = move.shape.kind === "to" ? named(nameOf(spec, move.shape.state)) : move.shape.kind;
      const condition = move.row.when === undefined ? "" : ` if ${conditionOf(move.row.when)}`;
      const approval = move.row.approval === undefined ? "" : ", with approval";
      return `    ${wayOf(move)}${condition} -> ${to}${approval}`;
    });
    return [`- ${named(nameOf(spec, id))}: ${doing(state)}`, ...ways].join("\n");
  });
  const ends = [...spec.states].flatMap(([id, { final }]) =>
    final === undefined ? [] : [`${named(nameOf(spec, id))} (${final.outcome})`],
  );
  return [
    `A model wrote the pipeline ${JSON.stringify(spec.id)}. It starts in ${named(nameOf(spec, spec.initial))}.`,
    `Tools without asking: ${tools.length === 0 ? "none" : tools.map(visible).join(", ")}`,
    `Commands: ${commands.length === 0 ? "none" : commands.join("; ")}`,
    ...(caps.length === 0 ? [] : [`At most: ${caps.join(", ")}`]),
    // Templates of inputs, questions and commands may read it.
    ...(Object.keys(spec.context).length === 0 ? [] : [`Context at the start: ${inFull(spec.context)}`]),
    `States:\n${lines.join("\n")}`,
    `Ends: ${ends.join(", ")}`,
  ].join("\n");
}

/** What leads to a move: what the document calls it, unless a model chooses. */
function wayOf(move: Move): string {
  const words = moveWords(move);
  return move.row.label === undefined || move.index < 0 ? words : named(words);
}

/** A condition, also where its text is cut. */
function conditionOf({ text, source }: Guard): string {
  return source === undefined || !text.includes("…") ? whole(text) : `${whole(text)}, in full: ${whole(source)}`;
}

/** What a state does. */
function doing(state: StateSpec): string {
  const { parts = {}, allowedTools = [] } = state;
  const kind = kindOfState(state);
  if (kind === undefined) {
    const { prompt, model } = parts;
    const by = typeof model === "string" ? `, by the model ${named(model)}` : "";
    const text = typeof prompt === "object" && "data" in prompt ? textOf(prompt.data) : "";
    return `an agent with ${allowedTools.length === 0 ? "no tools" : allowedTools.map(String).map(visible).join(", ")}${by}: ${shown(text)}`;
  }
  const fields = writeKind(kind, state, { states: new Map(), references: new Map() });
  switch (kind) {
    case "script":
      return `runs ${commandOf(state).join("; ")}${otherFields(fields, "command", "stdin", "sandbox")}`;
    case "poll": {
      const more = otherFields(fields, "command", "stdin", "sandbox", "every");
      return `runs ${commandOf(state).join("; ")} every ${textOf(fields.every)}${more}`;
    }
    case "timer":
      return fields.for === undefined ? `sleeps until ${textOf(fields.until)}` : `sleeps for ${textOf(fields.for)}`;
    case "human":
      return `asks a person: ${shown(textOf(fields.question))}${otherFields(fields, "question")}`;
    case "pipeline": {
      const input = fields.input === undefined ? "" : ` with the input ${inFull(fields.input)}`;
      return `runs the pipeline ${visible(textOf(fields.workflow))}${input}`;
    }
    case "router":
      return `lets a model choose: ${shown(textOf(fields.prompt))}${otherFields(fields, "prompt", "targets")}`;
  }
}

/** The fields of a state as its document has them, besides those that were said. */
function otherFields(fields: JsonObject, ...said: readonly string[]): string {
  const others = Object.entries(fields).filter(([name]) => !said.includes(name));
  if (others.length === 0) return "";
  return ` (${others.map(([name, value]) => `${name}: ${inFull(value)}`).join("; ")})`;
}

/** The command of a state as a list of its words; [] for a state without one. */
function commandOf(state: StateSpec): readonly string[] {
  const kind = kindOfState(state);
  if (kind !== "script" && kind !== "poll") return [];
  const { command, stdin } = writeKind(kind, state, { states: new Map(), references: new Map() });
  const input = stdin === undefined ? "" : `, which reads ${JSON.stringify(stdin)}`;
  return [whole(`${JSON.stringify(command ?? [])}${input}`)];
}

/** A text or a number that a field holds. */
function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? "");
}

function unique(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)];
}

function shown(text: string): string {
  return shortened(visible(text.replaceAll(/\s+/gu, " ").trim()), LONGEST_TEXT);
}

/** A text in one line, of which nothing is left out or looks like something else. */
function whole(text: string): string {
  const blanks = text.replaceAll(/[^\S ]/gu, (blank) => `\\u${blank.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return visible(blanks);
}

function inFull(value: Json): string {
  return whole(JSON.stringify(value));
}

/** A name, in quotes if it could be read as words about it. */
function named(name: string): string {
  return /^[\w.-]+(?:\[\d+\])?$/u.test(name) ? name : whole(JSON.stringify(name));
}
