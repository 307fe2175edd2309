import { ownJson } from "../base/clone-json.ts";
import type { Json, JsonObject } from "../base/json.ts";
import { readChoiceShape, type SiblingShape } from "../definition/choice.ts";
import type { PipelineSpec } from "../definition/spec.ts";
import type { Issue } from "../schema/schema.ts";

/** A choice that can be followed: its states exist, its inputs fit them, and all of it is JSON, since it is journaled. */
export type ResolvedChoice =
  | { readonly kind: "to"; readonly state: string; readonly input: Json; readonly context?: JsonObject }
  | {
      readonly kind: "fanOut";
      /** In declared order, each state once. */
      readonly siblings: readonly ResolvedSibling[];
      readonly join: string;
      readonly input: Json;
      readonly onFailure: "cancel" | "settle";
    }
  | { readonly kind: "done"; readonly output: Json }
  | { readonly kind: "fail"; readonly reason: string }
  | { readonly kind: "cancel"; readonly reason: string };
export type ResolvedSibling = { readonly state: string; readonly input: Json };
export type ChoiceReading =
  | { readonly ok: true; readonly choice: ResolvedChoice }
  | { readonly ok: false; readonly reason: string };

/**
 * Turns whatever a route returned into a choice that can be followed, or says why it is none. `output` is what an empty
 * `stages` list ends the run with.
 */
export async function resolveChoice(value: unknown, spec: PipelineSpec, output: Json): Promise<ChoiceReading> {
  const reading = readChoiceShape(value, spec.states, output);
  if (!reading.ok) return { ok: false, reason: reading.reason };
  const { shape } = reading;
  try {
    switch (shape.kind) {
      case "to": {
        const input = await inputFor(spec, shape);
        const patch = shape.context === undefined ? {} : { context: shape.context };
        return { ok: true, choice: { kind: "to", state: shape.state, input, ...patch } };
      }
      case "fanOut": {
        const siblings: ResolvedSibling[] = [];
        for (const sibling of shape.siblings)
          siblings.push({ state: sibling.state, input: await inputFor(spec, sibling) });
        const { join, onFailure } = shape;
        const input = await inputFor(spec, { state: join, input: shape.input });
        return { ok: true, choice: { kind: "fanOut", siblings, join, input, onFailure } };
      }
      case "done":
        return { ok: true, choice: { kind: "done", output: jsonOrRefuse(shape.output, "the output") } };
      case "fail":
      case "cancel":
        return { ok: true, choice: { kind: shape.kind, reason: shape.reason } };
    }
  } catch (thrown) {
    if (thrown instanceof Refusal) return { ok: false, reason: thrown.message };
    throw thrown;
  }
}

/** Why a payload does not fit; never leaves this file. */
class Refusal extends Error {}

async function inputFor(spec: PipelineSpec, { state, input }: SiblingShape): Promise<Json> {
  const schema = spec.states.get(state)?.inputSchema;
  if (schema === undefined) return jsonOrRefuse(input, `the input of ${state}`);
  const verdict = await schema.check(input);
  if (!verdict.ok)
    throw new Refusal(`the input of ${state} does not fit its inputSchema: ${issuesText(verdict.issues)}`);
  return jsonOrRefuse(verdict.value, `the input of ${state}`);
}

function jsonOrRefuse(value: unknown, what: string): Json {
  const own = ownJson(value);
  if (!own.ok) throw new Refusal(`${what} is not JSON: ${own.fault}`);
  return own.value;
}

function issuesText(issues: readonly Issue[]): string {
  return issues.map(({ path, message }) => `${path} ${message}`).join("; ");
}
