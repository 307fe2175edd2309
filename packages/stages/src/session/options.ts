import type {
  Clock,
  GuardHook,
  InteractionFault,
  Interactor,
  OpenRequest,
  RunHost,
  SecurityMode,
  StateExecutor,
  Tool,
} from "@sluice/core";
import type { ModelTraffic } from "../models/cassettes/traffic.ts";
import type { ResolvedModel } from "../models/model.ts";
import type { PriceOption } from "../models/pricing/prices.ts";
import type { ModelObject } from "../models/registry.ts";
import type { SandboxFault, SandboxMode, SandboxSettings } from "../sandbox/wall.ts";
import type { Telemetry, TelemetryFault } from "../telemetry/telemetry.ts";
import type { McpServers } from "../tools/mcp/config.ts";
import type { McpFault } from "../tools/mcp/servers.ts";

/** What a session is made of. Everything but the model has a default that is safe. */
export interface SessionOptions {
  /** For stages that name none: an id such as `anthropic/<model>`, an AI SDK model object, or a resolved model. */
  readonly model?: string | ModelObject | ResolvedModel;
  /** What decides in stages without an envelope; `ask` when omitted. It never approves what is outside an envelope. */
  readonly mode?: SecurityMode;
  /** Tool patterns for mode `allowlist`. */
  readonly allow?: readonly string[];
  /** Stages at work at once, over all runs of the session; 4 when omitted. */
  readonly maxParallel?: number;
  /**
   * Where runs are kept. In memory when omitted: then nothing survives the process. A function is called when the first run
   * has passed every check, so that a run which cannot start leaves nothing behind; what it opened is closed with the session.
   * A host may be shared by several sessions, and is closed by whoever opened it.
   */
  readonly store?: RunHost | (() => RunHost);
  /** Who can answer requests. With none, and without `wait`, whatever needs a person is denied. */
  readonly interactors?: readonly Interactor[];
  /** Leaves requests open for answers from any process; with a number, a run whose request stays open so many milliseconds is suspended. */
  readonly wait?: boolean | number;
  /**
   * Hears of each request that other processes can answer only with this one-time code (`sluice answer --code`): the run has started
   * a process without a wall, which could write an answer itself. Show it on this process's terminal and nowhere else: not in
   * a log, a file or a stream that such a process may read.
   */
  readonly onCode?: (request: OpenRequest, code: string) => void;
  /** A request nobody answers within this many milliseconds is denied with cause `timeout`. Never when omitted. */
  readonly requestTimeoutMs?: number;
  /** Added to the built-in tools; one with a built-in's name takes its place. */
  readonly tools?: readonly Tool[];
  /**
   * MCP servers by name, whose tools become `mcp__<name>__<tool>`. Each is started by the first run with a stage that could
   * call it, and ended with the session. Needs the package `@ai-sdk/mcp`.
   */
  readonly mcpServers?: McpServers;
  /** Added to the kinds that come with Sluice. */
  readonly executors?: readonly StateExecutor[];
  /** Asked about every approved call, before the pipeline's and the state's own hooks. */
  readonly onCall?: GuardHook;
  /**
   * Absolute real paths of files and folders that no run may write, such as the code it is made of. Every workspace protects
   * `.git`, `.sluice` and `sluice.config.*` besides.
   */
  readonly protectedPaths?: readonly string[];
  /**
   * The OS sandbox that commands run behind: `try` (default) uses one where it can be built, `require` runs no command without
   * one, `off` uses none.
   */
  readonly sandbox?: SandboxMode | SandboxSettings;
  /** The workspace; the process's working directory when omitted. */
  readonly cwd?: string;
  /** Where keys and settings are read, and what child processes get, less the secrets; `process.env` when omitted. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Further environment variables whose values are secrets: redacted everywhere and kept from child processes. */
  readonly secrets?: readonly string[];
  /** Variables that child processes get although they look like secrets (`*_TOKEN`, `*_API_KEY`, …); still redacted. */
  readonly passEnv?: readonly string[];
  /** Base URLs by provider; they win over the environment. */
  readonly baseUrls?: Readonly<Record<string, string>>;
  /**
   * Prices and limits of models by id, or by the beginning of ids with a `*` (`ollama/*`); they win over what is built in. Prices in US
   * dollars for a million tokens, limits in tokens. Where a cap on money holds, a model without a price is an error.
   */
  readonly prices?: Readonly<Record<string, PriceOption>>;
  /** Records or replays what all models are asked and answer: `recordTraffic(file)`, `playbackTraffic(file)`. */
  readonly traffic?: ModelTraffic;
  /** Follows runs as they work, such as `openTelemetry()` of `@sluice/stages/opentelemetry`. */
  readonly telemetry?: Telemetry;
  readonly clock?: Clock;
  /**
   * Hears of failures that a run survives: an interactor that crashed, a late answer, a tool of an MCP server that cannot be
   * offered, telemetry that throws, a sandbox that cannot be built.
   */
  readonly onFault?: (fault: InteractionFault | McpFault | TelemetryFault | SandboxFault) => void;
}
