import type {
  Clock,
  GuardHook,
  Interactor,
  OpenRequest,
  ProviderFaultOptions,
  RunHost,
  StateExecutor,
  Tool,
} from "@sluice/core";
import type { SecurityMode } from "@sluice/core/gate";
import type { InteractionFault } from "@sluice/core/runtime";
import type { ModelTraffic } from "../models/cassettes/traffic.ts";
import type { ResolvedModel } from "../models/model.ts";
import type { PriceOption } from "../models/pricing/prices.ts";
import type { ModelObject } from "../models/registry.ts";
import type { Telemetry, TelemetryFault } from "../telemetry/telemetry.ts";
import type { McpServers } from "../tools/mcp/config.ts";
import type { McpFault } from "../tools/mcp/servers.ts";
import type { SandboxFault, SandboxMode, SandboxSettings } from "../tools/sandbox.ts";

/** Every option but the model has a safe default. */
export interface SessionOptions {
  /** For stages that name no model: an id such as `anthropic/<model>`, an AI SDK model object, or a resolved model. */
  readonly model?: string | ModelObject | ResolvedModel;
  /** Applies only to stages without `allowedTools`; default `ask`. */
  readonly mode?: SecurityMode;
  /** Tool patterns for mode `allowlist`. */
  readonly allow?: readonly string[];
  /** The maximum number of stages that run in parallel, over all runs of the session; default 4. */
  readonly maxParallel?: number;
  /**
   * Stores the runs; default in memory, which does not outlive the process. A function is called once the first run has
   * passed its checks, and its host is closed with the session. A host that is passed in may be shared by several sessions and
   * is not closed.
   */
  readonly host?: RunHost | (() => RunHost);
  /** Without interactors and without `wait`, every call that needs approval is denied. */
  readonly interactors?: readonly Interactor[];
  /** Keeps requests open for answers from other processes. A number suspends the run after a request was open for so many milliseconds. */
  readonly wait?: boolean | number;
  /**
   * Receives each request that other processes can answer only with this one-time code (`sluice answer --code`), because the run
   * has started a process without a sandbox, which could write an answer itself. Show the code only on this process's
   * terminal, never in a log, file or stream that such a process may read.
   */
  readonly onCode?: (request: OpenRequest, code: string) => void;
  /**
   * Suspends a run with the reason `sleeping` when it only sleeps, for longer than so many milliseconds; `session.resume` continues
   * it. Default: its sleeps pass in this process.
   */
  readonly suspendSleepsOver?: number;
  /** Retries of a model call whose provider fails, in pipelines and stages that do not set them. */
  readonly retry?: ProviderFaultOptions["retry"];
  /** What follows when they are used up. Default: `suspend` with a store on disk, `fail` in memory. */
  readonly onProviderFault?: ProviderFaultOptions["onProviderFault"];
  /**
   * A request without an answer after this many milliseconds is denied with cause `timeout`; default never. A question with a
   * deadline stays open until then.
   */
  readonly requestTimeoutMs?: number;
  /** Added to the built-in tools; a tool with the name of a built-in tool replaces it. */
  readonly tools?: readonly Tool[];
  /**
   * MCP servers by name, whose tools become `mcp__<name>__<tool>`. The first run with a stage that could call a server starts
   * it; closing the session stops it. Needs the package `@ai-sdk/mcp`.
   */
  readonly mcpServers?: McpServers;
  /** Added to the built-in kinds of states. */
  readonly executors?: readonly StateExecutor[];
  /** Called for every approved tool call, before the hooks of the pipeline and the state. */
  readonly onCall?: GuardHook;
  /**
   * Absolute real paths of files and folders that runs must not write, such as their own code. `.git`, `.sluice` and
   * `sluice.config.*` of the workspace are always protected.
   */
  readonly protectedPaths?: readonly string[];
  /**
   * The OS sandbox for commands: `try` (default) uses one if it can be built, `require` runs no command without one, `off` uses
   * none.
   */
  readonly sandbox?: SandboxMode | SandboxSettings;
  /** The workspace; default the process's working directory. */
  readonly cwd?: string;
  /** Keys and settings. Child processes get it without secrets. Default `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Further environment variables whose values are secrets: redacted everywhere and not passed to child processes. */
  readonly secrets?: readonly string[];
  /** Variables that child processes get although they look like secrets (`*_TOKEN`, `*_API_KEY`, …); still redacted. */
  readonly passEnv?: readonly string[];
  /** Base URLs by provider; they take precedence over the environment. */
  readonly baseUrls?: Readonly<Record<string, string>>;
  /** Whether providers may cache prompts for a few minutes at a lower price; default true. A state switches it off with `cache: false`. */
  readonly promptCache?: boolean;
  /**
   * Prices (US dollars per million tokens) and limits (tokens) by model id or by prefix with a `*` (`ollama/*`); they replace the
   * built-in ones. With a cost cap, a model without a price is an error.
   */
  readonly prices?: Readonly<Record<string, PriceOption>>;
  /** Records or plays back the traffic of all models: `recordTraffic(file)`, `playbackTraffic(file)`. */
  readonly traffic?: ModelTraffic;
  /** Observes runs, such as `openTelemetry()` of `@sluice/stages/opentelemetry`. */
  readonly telemetry?: Telemetry;
  readonly clock?: Clock;
  /**
   * Called with non-fatal errors: an interactor that crashed, a late answer, an MCP tool that cannot be offered, telemetry
   * that throws, a sandbox that cannot be built.
   */
  readonly onFault?: (fault: InteractionFault | McpFault | TelemetryFault | SandboxFault) => void;
}
