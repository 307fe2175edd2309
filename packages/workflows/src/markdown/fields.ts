// What a folder of Markdown stages may hold, and the words of the field reference.

import { z } from "zod";
import { propertiesField } from "../check/properties/in-documents.ts";
import { humanFields, KIND_NAMES, kindFields } from "../kinds/fields.ts";
import { stageModelFields } from "../kinds/model-fields.ts";
import { orchestratorFields } from "../kinds/orchestrator.ts";

const text = z.string().min(1);
const count = z.int().min(1);
const json = z.json();
const data = z.record(z.string(), json);

const stateLimits = {
  maxTokens: count.describe("Input and output tokens.").optional(),
  maxCostUsd: z.number().positive().describe("US dollars by the session's prices.").optional(),
  timeoutMs: count.describe("Working time in milliseconds, without waits for answers.").optional(),
};

/** What the file of every stage may hold. */
const named = {
  $schema: text.describe("For editors; it is never fetched.").optional(),
  kind: z
    .enum(["agent", ...KIND_NAMES])
    .describe("What the stage runs: `agent` (default), or a kind whose fields stand beside it.")
    .optional(),
  id: text.describe("The stage's id. If it is given, it is the name of the file.").optional(),
  name: text.describe("A name for people.").optional(),
  description: text.describe("What the stage does, for people.").optional(),
};
const beside = {
  meta: data.describe("Anything else, for other programs.").optional(),
  prompt: z.string().describe("The body of the file.").optional(),
};

/** The frontmatter of a stage's file that runs no agent, by kind. The body is the question of a person and the prompt of a router. */
export const kindStageFields = {
  script: z.strictObject({ ...named, ...beside, ...kindFields.script.shape }),
  poll: z.strictObject({ ...named, ...beside, ...kindFields.poll.shape }),
  timer: z.strictObject({ ...named, ...beside, ...kindFields.timer.shape }),
  human: z.strictObject({ ...named, ...beside, ...humanFields.partial({ question: true }).shape }),
  pipeline: z.strictObject({ ...named, ...beside, ...kindFields.pipeline.shape }),
  router: z.strictObject({ ...named, ...beside, ...kindFields.router.shape }),
};

/** The frontmatter of a stage's file, and its body as `prompt`. */
export const stageFields = z.strictObject({
  ...named,
  allowedTools: z
    .array(z.union([text, z.strictObject({ tool: text, optional: z.literal(true) })]))
    .describe(
      "The tools that need no approval: names or patterns such as `Edit(src/**)` and `Bash(npm test *)`. `[]` allows none. If omitted, the session's mode decides about each call.",
    )
    .optional(),
  visibility: z
    .enum(["allowed", "session"])
    .describe(
      "`allowed` (default): the model sees only the allowed tools. `session`: it sees all, and a call of another one needs a grant.",
    )
    .optional(),
  completionTool: text
    .describe("The tool that the model calls to finish the stage. Without it, the stage ends by an event.")
    .optional(),
  completionSchema: data
    .describe("The JSON Schema of what the completion tool takes, which is the stage's output.")
    .optional(),
  turnCap: count.describe("Model calls in one attempt. Default: 50.").optional(),
  model: text.describe("Replaces the session's model in this stage.").optional(),
  temperature: z.number().min(0).describe("The temperature of the model calls.").optional(),
  maxOutputTokens: count.describe("Tokens that one model call may produce.").optional(),
  ...stageModelFields,
  limits: z
    .strictObject({
      ...stateLimits,
      maxToolCalls: count.describe("Executed tool calls in one execution.").optional(),
      maxEditLines: count.describe("Lines that Edit and Write may change in one execution.").optional(),
      maxLinesPerEdit: count.describe("Lines that one call may change.").optional(),
      maxFiles: count.describe("Files that Edit and Write may change in one execution.").optional(),
      maxResultBytes: count.describe("Bytes of tool results in one execution; further results are cut.").optional(),
    })
    .describe("Caps of one execution of the stage.")
    .optional(),
  retries: z.int().min(0).describe("How often the stage may try again. Default: 2.").optional(),
  retryPolicy: z
    .strictObject({
      maxAttempts: count.describe("Attempts in all: `retries` plus one.").optional(),
      backoff: z.enum(["none"]).describe("`none`: a further attempt begins at once.").optional(),
    })
    .describe("The same as `retries`, as stud-cli writes it: `{ maxAttempts: 3, backoff: none }`.")
    .optional(),
  resolutionPolicy: text.describe("Accepted from stud-cli's stages; it has no effect.").optional(),
  inputSchema: data.describe("The JSON Schema of the input that a transition gives to the stage.").optional(),
  skills: z
    .array(text)
    .min(1)
    .describe("The skills that the stage may read. The stage has to list ReadSkill. Default: all.")
    .optional(),
  sandbox: z
    .strictObject({
      network: z.boolean().describe("Whether commands may use the network. Default: false.").optional(),
      scratch: z.array(text).describe("Folders of the workspace that commands may write for their own use.").optional(),
    })
    .describe("What the sandbox lets the stage's commands do in addition: `{ network: true, scratch: [coverage] }`.")
    .optional(),
  env: z
    .strictObject({
      set: z.record(z.string(), z.string()).describe("Variables that the stage's commands get.").optional(),
      block: z.array(text).describe("Variables that they do not get.").optional(),
    })
    .describe('Variables that the stage\'s commands get, and do not get: `{ set: { CI: "1" }, block: [HOME] }`.')
    .optional(),
  ...beside,
});

