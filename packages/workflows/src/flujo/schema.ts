// The schemas of Flujo documents, level by level: what a file, a machine, a state and a step may hold.

import { z } from "zod";
import { propertiesField } from "../check/properties/in-documents.ts";
import { optionalKinds } from "../kinds/fields.ts";
import { modelFields } from "../kinds/model-fields.ts";
import { orchestratorFields } from "../kinds/orchestrator.ts";

const text = z.string().min(1);
const count = z.int().min(1);
const json = z.json();
const object = z.record(z.string(), json);

const limits = z
  .strictObject({
    max_hops: count.describe("Transitions in one run. Default: 10 times the number of states.").optional(),
    max_visits: count.describe("Visits of one state. Default: 10.").optional(),
    max_tokens: count.describe("Input and output tokens of the run.").optional(),
    max_cost_usd: z.number().positive().describe("US dollars of the run.").optional(),
    timeout_s: count.describe("Seconds of working time, without waits for people.").optional(),
  })
  .describe("Caps of the run. Reaching one of hops or visits fails the run, reaching another one the state.");

const agent = z
  .strictObject({
    id: text.describe("A name, for people.").optional(),
    model: text.describe("The model, instead of the session's.").optional(),
    system_prompt: text
      .describe("What the agent is and does. `{{ context.… }}` is replaced by a value of the run.")
      .meta({ aliases: ["prompt", "instructions"] }),
    output_schema: object.describe("The JSON Schema of its output, an object.").optional(),
    tools: z
      .array(text)
      .describe("The tools that need no approval.")
      .meta({ aliases: ["allowed_tools"] })
      .optional(),
    temperature: z.number().min(0).describe("The temperature of the model.").optional(),
    ...modelFields,
    turn_cap: count.describe("Model calls allowed in one attempt. Default: 50.").optional(),
  })
  .describe("An agent that steps use by its name.");

/** Fields of every document, beside those of its machine or its steps. */
const documentFields = {
  $schema: z.string().describe("The schema of the document, for editors. It is never fetched.").optional(),
  version: z
    .union([z.string(), z.number()])
    .describe("The version of the format.")
    .meta({ aliases: ["blueprint_version"] })
    .optional(),
  description: z.string().describe("What the workflow is for.").optional(),
  imports: z
    .record(text, text)
    .describe("Other workflow files by alias, as paths relative to this file. Steps use them as `imports.<alias>`.")
    .optional(),
  agents: z.record(text, agent).describe("Agents by name. Steps use them as `agents.<name>`.").optional(),
  context: object.describe("The initial context. Default: `{}`.").optional(),
  context_schema: object
    .describe("The JSON Schema of the context. With it, a condition that reads an unknown field is an error.")
    .optional(),
  limits: limits.optional(),
  orchestrator: orchestratorFields.optional(),
  properties: propertiesField.optional(),
};

const transition = z
  .strictObject({
    from: text.describe("A state, or `*` for every state."),
    on: z
      .enum(["success", "failure", "pause"])
      .describe("How the state ended: its steps completed, one of them failed, or a person answered it."),
    when: z.string().describe("A condition in CEL. The first row whose condition is true decides.").optional(),
    to: text.describe("A state or an end state."),
  })
  .describe("A row of the transitions, in the order in which they are tried.");

const machineFields = {
  name: text.describe("The name of the machine.").optional(),
  start_state: text.describe("The state in which a run starts."),
  end_states: z
    .union([text, z.array(text)])
    .describe("The states that end the run.")
    .optional(),
  states: z.record(text, z.union([z.array(json), object])).describe("The states by name, with their steps."),
  transitions: z.array(transition).describe("Where a state leads. The first row that matches decides.").optional(),
};

const kind = z.literal("StateMachine").describe("That it is a state machine.");

/** A machine as a document. */
export const machineDocumentSchema = z.strictObject({ kind, ...documentFields, ...machineFields });
/** A machine as a step. */
export const machineSchema = z.strictObject({
  kind,
  description: z.string().describe("What the machine is for.").optional(),
  ...machineFields,
});

/** A document that is a list of steps. */
export const stepsDocumentSchema = z.strictObject({
  ...documentFields,
  name: text.describe("The name of the workflow.").optional(),
  steps: z.array(json).describe("The steps in order."),
});

export const stateSchema = z
  .strictObject({
    description: z.string().describe("What the state is for.").optional(),
    steps: z.array(json).describe("The steps in order. Without steps the state succeeds.").optional(),
    outcome: z
      .enum(["completed", "failed", "cancelled"])
      .describe(
        "How an end state ends the run. Default: `failed` for a state called failed or error, `cancelled` for one called cancelled, else `completed`.",
      )
      .optional(),
  })
  .describe("A state.");

const mapping = z.strictObject({
  child: text.describe("A field of the import's context or output."),
  parent: text.describe("The field of this workflow's context that gets it."),
});

/** Other workflows are imports. */
const { script, poll, timer, human, router } = optionalKinds;

/** Every field of every kind of step but machines, since a mistaken kind must not hide other mistakes. */
export const stepSchema = z
  .strictObject({
    kind: z.enum(["step", "hitl", "StateMachine"]).describe("What the step does. Default: `step`.").optional(),
    name: text.describe("The name of the step, unique in its state."),
    description: z.string().describe("What the step is for.").optional(),
    uses: text.describe("`agents.<name>` or `imports.<alias>`.").optional(),
    prompt: text
      .describe("What the agent does. `{{ context.… }}`, `{{ previous_step }}` and `{{ steps.<name> }}` are replaced.")
      .meta({ aliases: ["instructions", "system_prompt"] })
      .optional(),
    input: z.union([text, object]).describe("The input: text for an agent, fields for an import.").optional(),
    tools: z
      .array(text)
      .describe("The tools that need no approval.")
      .meta({ aliases: ["allowed_tools"] })
      .optional(),
    output_schema: object.describe("The JSON Schema of the agent's output, an object.").optional(),
    model: text.describe("The model, instead of the session's.").optional(),
    temperature: z.number().min(0).describe("The temperature of the model.").optional(),
    ...modelFields,
    turn_cap: count.describe("Model calls allowed in one attempt. Default: 50.").optional(),
    max_retries: z.int().min(0).describe("Attempts after the first one. Default: 2.").optional(),
    timeout_s: count.describe("Seconds of working time.").optional(),
    message: text.describe("What a person is asked.").optional(),
    input_schema: object.describe("The JSON Schema of the person's answer.").optional(),
    script,
    poll,
    timer,
    human,
    router,
    sink_to: text.describe("The field of the context that gets the output, such as `scratchpad.answer`.").optional(),
    updates_context: z
      .union([z.boolean(), text])
      .describe("Merges the fields of the output into the context: `true` into `scratchpad`, a path into that field.")
      .optional(),
    outputs: z
      .union([z.array(mapping), z.record(text, text)])
      .describe("What an import gives back, as `child` and `parent` fields. Default: its `scratchpad`.")
      .optional(),
  })
  .describe("A step.");

export const partialMachineDocument = machineDocumentSchema.partial();
export const partialMachine = machineSchema.partial();
export const partialStepsDocument = stepsDocumentSchema.partial();
export const partialState = stateSchema.partial();
export const partialStep = stepSchema.partial();

export type MachineFields = z.output<typeof partialMachine>;
export type DocumentFields = Pick<z.output<typeof partialStepsDocument>, keyof typeof documentFields>;
export type AgentFields = z.output<typeof agent>;
export type StepFields = z.output<typeof partialStep>;
export type Transition = z.output<typeof transition>;
export type RunCaps = z.output<typeof limits>;
