import type { AnyPipeline, GuardHook, Interactor, ProviderRetry, StateExecutor, Tool } from "@sluice/core";
import type { SecurityMode } from "@sluice/core/gate";
import type { McpServers, PriceOption, SandboxMode, SandboxSettings } from "@sluice/stages";
import type { NotifyOption } from "./fields/notify-option.ts";

/** The settings of `sluice.config.ts`. Options and environment variables win over them. */
export interface SluiceConfig {
  /** The model of stages that set none, such as `anthropic/<model>`. In `scripted:<file>`, the file is relative to the workspace. */
  readonly model?: string;
  /** By provider: the model to use if no model is set and that provider's key is. */
  readonly defaultModels?: Readonly<Record<string, string>>;
  /** What is allowed in stages without an envelope; default: `ask`. */
  readonly mode?: SecurityMode;
  /** Tool patterns for mode `allowlist`. */
  readonly allow?: readonly string[];
  /** Maximum number of stages that run in parallel; default: 4. */
  readonly maxParallel?: number;
  /** The OS sandbox for commands: `try` (default), `require` or `off`, or an object with details. */
  readonly sandbox?: SandboxMode | SandboxSettings;
  /** Milliseconds after which an unanswered request is denied; default: never. */
  readonly requestTimeoutMs?: number;
  /** Retries of model calls whose provider fails, in pipelines and stages that do not say it. */
  readonly retry?: ProviderRetry;
  /** What follows when they are used up: `suspend` (default) suspends the run, `fail` fails the stage. */
  readonly onProviderFault?: "suspend" | "fail";
  /** The folder that holds the journals, relative to the workspace; default: `.sluice/store`. */
  readonly store?: string;
  /** Pipelines by name, in addition to those in `.sluice/pipelines/`; they win over bundled ones. */
  readonly pipelines?: Readonly<Record<string, AnyPipeline>>;
  /** The pipeline that `sluice run "<task>"` runs. */
  readonly defaultPipeline?: string;
  /** Custom tools; a tool with the name of a built-in one replaces it. */
  readonly tools?: readonly Tool[];
  /** MCP servers by name; their tools are `mcp__<name>__<tool>`. The first run that could call a server starts it. */
  readonly mcpServers?: McpServers;
  /** Executors of additional kinds of state. */
  readonly executors?: readonly StateExecutor[];
  /** Checks every approved call, before the hooks of the pipeline and the state. */
  readonly onCall?: GuardHook;
  /** Answer requests of every run, beside the user at the terminal: rules, or bridges to other systems. The first answer wins. */
  readonly interactors?: readonly Interactor[];
  /** Programs and addresses to which runs are reported: open requests, suspensions, ends, budgets. */
  readonly notify?: readonly NotifyOption[];
  /** Files and folders that no run may write, relative to the workspace, in addition to `.git`, `.sluice` and `sluice.config.*`. */
  readonly protectedPaths?: readonly string[];
  /** Names of additional environment variables with secret values. Never the values. */
  readonly secrets?: readonly string[];
  /** Names of variables that commands receive although they look like keys. */
  readonly passEnv?: readonly string[];
  /** Base URLs by provider; keys are sent there. They win over environment variables. */
  readonly baseUrls?: Readonly<Record<string, string>>;
  /** Prices and limits by model id, or by a prefix of ids with a `*`; they replace built-in entries. */
  readonly prices?: Readonly<Record<string, PriceOption>>;
}

/** Adds types to `sluice.config.ts` for editors; returns its argument. */
export function defineConfig(config: SluiceConfig): SluiceConfig {
  return config;
}