const stage = z.string().min(1).describe("The name of a stage: of its file, without `.md`.");
const target = z.union([
  stage,
  z.strictObject({
    state: stage,
    input: json.describe("The input of the stage.").optional(),
    context: data.describe("What is merged into the run's context.").optional(),
  }),
  z.strictObject({
    parallel: z.array(stage).min(1).describe("Stages that run side by side."),
    join: stage.describe("The stage that continues with all their outputs."),
    onFailure: z
      .enum(["cancel", "settle"])
      .describe(
        "`cancel` (default): one failure cancels the others and fails the fan-out. `settle`: all run to their ends, which the join reads in `ctx.fork`.",
      )
      .optional(),
  }),
  z.strictObject({ fail: text.describe("Ends the run as failed, with this reason.") }),
]);

const row = z.strictObject({
  from: text.describe("The stage that ended, or `*` for every stage."),
  on: z
    .union([
      z.enum(["success", "failure", "skipped", "pause"]),
      z.strictObject({
        event: text.describe("An event that the model sends with `transition`, or `*` for any other."),
      }),
    ])
    .describe("How the stage ended. Default: `success`.")
    .optional(),
  when: text.describe("A condition in CEL. The row is taken only if it is true.").optional(),
  to: target.describe(
    "What comes next: a stage, a final state, `done`, `fail`, or an object with `state`, `parallel` or `fail`.",
  ),
  approval: z
    .union([z.boolean(), z.strictObject({ message: text.describe("What the person is asked.").optional() })])
    .describe("Whether a person has to approve the transition.")
    .optional(),
  label: text.describe("A name of the row for people.").optional(),
});

const outcome = z.enum(["completed", "failed", "cancelled"]);

/** `pipeline.yaml`. */
export const folderFields = z.strictObject({
  $schema: text.describe("For editors; it is never fetched.").optional(),
  id: text.describe("The name of the pipeline."),
  name: text.describe("A name for people.").optional(),
  description: text.describe("What the pipeline does, for people.").optional(),
  initial: stage.describe("The stage in which a run starts."),
  input: data.describe("The JSON Schema of a run's input. Default: an object with an optional text `task`.").optional(),
  context: data.describe("The initial context of a run, which rows of transitions may change. Default: {}.").optional(),
  limits: z
    .strictObject({
      ...stateLimits,
      maxVisits: count.describe("Visits of one stage. Default: 10.").optional(),
      maxHops: count.describe("Transitions of one run. Default: 10 times the number of stages.").optional(),
    })
    .describe(
      "Caps of a whole run: `maxTokens`, `maxCostUsd`, `timeoutMs`, `maxVisits` of one stage (default 10) and `maxHops`, the transitions (default 10 times the number of stages).",
    )
    .optional(),
  transitions: z
    .array(row)
    .min(1)
    .describe("The rows of the table of transitions. The first that matches is taken.")
    .optional(),
  orchestrator: orchestratorFields.optional(),
  stages: z.array(stage).min(1).describe("The stages among which an orchestrator chooses.").optional(),
  final: z
    .union([z.record(z.string(), outcome), z.array(text)])
    .describe(
      "Final states by name, with the outcome of a run that enters them, or their names: then all are completed.",
    )
    .optional(),
  interrupts: z
    .record(
      z.string(),
      z.strictObject({
        files: text.describe("A pattern of paths in the workspace, such as `src/auth/**`."),
        target: stage.describe("The stage that handles the change."),
      }),
    )
    .describe(
      "Detours by name, as `{ files: src/auth/**, target: audit }`: a change of a file that matches suspends the stage until the target has handled it.",
    )
    .optional(),
  properties: propertiesField.optional(),
  meta: data.describe("Anything else, for other programs.").optional(),
});

/** The same without required fields: one that is missing is reported, and the rest is compiled all the same. */
export const partialFolder = folderFields.partial({ id: true, initial: true });

export type FolderFields = z.infer<typeof partialFolder>;
export type StageFields = z.infer<typeof stageFields>;
export type RowFields = z.infer<typeof row>;
