import type { Answer, Json, JsonObject, SignalOutcome, ToolEffect } from "@sluice/core";
import type { RunResult } from "@sluice/stages";

/** A tool that an agent sees. */
export interface GatewayTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  readonly effect: ToolEffect;
}

/** A call of an agent. */
export interface AgentCall {
  readonly tool: string;
  readonly input: Json;
  /** The tool is one of the agent's own: the run only decides, and the agent's program runs it. */
  readonly native?: true;
  /** Which of the agent's own agents made it; absent for the main one. */
  readonly agent?: string;
  /** Gives up on the answer. A call that has begun is not stopped. */
  readonly signal?: AbortSignal;
  /** How long to wait for a person, in milliseconds, before the answer is that a request is open. */
  readonly patienceMs?: number;
  /** The request that a person sees in a form. A call that waits for it has no other answer until the form is closed. */
  readonly asking?: () => Pick<OpenQuestion, "runId" | "requestId"> | undefined;
}

/** The answer to a call. */
export interface CallReply {
  readonly ok: boolean;
  readonly output: Json;
  /** What the agent reads. */
  readonly text: string;
  /** The same apart: results of calls, and what the gateway says itself. Absent if all of it is one of them. */
  readonly parts?: readonly ReplyPart[];
  /** The call still waits for a person. The same call made again takes the answer. */
  readonly waiting?: OpenQuestion;
}

/** A result may hold any text, also one that poses as the gateway's: a channel with room keeps the parts apart. */
export interface ReplyPart {
  readonly by: "gateway" | "result";
  readonly text: string;
}

/** A request of the run that a person has to answer. */
export interface OpenQuestion {
  readonly runId: string;
  readonly requestId: string;
  readonly digest: string;
  /** What is asked, in one line, which may leave out parts of a call and what looks like a secret. */
  readonly question: string;
  /** All that an approval would run, in rows for a form; absent if that is too long for one, and for what takes no approval. */
  readonly whole?: string;
  /** The command with which a person answers. */
  readonly command: string;
}

/** What the gate decided about a native call. */
export type NativeVerdict =
  /** `input` is the one that may run, which may differ from the given one. */
  | { readonly kind: "allow"; readonly input: Json }
  | { readonly kind: "deny"; readonly text: string; readonly waiting?: OpenQuestion };

/** A call that was passed to the run. */
export interface PendingCall {
  /** Of a native call: settles when the gate has decided. */
  readonly verdict: Promise<NativeVerdict>;
  readonly answer: Promise<CallReply>;
  /** Of a native call: what the agent's program reports about a call that was allowed. Only the first report counts. */
  report(result: NativeReport): void;
}

/** How a native call ended. */
export interface NativeReport {
  readonly ok: boolean;
  readonly output: Json;
  /** It may have changed any file, because it is unknown how it ended. */
  readonly changesUnknown?: true;
}

/** What an agent should know now. */
export interface PhaseNow {
  /** `busy`: the run works without the agent, in a script for example. */
  readonly status: "not_started" | "working" | "waiting" | "busy" | "ended";
  readonly runId?: string;
  readonly state?: string;
  /** The tools that the phase may use. */
  readonly tools: readonly string[];
  readonly waiting?: OpenQuestion;
  /** Absent if the run could not start, or ended with an error and can be resumed. */
  readonly end?: {
    readonly status: string;
    readonly message?: string;
    /** The run has completed, and its workflow frees the agent's own tools then. */
    readonly isReleased?: true;
  };
  /** All of it in words. */
  readonly text: string;
}

/** A run whose agent states are worked on by an agent of another program. */
export interface GatewayRun {
  /** Undefined until the run starts: a client that only connects starts none. */
  readonly runId: string | undefined;
  /** Work tools of all agent states, `transition` and `get_state`, by name; the same for the whole run. */
  tools(): Promise<readonly GatewayTool[]>;
  /** Starts the run unless it has started. `task` is used if the run's input has no task. Rejects if it cannot start. */
  start(task?: string): Promise<void>;
  /** Passes a call to the run, which it starts if necessary. Every failure is an answer. */
  call(call: AgentCall): PendingCall;
  /** What the agent should know now. Journals nothing and counts as no turn. */
  now(): PhaseNow;
  /** Called when the phase has changed. Returns a function that removes the listener. */
  onPhase(listener: (now: PhaseNow) => void): () => void;
  /** How the run ended or why it is suspended. Rejects if it cannot start. */
  readonly ended: Promise<RunResult<unknown>>;
  /** Answers a request of this run on behalf of this process's user. */
  answer(
    request: Pick<OpenQuestion, "runId" | "requestId" | "digest">,
    answer: Answer,
    by: string,
  ): Promise<SignalOutcome>;
  /** Suspends the run and closes its session. */
  close(): Promise<void>;
}
