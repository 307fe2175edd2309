import { deepFreeze, field, type Json, type JsonObject } from "../base/json.ts";
import type { SiblingOutcome, StageContext } from "../definition/result.ts";
import type { Envelope } from "../gate/envelope.ts";
import type { Tool } from "../gate/tool.ts";
import type { AvailableTools } from "./executor.ts";

/** The data of a run between two states. Only accepted outputs and routes change it. */
export interface RunState {
  readonly runInput: Json;
  /** Outputs by state, in the order of first completion. */
  readonly upstream: JsonObject;
  readonly context: JsonObject;
  readonly fork?: Readonly<Record<string, SiblingOutcome>>;
}

export interface Entry {
  readonly runId: string;
  readonly workspace: string;
  readonly input: Json;
  readonly visit: number;
}

/** The frozen context of one attempt. */
export function stageContext(
  run: RunState,
  entry: Entry,
  attempt: number,
  setup: Json,
  feedback?: string,
): StageContext {
  const task = field(run.runInput, "task");
  return deepFreeze({
    runId: entry.runId,
    workspace: entry.workspace,
    task: typeof task === "string" ? task : "",
    run: { input: run.runInput },
    input: entry.input,
    upstream: run.upstream,
    context: run.context,
    setup,
    attempt,
    visit: entry.visit,
    ...(feedback === undefined ? {} : { feedback }),
    ...(run.fork === undefined ? {} : { fork: run.fork }),
  });
}

/** Resolves a state's envelope against the session's live tools. */
export function availableTools(envelope: Envelope | undefined, tools: ReadonlyMap<string, Tool>): AvailableTools {
  return {
    allowedTools: envelope?.allowedTools,
    tools: [...tools.values()].map(({ name, description, inputSchema, effect }) => ({
      name,
      description,
      inputSchema,
      effect,
      allowed: envelope !== undefined && envelope.rulesFor(name).length > 0,
    })),
  };
}
