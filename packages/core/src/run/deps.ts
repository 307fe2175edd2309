import type { Clock } from "../base/clock.ts";
import type { GuardHook } from "../definition/state-rules.ts";
import type { SecurityMode } from "../gate/decide.ts";
import type { Envelope } from "../gate/envelope.ts";
import type { ToolCall, ToolResult, Workspace } from "../gate/subjects.ts";
import type { Tool } from "../gate/tool.ts";
import type { SecretFilter } from "../journal/redaction.ts";
import type { OpenRequest } from "../journal/seam.ts";
import type { AnswerSeal } from "../people/answer-proof.ts";
import type { StateExecutor } from "./executor.ts";
import type { ConcurrencySlots } from "./limits/concurrency-slot.ts";
import type { AnswerRule } from "./tool-calls/answer-rule.ts";

/** What a session brings to a run. Everything here lives in the process; nothing of it is journaled. */
export interface RunDeps {
  readonly clock: Clock;
  readonly executors: ReadonlyMap<string, StateExecutor>;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly mode: SecurityMode;
  /** The list of the `allowlist` mode. */
  readonly allow: Envelope;
  /** Tools that come with Sluice: in mode `ask` those that do not write need no prompt. */
  readonly builtins: ReadonlySet<string>;
  /** Absolute paths that are not to be written besides the ones every workspace protects. */
  readonly protectedPaths?: readonly string[];
  /** The session's guard hook; asked before the pipeline's and the state's. */
  readonly onCall?: GuardHook;
  readonly workspace: Workspace;
  /** For child processes; without the session's secrets. */
  readonly env: Readonly<Record<string, string>>;
  readonly secrets: SecretFilter;
  readonly slots: ConcurrencySlots;
  readonly people: People;
  /** Of this run and its siblings alone. */
  readonly answers: AnswerRule;
  /** Read calls of one group that run side by side. */
  readonly maxParallelReads: number;
  /** Calls of this session at work now. */
  readonly atWork: { count: number; started: number };
  /** Ends processes that outlived the run that started them; called before a writing call is recovered. */
  endSurvivors?(idempotencyKey: string): Promise<void>;
  /** Puts the work of every approved call into somebody's context, such as a trace's. */
  readonly around?: CallAround;
}

/** Runs the work of an approved call: begins it once and at once, and returns what it returns. */
export type CallAround = (call: ToolCall, tool: string, work: () => Promise<ToolResult>) => Promise<ToolResult>;

/** The way to people, as runs see it: requests go in, answers come back as signals. */
export interface People {
  /** Whether anybody could answer now or later. Without, requests are denied at once with `no_interactor`. */
  reachable(): boolean;
  /** `seal` is what answers given in this process are proved with; it is gone with the process. */
  offer(request: OpenRequest, seal: AnswerSeal): void;
  withdraw(runId: string, requestId: string): void;
}
