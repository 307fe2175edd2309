// The pipeline in which a model writes a pipeline: one stage, whose result is checked before it counts.

import { done, field, isJson, type Json, type Pipeline, pipeline, stage } from "@sluice/core";
import { shortened } from "@sluice/core/runtime";
import { durationText } from "@sluice/stages/runtime";
import { runInput } from "../format.ts";
import { renderText } from "../report/text.ts";
import type { AuthoredRules } from "./allow.ts";
import { checkDocument } from "./check-document.ts";

/** The tool with which the model submits its document. */
const CREATE_PIPELINE = "create_pipeline";
/** Characters of a rejected document that its next author reads. */
const LONGEST_DOCUMENT = 24_000;
/** Diagnostics that it reads. */
const MOST_DIAGNOSTICS = 20;

export interface DesignOptions {
  readonly id: string;
  readonly rules: AuthoredRules;
  readonly tools: readonly string[];
  readonly tries: number;
  readonly turnCap: number;
  readonly model?: string;
}

/** Its input has the `task`, `now` and the names of the session's `tools`; its output is the document. */
export function designPipeline({ id, rules, tools, tries, turnCap, model }: DesignOptions): Pipeline<never, unknown> {
  const scopeOf = (input: unknown) => {
    const json = isJson(input) ? input : null;
    const named = field(json, "tools");
    const now = field(json, "now");
    return {
      rules,
      tools: Array.isArray(named) ? named.map(String) : [],
      now: typeof now === "number" ? now : 0,
    };
  };
  const design = stage({
    prompt: promptOf(rules),
    allowedTools: [...tools],
    completionTool: CREATE_PIPELINE,
    completionSchema: {
      type: "object",
      properties: { document: { type: "object", description: "The pipeline." } },
      required: ["document"],
      additionalProperties: false,
    },
    turnCap,
    retryPolicy: { maxAttempts: tries },
    ...(model === undefined ? {} : { model }),
    assert: (result, ctx) => {
      if (result.status !== "completed") return "ok";
      const document = documentIn(result.output);
      const checked = checkDocument(document, scopeOf(ctx.run.input));
      if (checked.spec !== undefined) return "ok";
      const shown = checked.diagnostics.slice(0, MOST_DIAGNOSTICS);
      const more = checked.diagnostics.length - shown.length;
      const others = more > 0 ? `\nand ${more} more` : "";
      const text = shortened(checked.text, LONGEST_DOCUMENT);
      return {
        retry: `The pipeline cannot run:\n${renderText(shown, () => checked.text)}${others}\n\nIt was:\n${text}`,
      };
    },
  });
  return pipeline({
    id,
    input: runInput,
    stages: { design },
    initial: "design",
    next: { design: ({ output }) => done(documentIn(output)) },
  });
}

/** The document in the arguments of the tool. */
function documentIn(output: unknown): Json {
  return isJson(output) ? (field(output, "document") ?? null) : null;
}

function promptOf(rules: AuthoredRules): string {
  const { kinds, tools, commands, pipelines, models, maxStates, floorMs } = rules;
  const least = durationText(floorMs);
  const list = (items: readonly string[]): string => (items.length === 0 ? "none" : items.join(", "));
  const kindLines = [
    kinds.has("agent") &&
      `An agent: { "allowed_tools": [...], "instructions": "...", "on": { "EVENT": "next_state" } }. The agent works until it sends one of the events. Its data is merged into the context, which later states read as \\{{ctx.context.field}}. allowed_tools is required; [] is none.`,
    kinds.has("human") &&
      `A question: { "human": { "question": "...", "answer": { JSON Schema }, "deadline": "5d" }, "on": { "success": "...", "failure": "..." } }. The output is the answer. A deadline is at least ${least}.`,
    kinds.has("timer") &&
      `A timer: { "timer": { "for": "1h" }, "on": { "success": "..." } }, or "until" with an ISO time. At least ${least}.`,
    kinds.has("router") &&
      `A router: { "router": { "targets": ["a", "b"], "prompt": "...", "fallback": "b" } }. A model chooses the next state.`,
    kinds.has("script") &&
      `A script: { "script": { "command": ["program", "argument"], "timeout": "5m" }, "on": { "success": "...", "failure": "..." } }. The output is { exitCode, stdout, stderr, parsed }.`,
    kinds.has("poll") &&
      `A poll: { "poll": { "command": [...], "every": "1h", "not_yet_codes": [1], "max_attempts": 9 }, "on": { "success": "...", "failure": "..." } }. At least ${least} between two attempts.`,
    kinds.has("pipeline") &&
      `Another pipeline: { "pipeline": { "workflow": "name" }, "on": { "success": "...", "failure": "..." } }.`,
    `An end: { "type": "final", "outcome": "completed" }. failed and cancelled exist without being defined.`,
  ].filter((line) => line !== false);
  return `You design a pipeline: a state machine that does a task. You do not do the task yourself. Submit the pipeline with ${CREATE_PIPELINE}; it is checked, and what is wrong with it is returned to you.

The task of the pipeline:
{{ctx.run.input.brief}}

The document is a JSON object: { "id": "short-name", "initial": "first_state", "context": {}, "states": { "name": state }, "guards": { "name": guard } }.

A state is one of:
${kindLines.map((line) => `- ${line}`).join("\n")}

The value of an event is a state's name, or { "target": "...", "guard": "name", "requires_approval": true }, or a list of these, of which the first whose guard holds is taken. A guard is { "field": "score", "op": "gte", "value": 3 } and reads a field of the context; after a state without an agent, it may read "output.field". Operators: eq, neq, gt, gte, lt, lte, in, contains, exists, not_exists.

Outputs of earlier states are \\{{ctx.upstream.state_name.field}} in instructions and questions. \\{{ctx.task}} is the task. The run has to be able to reach a completed end, and every state needs a way out.

Allowed:
- Tools: ${list(tools)}
- Commands that begin with: ${list(commands.map((words) => JSON.stringify(words)))}
- Pipelines: ${list([...pipelines.keys()])}
- Models: ${models.length === 0 ? "leave model out" : list(models)}
- At most ${maxStates} states.

Give each agent only the tools that it needs. Let a person approve what cannot be undone.`;
}
