import { basename } from "node:path";
import { SluiceError } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import type { ModelTraffic, ResolvedModel, SandboxMode, TrafficScope, TurnPosition } from "@sluice/stages";
import { outsideFirst } from "@sluice/stages/runtime";
import { modelOfAgent } from "../../run/agent-model.ts";
import { type AgentThread, createAgentThread } from "./agent-thread.ts";
import { agentOfId, type ExternalAgent } from "./external-agent.ts";

export interface ExternalAgentsOptions {
  /** Records or plays back the traffic of the session; that of its agents too. */
  readonly traffic?: ModelTraffic;
  /**
   * The OS sandbox around each agent: `try` (default) uses one where it can be built, `require` starts no agent without one. The agent
   * may read the workspace and change nothing of it.
   */
  readonly sandbox?: SandboxMode;
  /** Absolute paths that agents cannot see, besides the run store and what the session's `sandbox` hides. */
  readonly hidden?: readonly string[];
  /** The version that agents are shown; default: `0`. */
  readonly version?: string;
  /** Receives faults that fail no stage. */
  readonly onFault?: (message: string) => void;
}

/** Variables that every process needs. Keys are passed by name. */
const COMMON = /^(?:PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|TMPDIR|XDG_\w+|NODE_EXTRA_CA_CERTS)$/;

/** The traffic of a session whose pipelines have states of `externalAgent`: their agents take the place of a model. */
export function externalAgents(options: ExternalAgentsOptions = {}): ModelTraffic {
  const { traffic } = options;
  return {
    model: async (wanted, scope) => {
      const agent = wanted.named === undefined ? undefined : agentOfId(wanted.named);
      if (agent === undefined) return traffic === undefined ? await wanted.load() : await traffic.model(wanted, scope);
      if (traffic === undefined) return agentAsModel(agent, scope, options);
      let live: ResolvedModel | undefined;
      const load = async (): Promise<ResolvedModel> => (live ??= agentAsModel(agent, scope, options));
      const made = await traffic.model({ ...wanted, load }, scope);
      // A recording replaces the calls; the agent behind them has to end all the same.
      return live === undefined ? made : { ...live, ...made };
    },
    get files() {
      return traffic?.files ?? [];
    },
  };
}

function agentAsModel(
  agent: ExternalAgent,
  { root, env, clock, absent = () => [] }: TrafficScope,
  { version = "0", sandbox = "try", hidden = [], onFault = () => undefined }: ExternalAgentsOptions,
): ResolvedModel {
  const name = agent.host ?? basename(agent.command[0] ?? "");
  const { passEnv = [] } = agent;
  const missing = passEnv.filter((variable) => env[variable] === undefined);
  if (missing.length > 0)
    throw new SluiceError("Session", "missing_key", `the agent ${name} needs ${missing.join(", ")}, which is not set`, {
      detail: { variables: missing },
    });
  const passed = Object.entries(env).flatMap(([key, value]) =>
    value !== undefined && (COMMON.test(key) || passEnv.includes(key)) ? [[key, value] as const] : [],
  );
  // A run may have created programs in the folders of PATH that are in the workspace.
  const path = env.PATH === undefined ? {} : { PATH: outsideFirst(env.PATH, root) };
  const threads = new Map<string, AgentThread>();
  const open = (key: string, runId: string): AgentThread => {
    const known = threads.get(key);
    if (known !== undefined) return known;
    const thread = createAgentThread({
      agent,
      cwd: root,
      // The commands that answer requests refuse to work for a process with this variable.
      env: { ...Object.fromEntries(passed), ...path, SLUICE_RUN: runId },
      sandbox: { mode: sandbox, hidden: [...new Set([...absent(), ...hidden])] },
      version,
      clock,
      onFault,
    });
    threads.set(key, thread);
    return thread;
  };
  const end = async (key: string): Promise<void> => {
    const thread = threads.get(key);
    threads.delete(key);
    await thread?.close();
  };
  return {
    id: `agent:${name}`,
    secrets: passEnv.flatMap((variable) => env[variable] ?? []),
    agent: { name, class: agent.accept ?? "hard", started: true },
    started: { command: agent.command, path: agent.env?.PATH ?? path.PATH },
    at: (position) => {
      const { runId = "" } = position;
      const key = keyOf(position);
      return modelOfAgent(name, async ({ prompt, tools = [], abortSignal }) => {
        const offered = tools.filter((tool) => tool.type === "function");
        try {
          return await open(key, runId).next(prompt, offered, abortSignal);
        } catch (thrown) {
          // A later attempt begins with a new process.
          await end(key);
          throw thrown;
        }
      });
    },
    ended: async (position) => {
      try {
        await end(keyOf(position));
      } catch (thrown) {
        onFault(`the agent ${name} did not end: ${messageOf(thrown)}`);
      }
    },
  };
}

/** A run has one active execution of a state. */
function keyOf({ runId = "", stage }: Pick<TurnPosition, "runId" | "stage">): string {
  return JSON.stringify([runId, stage]);
}
