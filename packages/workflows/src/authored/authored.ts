// A state in which a model writes a pipeline, which is checked, shown to a person and then runs.

import type { AnyState, GuardHook, Json, StageContext, State } from "@sluice/core";
import { type CommonOptions, type CompiledTemplate, createReport, readTemplate, stateSpec } from "@sluice/core/runtime";
import type { KindCommon } from "@sluice/stages";
import { type AuthoredAllow, type AuthoredRules, readAllow } from "./allow.ts";
import { isCovered } from "./covers.ts";
import { designPipeline } from "./design.ts";

/** The kind of such states. Sessions that run them need its executor. */
export const AUTHORED = "authored";

/** What such a state completes with. A type alias, since outputs are JSON. */
export type AuthoredOutput = {
  /** The id of the pipeline that was written. */
  readonly pipeline: string;
  /** Its fingerprint. */
  readonly fingerprint: string;
  /** The output of its run. */
  readonly output: Json;
};

/** The options of a state in which a model writes a pipeline. */
export interface AuthoredOptions<A extends Record<string, AnyState>, I> extends KindCommon<A, I, AuthoredOutput> {
  /** What the pipeline is for: text with `{{ctx.path}}` templates. Default: the task of the run. */
  readonly brief?: string;
  /** What the pipeline may hold. */
  readonly allow: AuthoredAllow;
  /** Tools of `allow.tools` that the model has while it writes, to look at the project. Default: none. */
  readonly designTools?: readonly string[];
  /** Whether a person decides if the pipeline runs. `mode`: unless the session's mode is `yolo`. Default: `always`. */
  readonly approval?: "always" | "mode" | "never";
  /** How often the model may write the pipeline; what is wrong with it is fed back. Default: 3. */
  readonly tries?: number;
  /** Model calls of one try. Default: 20 with tools, else 3. */
  readonly turnCap?: number;
  /** The model that writes, instead of the session's. */
  readonly model?: string;
  /** A hook that is asked about every call of the pipeline, and of the model that writes it. */
  readonly onCall?: GuardHook;
}

/** What the executor reads of such a state. */
export interface AuthoredSpec {
  readonly rules: AuthoredRules;
  readonly approval: "always" | "mode" | "never";
  brief(ctx: StageContext): string;
}

const KEYS = ["reads", "brief", "allow", "designTools", "approval", "tries", "turnCap", "model"];
const TASK = "{{ctx.task}}";

/**
 * Defines a state in which a model writes a pipeline for a task. The document is checked as a file is, and by `allow`; then a
 * person decides whether it runs. Its run is a child of this one, and its output is in the state's output. The state fails with
 * code `authored` if no pipeline was written that may run, with `unanswered` if no person answered, and with `pipeline` if its
 * run did not complete. Never throws: `pipeline()` reports its problems with all others.
 */
export function authored<const A extends Record<string, AnyState> = Record<never, never>, I = undefined>(
  options: AuthoredOptions<A, I>,
): State<AuthoredOutput, NoInfer<I>>;
export function authored(
  given: CommonOptions & Omit<AuthoredOptions<Record<never, never>, unknown>, keyof CommonOptions>,
): State {
  const { reads: _types, brief = TASK, allow, designTools = [], approval = "always", tries = 3, ...rest } = given;
  const { turnCap = designTools.length === 0 ? 3 : 20, model, ...common } = rest;
  const report = createReport();
  const rules = readAllow(report, allow);
  const template = templateOf(brief);
  for (const { message, suggestion } of template.faults) report.add("brief", message, suggestion);
  if (!["always", "mode", "never"].includes(approval)) report.add("approval", "must be always, mode or never");
  if (!Number.isSafeInteger(tries) || tries < 1) report.add("tries", "must be a whole number from 1");
  if (!Number.isSafeInteger(turnCap) || turnCap < 1) report.add("turnCap", "must be a whole number from 1");
  for (const [index, tool] of designTools.entries())
    if (!isCovered(tool, rules.tools)) report.add(`designTools[${index}]`, "is not within allow.tools");
  const options: AuthoredSpec = { rules, approval, brief: template.render };
  const isSound = report.problems.length === 0;
  const own = isSound ? [designPipeline(designOptions(rules, { designTools, tries, turnCap, model })).spec] : [];
  const others = [...rules.pipelines.values()].map(({ spec }) => spec);
  const spec = stateSpec(
    AUTHORED,
    // Its commands run in the sandbox, which is therefore proven before the run starts.
    { ...common, allowedTools: rules.tools, ...(rules.commands.length === 0 ? {} : { sandbox: {} }) },
    {
      options,
      keys: KEYS,
      problems: report.problems,
      templates: { brief: template.references },
      owns: [...own, ...others],
      models: rules.models,
      parts: {
        brief: { data: brief },
        approval,
        allow: {
          data: {
            ...{ kinds: [...rules.kinds], tools: rules.tools, commands: rules.commands, models: rules.models },
            ...{ pipelines: [...rules.pipelines.keys()], maxStates: rules.maxStates, floorMs: rules.floorMs },
            limits: { ...rules.limits },
          },
        },
      },
      shape: { approval },
    },
  );
  return { kind: AUTHORED, spec };
}

function designOptions(
  rules: AuthoredRules,
  {
    designTools: tools,
    tries,
    turnCap,
    model,
  }: {
    readonly designTools: readonly string[];
    readonly tries: number;
    readonly turnCap: number;
    readonly model: string | undefined;
  },
): Parameters<typeof designPipeline>[0] {
  return { id: "write-pipeline", rules, tools, tries, turnCap, ...(model === undefined ? {} : { model }) };
}

function templateOf(text: string): Pick<CompiledTemplate, "references" | "render"> & {
  readonly faults: readonly { readonly message: string; readonly suggestion?: string }[];
} {
  const reading = readTemplate(text);
  if (reading.ok) return { ...reading.value, faults: [] };
  return { references: [], render: () => "", faults: reading.faults };
}
