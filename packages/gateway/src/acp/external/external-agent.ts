import {
  type AnyState,
  field,
  isJsonObject,
  type Json,
  parseJson,
  SluiceError,
  type Stage,
  type StageOptions,
  stage,
} from "@sluice/core";
import { type AcpHost, isAcpHost } from "./agent-host.ts";

/** An agent that speaks ACP. */
export interface ExternalAgent {
  /** The program and its arguments, such as `["claude-agent-acp"]`. */
  readonly command: readonly string[];
  /** Which known agent it is. Its own tools are then removed, and only those of the stage are left. */
  readonly host?: AcpHost;
  /** Variables for its process. They are part of the definition: pass keys with `passEnv`. */
  readonly env?: Readonly<Record<string, string>>;
  /** Names of variables of the session that its process gets, such as keys. It gets no others, except PATH, HOME and the like. */
  readonly passEnv?: readonly string[];
  /**
   * Files and folders outside the workspace that the agent may read and write in the OS sandbox, such as its login: absolute, or with
   * `~/`. Those of a known host are added. It may read the workspace and its own code, and nothing else of the home folder.
   */
  readonly home?: readonly string[];
  /**
   * Accepts an agent that may have tools of its own, because it is none of the known ones, or of a version that was not measured: what
   * it does with them passes no gate.
   */
  readonly accept?: "advisory";
}

/** The options of a stage, with the agent in place of a model. */
export type ExternalAgentOptions<A extends Record<string, AnyState>, O, I> = Omit<
  StageOptions<A, O, I>,
  "model" | "temperature" | "topP" | "seed" | "stopSequences" | "maxOutputTokens"
> & { readonly agent: ExternalAgent };

const PREFIX = "acp:";

/**
 * Defines a state whose work is done by an agent of another program over ACP. It is a `stage()`: prompt, tools, completion, caps and
 * hooks are the same, and the agent reaches files and commands only through the tools of the stage. The session needs
 * `traffic: externalAgents()`. Throws Validation `external_agent_invalid`.
 */
export function externalAgent<
  const A extends Record<string, AnyState> = Record<never, never>,
  O = unknown,
  I = undefined,
>({ agent, ...options }: ExternalAgentOptions<A, O, I>): Stage<O, NoInfer<I>> {
  return stage<A, O, I>({ ...options, model: agentModelId(agent) });
}

/**
 * The agent as the `model` of any state that takes one, such as a stage that completes by an event, or a router. Throws Validation
 * `external_agent_invalid`.
 */
export function agentModelId(agent: ExternalAgent): string {
  const { command, host, env = {}, passEnv = [], home = [], accept } = agent;
  const [program = ""] = command;
  if (program.trim() === "") throw invalid("the command of an external agent names a program");
  refuseUnknownTools(program, host, accept);
  return `${PREFIX}${JSON.stringify({ command, ...(host === undefined ? {} : { host }), env, passEnv, home, ...(accept === undefined ? {} : { accept }) })}`;
}

/** What tools an agent has of its own is known of the hosts only. */
function refuseUnknownTools(program: string, host: Json | undefined, accept: Json | undefined): void {
  if (host !== undefined && !(typeof host === "string" && isAcpHost(host)))
    throw invalid(
      `${JSON.stringify(host)} is not an agent whose tools can be removed; those are claude, gemini, qwen, copilot and opencode`,
    );
  if (host === undefined && accept !== "advisory")
    throw invalid(
      `${program} may keep tools of its own, which pass no gate: name its host, or write accept: "advisory" to accept that`,
    );
}

/** The agent of a model's id; undefined for the id of a model. Throws Validation `external_agent_invalid`. */
export function agentOfId(id: string): ExternalAgent | undefined {
  if (!id.startsWith(PREFIX)) return undefined;
  const json = parseJson(id.slice(PREFIX.length));
  const value = json.ok ? json.value : null;
  const [host, env] = [field(value, "host"), field(value, "env")];
  const command = textsIn(field(value, "command"));
  if (command === undefined || command.length === 0) throw invalid(`${id} names no program`);
  refuseUnknownTools(command[0] ?? "", host, field(value, "accept"));
  const variables = env !== undefined && isJsonObject(env) ? Object.entries(env) : [];
  return {
    command,
    ...(typeof host === "string" && isAcpHost(host) ? { host } : {}),
    env: Object.fromEntries(variables.flatMap(([name, text]) => (typeof text === "string" ? [[name, text]] : []))),
    passEnv: textsIn(field(value, "passEnv")) ?? [],
    home: textsIn(field(value, "home")) ?? [],
    ...(field(value, "accept") === "advisory" ? { accept: "advisory" } : {}),
  };
}

function textsIn(value: Json | undefined): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value.every((one) => typeof one === "string") ? value : undefined;
}

function invalid(message: string): SluiceError {
  return new SluiceError("Validation", "external_agent_invalid", message);
}
