// The fields of states that run no agent, which every format of files has.

import { isObject } from "@sluice/core/runtime";
import { z } from "zod";
import type { DocumentPath } from "../diagnostic.ts";

const text = z.string().min(1);
const count = z.int().min(1);
const json = z.json();
const codes = z.array(z.int().min(0).max(255)).min(1);
const duration = z.union([z.number().positive(), text]);

const command = {
  command: z
    .array(z.string())
    .min(1)
    .describe(
      "The program and its arguments. `{{ctx.…}}` in one of them is replaced by a value of the run, and stays one argument.",
    )
    .optional(),
  shell: text
    .describe("A line for the shell, instead of `command`. It holds no templates: values arrive in `env` and `stdin`.")
    .optional(),
  stdin: text
    .describe(
      "What the command reads: `input` is the state's input as JSON, `upstream` the outputs of earlier states as JSON, and any other text is a template.",
    )
    .optional(),
  env: z
    .record(text, z.string())
    .describe("Environment variables of the command. `{{ctx.…}}` is replaced by a value of the run.")
    .optional(),
  cwd: text.describe("The folder of the command, relative to the workspace. Default: the workspace.").optional(),
  timeout: duration
    .describe("How long the command may run, such as `30s` or `15m`. A number is milliseconds.")
    .optional(),
  success_codes: codes.describe("The exit codes that mean success. Default: `[0]`.").optional(),
  secrets: z
    .array(text)
    .describe(
      "Names of environment variables that this command alone gets. No agent and no other command sees their values.",
    )
    .optional(),
  sandbox: z
    .strictObject({
      write: z.boolean().describe("Whether the command may write to the workspace. Default: false.").optional(),
      network: z.boolean().describe("Whether it may use the network. Default: false.").optional(),
      scratch: z.array(text).describe("Folders of the workspace that it may write for its own use.").optional(),
    })
    .describe(
      "Runs the command in the sandbox, for code that an agent may have changed. Without it, the command runs outside, since its author is trusted.",
    )
    .optional(),
  output: z
    .record(z.string(), json)
    .describe("The JSON Schema of `parsed`, what the command prints as JSON.")
    .optional(),
};

const scriptFields = z
  .strictObject({
    ...command,
    repeat: z
      .boolean()
      .describe("Whether the command may run again if the process ended while it ran. Default: false, the state fails.")
      .optional(),
  })
  .describe("Runs a command, without an agent.");

const pollFields = z
  .strictObject({
    ...command,
    every: duration.describe("The time between two attempts, such as `30s`, `15m` or `3h`. A number is milliseconds."),
    not_yet_codes: codes
      .describe("The exit codes that mean: not yet, try again. Any other code is a failure. Default: `[1]`.")
      .optional(),
    total_timeout: duration.describe("How long all attempts may take together, waits included.").optional(),
    max_attempts: count.describe("How often the command may run.").optional(),
  })
  .describe("Runs a command again and again until it succeeds. The run sleeps in between.");

const timerFields = z
  .strictObject({
    for: duration.describe("How long the run sleeps, such as `30s`, `15m`, `3h` or `5d`.").optional(),
    until: z
      .union([z.number(), text])
      .describe("When the run wakes: an ISO time, milliseconds since 1970, or a template that gives one of them.")
      .optional(),
  })
  .describe("Sleeps for a duration or until a time.");

export const humanFields = z
  .strictObject({
    question: text.describe("What the person is asked. `{{ctx.…}}` is replaced by a value of the run."),
    answer: z
      .record(z.string(), json)
      .describe("The JSON Schema of the answer, which is the state's output. Default: a text.")
      .optional(),
    deadline: duration
      .describe("How long the question waits for an answer, such as `5d`. Default: forever.")
      .optional(),
    on_deadline: z
      .union([
        z.literal("fail"),
        z.strictObject({ answer: json.describe("The answer that counts where none came in time.") }),
      ])
      .describe("`fail` (default): the state fails. With `answer`, that is the answer.")
      .optional(),
  })
  .describe("Asks a person.");

const pipelineFields = z
  .strictObject({
    workflow: text.describe("The workflow that runs: its name, or its path relative to this file."),
    input: z
      .record(z.string(), json)
      .describe("The input of its run. `{{ctx.…}}` in a text is replaced by a value of the run. Default: the task.")
      .optional(),
  })
  .describe("Runs another workflow. Its output is the state's output.");

