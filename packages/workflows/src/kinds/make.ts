// The functions that define the states of each kind, with the options that files give them.

import { type AnyState, isJsonObject, type Json } from "@sluice/core";
import { type Duration, human, parseDuration, poll, router, script, subPipeline, timer } from "@sluice/stages";
import { type CommandFields, type KindState, onlyGiven } from "./fields.ts";

/** How a format writes templates and names. */
export interface KindNames {
  /** The text with its templates as those of a state. */
  template(text: string): string;
  /** The id of a state. */
  stateId(name: string): string | undefined;
  /** The key of a workflow that the file invokes. */
  pipelineKey(name: string): string;
}

/** The state that the fields of a file define. Their durations can be read. */
export function makeState(given: KindState, names: KindNames): AnyState {
  const { template } = names;
  switch (given.kind) {
    case "script": {
      const { repeat } = given.fields;
      return script({ ...commandOf(given.fields, template), ...(repeat === undefined ? {} : { repeat }) });
    }
    case "poll": {
      const { every, not_yet_codes, total_timeout, max_attempts } = given.fields;
      return poll({
        ...commandOf(given.fields, template),
        every: durationOf(every),
        ...(not_yet_codes === undefined ? {} : { notYetCodes: not_yet_codes }),
        ...(total_timeout === undefined ? {} : { totalTimeoutMs: durationOf(total_timeout) }),
        ...(max_attempts === undefined ? {} : { maxAttempts: max_attempts }),
      });
    }
    case "timer": {
      const { for: length, until } = given.fields;
      if (length !== undefined) return timer({ for: durationOf(length) });
      return timer({ until: typeof until === "string" ? template(until) : (until ?? 0) });
    }
    case "human": {
      const { question, answer = TEXT_ANSWER, deadline, on_deadline } = given.fields;
      return human({
        question: template(question),
        answer,
        ...(deadline === undefined ? {} : { deadline: durationOf(deadline) }),
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
  }
}

/** What scripts and polls have in common. */
function commandOf(fields: CommandFields, template: KindNames["template"]) {
  const { command, shell, stdin, env, cwd, timeout, success_codes, secrets, sandbox, output } = fields;
  const variables = Object.entries(env ?? {}).map(([name, value]) => [name, template(value)] as const);
  return {
    command: shell === undefined ? (command ?? []).map(template) : { shell },
    ...(stdin === undefined ? {} : { stdin: template(stdin) }),
    ...(env === undefined ? {} : { env: Object.fromEntries(variables) }),
    ...(cwd === undefined ? {} : { cwd }),
    ...(timeout === undefined ? {} : { timeoutMs: durationOf(timeout) }),
    ...(success_codes === undefined ? {} : { successCodes: success_codes }),
    ...(secrets === undefined ? {} : { secrets }),
    ...(sandbox === undefined ? {} : { sandbox: onlyGiven(sandbox) }),
    ...(output === undefined ? {} : { output: { ...output, type: "object" } as const }),
  };
}

/** A duration that was checked, as its author wrote it, which is what the fingerprint covers. */
function durationOf(given: number | string): Duration {
  return isDuration(given) ? given : 0;
}

function isDuration(given: number | string): given is Duration {
  return parseDuration(given).ok;
}

/** The answer to a question that says nothing of it. */
export const TEXT_ANSWER = { type: "string", minLength: 1 } as const;

/** A value with its texts changed. */
function mapTexts(value: Json, change: (text: string) => string): Json {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((entry: Json) => mapTexts(entry, change));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, mapTexts(entry, change)]));
}
