import type { AnyPipeline, GuardHook, SecurityMode, StateExecutor, Tool } from "@sluice/core";
import type { McpServers, PriceOption, SandboxMode, SandboxSettings } from "@sluice/stages";

/** What a project decides about its runs, in `sluice.config.ts`. What the command line or the environment says wins. */
export interface SluiceConfig {
  /** The model of stages that name none, such as `anthropic/<model>`. The script of `scripted:<file>` is found from the workspace. */
  readonly model?: string;
  /** By provider, the model that is used when nothing names one and that provider's key is set. */
  readonly defaultModels?: Readonly<Record<string, string>>;
  /** What decides in stages without an envelope; `ask` when omitted. */
  readonly mode?: SecurityMode;
  /** Tool patterns for mode `allowlist`. */
  readonly allow?: readonly string[];
  /** Stages at work at once; 4 when omitted. */
  readonly maxParallel?: number;
  /** The OS sandbox that commands run behind: `try` (default), `require` or `off`, or an object with its details. */
  readonly sandbox?: SandboxMode | SandboxSettings;
  /** A request nobody answers within this many milliseconds is denied. Never when omitted. */
  readonly requestTimeoutMs?: number;
  /** The folder that holds the journals, from the workspace; `.sluice/store` when omitted. */
  readonly store?: string;
  /** Pipelines by the name `sluice run` takes, beside those in `.sluice/pipelines/`; they win over bundled ones. */
  readonly pipelines?: Readonly<Record<string, AnyPipeline>>;
  /** What `sluice run "<task>"` runs when no pipeline is named. */
  readonly defaultPipeline?: string;
  /** Added to the built-in tools; one with a built-in's name takes its place. */
  readonly tools?: readonly Tool[];
  /** MCP servers by name, whose tools become `mcp__<name>__<tool>`; started by the first run that could call them. */
  readonly mcpServers?: McpServers;
  /** Added to the kinds of state that come with Sluice. */
  readonly executors?: readonly StateExecutor[];
  /** Asked about every approved call, before the pipeline's and the state's own hooks. */
  readonly onCall?: GuardHook;
  /** Files and folders no run may write, from the workspace; beside `.git`, `.sluice` and `sluice.config.*`. */
  readonly protectedPaths?: readonly string[];
  /** Names of further environment variables whose values are secret. Never the values. */
  readonly secrets?: readonly string[];
  /** Names of variables that commands get although they look like keys. */
  readonly passEnv?: readonly string[];
  /** Base URLs by provider; keys are sent there. They win over the environment. */
  readonly baseUrls?: Readonly<Record<string, string>>;
  /** Prices and limits of models by id, or by the beginning of ids with a `*`; they win over what is built in. */
  readonly prices?: Readonly<Record<string, PriceOption>>;
}

/** Gives an editor the types of `sluice.config.ts`; returns what it is given. */
export function defineConfig(config: SluiceConfig): SluiceConfig {
  return config;
}
