// The schema of a Statewright document: what it may hold, and the words of the field reference.

import { z } from "zod";
import { propertiesField } from "../check/properties/in-documents.ts";
import { GUARD_OPERATORS } from "../expressions/guard.ts";
import { optionalKinds } from "../kinds/fields.ts";
import { modelFields } from "../kinds/model-fields.ts";
import { orchestratorFields } from "../kinds/orchestrator.ts";

const text = z.string().min(1);
const count = z.int().min(1);
const json = z.json();

const stateName = text.describe("The name of a state.");
const guardNames = {
  guard: text.describe("A guard that has to hold.").optional(),
  guards: z.array(text).describe("Guards that all have to hold, after `guard`, in this order.").optional(),
};
const approval = {
  requires_approval: z.boolean().describe("Whether a person has to approve the transition.").optional(),
  approval_message: z.string().describe("What the person is asked.").optional(),
};

const move = z
  .strictObject({
    target: text.describe("The state that is entered, or `$return` to go back to the state that an interrupt left."),
    ...guardNames,
    ...approval,
  })
  .describe("A transition with conditions.");
const invocation = z
  .strictObject({
    invoke: text.describe("The workflow that runs: its name, or its path relative to this file."),
    on_complete: stateName.describe("The state that is entered when it completed."),
    on_fail: stateName.describe("The state that is entered when it failed. Without it the run fails.").optional(),
    input: z.record(z.string(), json).describe("What is added to the initial context of the workflow.").optional(),
    ...guardNames,
    ...approval,
  })
  .describe("A transition that runs another workflow first.");
const branch = z
  .strictObject({
    initial: stateName.describe("The state in which the branch starts."),
    terminal: stateName.describe("The state whose entry completes the branch."),
  })
  .describe("A branch of a fork.");
const parting = z
  .strictObject({
    fork: z
      .strictObject({
        branches: z
          .record(text, branch)
          .refine((branches) => Object.keys(branches).length > 0)
          .describe("The branches by key. They run side by side.")
          .meta({ minProperties: 1 }),
        join: z
          .enum(["all", "any"])
          .describe("`all` fails when a branch fails. `any` completes with the first branch that does. Default: `all`.")
          .optional(),
        on_complete: stateName.describe("The state that is entered when the fork completed."),
        on_fail: stateName.describe("The state that is entered when it failed. Without it the run fails.").optional(),
      })
      .describe("The branches and what follows them."),
    ...guardNames,
    ...approval,
  })
  .describe("A transition that runs branches of this workflow side by side.");
const transition = z
  .union([text, move, invocation, parting, z.array(z.union([move, invocation, parting])).min(1)])
  .describe("A state, a transition, or a list of transitions of which the first whose guards hold is taken.");

/** What a state may hold. */
export const stateSchema = z
  .strictObject({
    type: z.literal("final").describe("`final` for a state that ends the run.").optional(),
    outcome: z
      .enum(["completed", "failed", "cancelled"])
      .describe(
        "How a final state ends the run. Default: `failed` for a state called failed or error, `cancelled` for one called cancelled, else `completed`.",
      )
      .optional(),
    allowed_tools: z
      .array(text)
      .describe(
        "The tools that need no approval: names or patterns such as `Bash(npm test *)`. `[]` allows none. If omitted, the session's mode decides about each call.",
      )
      .optional(),
    instructions: z
      .string()
      .describe("What the agent does in this state. `{{ctx.…}}` is replaced by a value of the run.")
      .optional(),
    max_iterations: count.describe("Tool calls that may run. Afterwards the agent can only move on.").optional(),
    turn_cap: count.describe("Model calls allowed in one attempt. Default: 50.").optional(),
    model: text.describe("The model of this state, instead of the session's.").optional(),
    ...modelFields,
    safe_next: z
      .union([text, move])
      .describe("The transition for an event that the state does not name. Its own guards and approval apply.")
      .optional(),
    max_edit_lines: count.describe("Lines that one edit may remove or add.").optional(),
    max_files_per_state: count.describe("Files that may be edited in one execution of the state.").optional(),
    allowed_commands: z
      .array(text)
      .describe("The commands that Bash may run, by their first words. They replace a plain `Bash` in `allowed_tools`.")
      .optional(),
    blocked_env: z
      .array(text)
      .describe("Environment variables that commands do not get.")
      .meta({ aliases: ["deny_env"] })
      .optional(),
    env_overrides: z
      .record(text, z.union([z.string(), z.number(), z.boolean()]))
      .describe("Environment variables that commands get. The model sees the names only.")
      .meta({ aliases: ["env"] })
      .optional(),
    output_schema: z
      .record(z.string(), json)
      .describe(
        "The JSON Schema of the agent's output, an object, in a workflow with an orchestrator. Default: an object with a text `result`.",
      )
      .optional(),
    context_budget_bytes: count
      .describe("Bytes of tool results that one execution of the state may read. What is beyond is cut.")
      .optional(),
    ...optionalKinds,
    on: z
      .record(text, transition)
      .describe(
        "The transitions by event. A state that runs no agent is left by `success` and `failure`, a router by `failure` alone.",
      )
      .optional(),
  })
  .describe("A state: what the agent may do in it, and where it may go.");

