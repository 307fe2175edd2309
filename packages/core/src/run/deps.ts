import type { Clock } from "../base/clock.ts";
import type { JsonObject } from "../base/json.ts";
import type { ProjectFacts } from "../definition/result.ts";
import type { PipelineSpec } from "../definition/spec.ts";
import type { GuardHook, ProviderFaultOptions } from "../definition/state-rules.ts";
import type { SecurityMode } from "../gate/decide.ts";
import type { Envelope } from "../gate/envelope.ts";
import type { ToolCall, ToolResult, Workspace } from "../gate/subjects.ts";
import type { Tool } from "../gate/tool.ts";
import type { SecretFilter } from "../journal/redaction.ts";
import type { StartAt } from "../machine/start-at.ts";
import type { StateExecutor } from "./executor.ts";
import type { ConcurrencySlots } from "./limits/concurrency-slot.ts";
import type { AnswerRule, People } from "./requests/answer.ts";

export const SECURITY_MODES: readonly SecurityMode[] = ["ask", "allowlist", "yolo"];

/** What a session provides to a run. All of it lives in the process and none of it is journaled. */
export interface RunDeps {
  readonly clock: Clock;
  readonly executors: ReadonlyMap<string, StateExecutor>;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly mode: SecurityMode;
  /** The session's list for mode `allowlist`. */
  readonly allow: Envelope;
  /** Names of built-in tools: in mode `ask` those that do not write need no approval. */
  readonly builtins: ReadonlySet<string>;
  /** Absolute paths that may not be written, besides those protected in every workspace. */
  readonly protectedPaths?: readonly string[];
  /** The session's guard hook, called before those of the pipeline and the state. */
  readonly onCall?: GuardHook;
  readonly workspace: Workspace;
  /** What states do about faults of a provider, where neither they nor their pipelines say it. */
  readonly providerFaults?: ProviderFaultOptions;
  /**
   * Prepares a pipeline that was made during the run, and returns what the start of its run records in addition. Throws Validation
   * `session_invalid` if it cannot run here.
   */
  admit?(spec: PipelineSpec): Promise<JsonObject>;
  /** Where the run starts, if not in the initial state. Not for its children. */
  readonly from?: StartAt;
  /** Reads what the pipeline needs of its project's files; absent if it needs nothing. */
  readonly project?: ProjectReader;
  /** Environment of child processes, without the session's secrets. */
  readonly env: Readonly<Record<string, string>>;
  readonly secrets: SecretFilter;
  readonly slots: ConcurrencySlots;
  readonly people: People;
  /** For this run and its siblings only. */
  readonly answers: AnswerRule;
  /** How many read calls of one group run concurrently. */
  readonly maxParallelReads: number;
  /** Tool calls of this session: those running now, and all that were started. */
  readonly atWork: { count: number; started: number };
  /** Kills processes of a call that outlived their run; called before a writing call is recovered. */
  endSurvivors?(idempotencyKey: string): Promise<void>;
  /** Wraps every approved call, to run it inside a trace for example. */
  readonly around?: CallAround;
}

export interface ProjectReader {
  /** Masks what it cuts. The run masks the rest. */
  read(secrets: SecretFilter): Promise<ProjectFacts>;
  /** Whether this run's journal begins with the step that records it. Without it, a run that continues with a changed pipeline reads again. */
  readonly recorded: boolean;
}

/** Has to call `work` once, synchronously, and return its result. */
export type CallAround = (call: ToolCall, tool: string, work: () => Promise<ToolResult>) => Promise<ToolResult>;
