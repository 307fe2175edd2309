// The functions that define the states of each kind, with the options that files give them.

import { type AnyState, isJsonObject, type Json, state } from "@sluice/core";
import { toJsonValue } from "@sluice/core/runtime";
import { human, router, subPipeline, timer } from "@sluice/stages";
import type { KindState } from "./fields.ts";

/** How a format writes templates and names. */
export interface KindNames {
  /** The text with its templates as those of a state. */
  template(text: string): string;
  /** The id of a state. */
  stateId(name: string): string | undefined;
  /** The key of a workflow that the file invokes. */
  pipelineKey(name: string): string;
}

/** The state that the fields of a file define. */
export function makeState(given: KindState, names: KindNames): AnyState {
  const { template } = names;
  switch (given.kind) {
    case "timer": {
      const { for: length, until } = given.fields;
      if (length !== undefined) return timer({ for: length });
      return timer({ until: typeof until === "string" ? template(until) : (until ?? 0) });
    }
    case "human": {
      const { question, answer = TEXT, deadline, on_deadline } = given.fields;
      return human({
        question: template(question),
        answer,
        ...(deadline === undefined ? {} : { deadline }),
        ...(on_deadline === undefined ? {} : { onDeadline: on_deadline }),
      });
    }
    case "pipeline": {
      const { workflow, input = {} } = given.fields;
      return subPipeline({
        pipeline: names.pipelineKey(workflow),
        input: mapTexts({ task: "{{ctx.task}}", ...input }, template),
      });
    }
    case "router": {
      const { targets, prompt, model, fallback, tries } = given.fields;
      const named = typeof fallback === "string" ? { to: fallback } : fallback;
      const input = named !== undefined && "input" in named && named.input !== undefined ? { input: named.input } : {};
      const idOf = (name: string): string => names.stateId(name) ?? name;
      return router({
        targets: targets.map(idOf),
        prompt: template(prompt),
        ...(model === undefined ? {} : { model }),
        ...(tries === undefined ? {} : { tries }),
        ...(named === undefined ? {} : { fallback: { to: idOf(named.to), ...input } }),
      });
    }
    default: {
      const { kind, fields } = given;
      const options = toJsonValue(fields);
      const mapped = options.ok && isJsonObject(options.value) ? mapTexts(options.value, template) : {};
      return state({ kind, options: isJsonObject(mapped) ? mapped : {}, output: { type: "object" } });
    }
  }
}

/** The answer to a question that says nothing of it. */
const TEXT = { type: "string", minLength: 1 } as const;

/** A value with its texts changed. */
function mapTexts(value: Json, change: (text: string) => string): Json {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((entry: Json) => mapTexts(entry, change));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, mapTexts(entry, change)]));
}