const guard = z
  .strictObject({
    field: text.describe("The field of the context, with dots between keys."),
    op: z.enum(GUARD_OPERATORS).describe("How the field is compared."),
    value: z
      .union([z.string(), z.number(), z.boolean(), z.null(), z.array(json), z.record(z.string(), json)])
      .describe("What it is compared with. `exists` and `not_exists` have none.")
      .optional(),
  })
  .describe("A condition on the context as it is before the transition's data.");

const interrupt = z
  .strictObject({
    trigger: z
      .strictObject({ file_pattern: text.describe("The files, as a pattern such as `src/**/*.sql`.") })
      .describe("What triggers the interrupt."),
    target: stateName.describe("The state that is entered. `$return` goes back from there."),
  })
  .describe("A detour to a state when a tool call changed a matching file.");

const meta = z
  .looseObject({
    task_type: z.string().describe("The kind of task, such as `bugfix`.").optional(),
    estimated_steps: z.int().describe("About how many tool calls the workflow needs.").optional(),
    danger_level: z
      .enum(["safe", "moderate", "dangerous"])
      .describe("How risky the workflow is. Shown before it runs.")
      .optional(),
    requires_human_approval: z
      .boolean()
      .describe(
        "Whether a person has to approve something in the workflow. Without such a transition there is a warning.",
      )
      .optional(),
    capture_output: z
      .boolean()
      .describe("`false` keeps prompts, texts, arguments and results out of reports. The journal has them.")
      .optional(),
    on_final: z
      .literal("release")
      .describe(
        "An agent of another program that keeps its own tools may use them freely once the run has completed. Without it, they are refused then.",
      )
      .optional(),
  })
  .describe("Facts about the workflow. Other keys are kept.");

/** A Statewright document. Keys may also be written in camelCase. */
export const statewrightSchema = z.strictObject({
  $schema: z.string().describe("The schema of the document, for editors. It is never fetched.").optional(),
  id: text.describe("The name of the workflow."),
  initial: stateName.describe("The state in which a run starts."),
  context: z.record(z.string(), json).describe("The initial context. Default: `{}`.").optional(),
  states: z.record(text, stateSchema).describe("The states by name."),
  guards: z.record(text, guard).describe("The conditions that transitions name.").optional(),
  orchestrator: orchestratorFields.optional(),
  interrupts: z.record(text, interrupt).describe("Detours by name.").optional(),
  properties: propertiesField.optional(),
  meta: meta.optional(),
});

/** The same with optional fields, for what is left of a document with mistakes. */
export const partialSchema = statewrightSchema.partial();

export type StatewrightDocument = z.output<typeof partialSchema>;
export type StatewrightState = z.output<typeof stateSchema>;
export type StatewrightGuard = z.output<typeof guard>;
export type Move = z.output<typeof move>;
export type Invocation = z.output<typeof invocation>;
export type Parting = z.output<typeof parting>;
