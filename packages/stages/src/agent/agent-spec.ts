import { type CompiledSchema, SluiceError, type StageContext, type StateSpec } from "@sluice/core";
import { isObject } from "@sluice/core/runtime";

/** The options of an agent state, and how its model completes it. */
export interface AgentSpec extends AgentOptions {
  readonly visibility: "allowed" | "session";
  readonly completionTool: string;
  readonly completionSchema: CompiledSchema<unknown>;
}
interface AgentOptions {
  /** The rendered system prompt. Throws Validation `prompt_unresolved` for a template path that does not exist. */
  prompt(ctx: StageContext): string;
  readonly model?: string;
  readonly temperature?: number;
  readonly maxOutputTokens?: number;
  readonly turnCap: number;
}

/** Undefined for a state of another kind. Throws the errors of `agentOf`. */
export function readAgent(state: StateSpec): AgentSpec | undefined {
  return state.kind === "agent" ? agentOf(state) : undefined;
}

/** Throws Validation `state_invalid` for a state that stage() did not make. */
export function agentOf({ options, visibility = "allowed", completionTool, output }: StateSpec): AgentSpec {
  if (!isAgentOptions(options) || completionTool === undefined || output === undefined)
    throw new SluiceError("Validation", "state_invalid", "create an agent state with stage()");
  return { ...options, visibility, completionTool, completionSchema: output };
}

function isAgentOptions(options: unknown): options is AgentOptions {
  if (!isObject(options)) return false;
  const { prompt, model = "", temperature = 0, maxOutputTokens = 1, turnCap } = options;
  return (
    typeof prompt === "function" &&
    typeof model === "string" &&
    [temperature, maxOutputTokens, turnCap].every((number) => typeof number === "number")
  );
}