const routerFields = z
  .strictObject({
    targets: z.array(text).min(1).describe("The states that the model chooses from."),
    prompt: text.describe("How the model is to choose. `{{ctx.…}}` is replaced by a value of the run."),
    model: text.describe("The model, instead of the session's.").optional(),
    fallback: z
      .union([
        text,
        z.strictObject({
          to: text.describe("The state."),
          input: z.record(z.string(), json).describe("Its input.").optional(),
        }),
      ])
      .describe("The state that follows if the model made no valid choice. Default: the state fails.")
      .optional(),
    tries: count.describe("How often the model may choose before that. Default: 3.").optional(),
  })
  .describe("Lets a model choose the next state.");

/** The fields of each kind under its name. */
export const kindFields = {
  script: scriptFields,
  poll: pollFields,
  timer: timerFields,
  human: humanFields,
  pipeline: pipelineFields,
  router: routerFields,
} as const;

/** The same as fields of a state, of which one at most may be there. */
export const optionalKinds = {
  script: scriptFields.optional(),
  poll: pollFields.optional(),
  timer: timerFields.optional(),
  human: humanFields.optional(),
  pipeline: pipelineFields.optional(),
  router: routerFields.optional(),
} as const;

export type KindName = keyof typeof kindFields;

/** The kinds in the order in which messages list them. */
export const KIND_NAMES: readonly KindName[] = ["script", "poll", "timer", "human", "pipeline", "router"];

/** What a file says of a state of one of these kinds. */
export type KindState = {
  readonly [K in KindName]: { readonly kind: K; readonly fields: z.output<(typeof kindFields)[K]> };
}[KindName];

/** What the files say of a command. */
export type CommandFields = Omit<z.output<typeof scriptFields>, "repeat">;

/** Stands for a state whose fields cannot be read. A file with one does not run. */
export const UNREADABLE: KindState = { kind: "timer", fields: { for: "1d" } };

/** The kinds that an object of fields names, each with its fields. */
export function kindsIn(
  fields: { readonly [K in KindName]?: z.output<(typeof kindFields)[K]> | undefined },
): readonly KindState[] {
  const { script, poll, timer, human, pipeline, router } = fields;
  return [
    ...(script === undefined ? [] : [{ kind: "script", fields: script } as const]),
    ...(poll === undefined ? [] : [{ kind: "poll", fields: poll } as const]),
    ...(timer === undefined ? [] : [{ kind: "timer", fields: timer } as const]),
    ...(human === undefined ? [] : [{ kind: "human", fields: human } as const]),
    ...(pipeline === undefined ? [] : [{ kind: "pipeline", fields: pipeline } as const]),
    ...(router === undefined ? [] : [{ kind: "router", fields: router } as const]),
  ];
}

export interface NamedTarget {
  readonly name: string;
  readonly path: DocumentPath;
}

/** The states that a router names, with their paths in its fields. What cannot be a name is left out. */
export function routerTargets({
  targets,
  fallback,
}: {
  readonly targets?: unknown;
  readonly fallback?: unknown;
}): readonly NamedTarget[] {
  const named = (name: unknown, path: DocumentPath): readonly NamedTarget[] =>
    typeof name === "string" && name !== "" ? [{ name, path }] : [];
  return [
    ...(Array.isArray(targets) ? targets.flatMap((name: unknown, index) => named(name, ["targets", index])) : []),
    ...named(fallback, ["fallback"]),
    ...named(isObject(fallback) ? fallback.to : undefined, ["fallback", "to"]),
  ];
}

/** The fields of one kind, if they are complete. What is wrong with them is reported where they are read. */
export function readKind(kind: KindName, fields: unknown): KindState | undefined {
  const read = z.strictObject(optionalKinds).safeParse({ [kind]: fields });
  return read.success ? kindsIn(read.data)[0] : undefined;
}

/** The members that are given, since one that is undefined is not the same as one that is absent. */
export function onlyGiven<T extends object>(members: { readonly [K in keyof T]: T[K] | undefined }): Partial<T> {
  const own: Partial<T> = {};
  for (const name in members) {
    const value = members[name];
    if (value !== undefined) own[name] = value;
  }
  return own;
}
