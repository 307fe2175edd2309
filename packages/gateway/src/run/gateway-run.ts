import {
  type Answer,
  type Clock,
  type Json,
  type PipelineSpec,
  systemClock,
  type Tool,
  type ToolCall,
  type ToolEffect,
  type ToolResult,
} from "@sluice/core";
import { messageOf, unicodeFault, visible } from "@sluice/core/runtime";
import type { OutsideAgent, RunHandle, RunResult, Session, SessionOptions } from "@sluice/stages";
import { MODEL_KINDS } from "@sluice/stages/runtime";
import { agentModel } from "./agent-model.ts";
import { Exchange } from "./exchange.ts";
import type { CallReply, GatewayRun, GatewayTool, PendingCall, PhaseNow } from "./gateway-run-types.ts";
import { lastCalls, recordedResult } from "./recorded-calls.ts";
import { GET_STATE, gatewayPart, phaseText, replyWith, TRANSITION, waitingText } from "./words.ts";

/** What a gateway run adds to the options of its session. */
export type AgentSessionOptions = Required<Pick<SessionOptions, "traffic" | "onCall" | "maxParallel">> &
  Pick<SessionOptions, "tools">;

export interface GatewayRunOptions {
  readonly pipeline: { readonly spec: PipelineSpec };
  readonly agent: OutsideAgent;
  /** Makes the session, with these options in addition to its own. Its `onCall` has to be called before any other. */
  readonly session: (added: AgentSessionOptions) => Session;
  /** Starts or resumes the run. `task` is what the agent's user asked for, if that is known. */
  readonly begin: (session: Session, task: string | undefined) => RunHandle<unknown>;
  /** Whether requests stay open for a person. Without it, calls outside of the envelope are denied at once. */
  readonly wait: boolean;
  /** Makes the agent's own tools, if its program runs them: `handOver` waits until it has. */
  readonly native?: (handOver: (call: ToolCall, input: Json) => Promise<ToolResult>) => readonly Tool[];
  readonly clock?: Clock;
  /** The run that `begin` resumes. */
  readonly resumes?: string;
  /** Whether `begin` allows that its pipeline or tools have changed. */
  readonly allowChanged?: boolean;
}

/** Opens a run for an agent of another program. Nothing starts before the agent's first call. */
export function openGatewayRun(options: GatewayRunOptions): GatewayRun {
  const { pipeline, agent, begin, wait, native, resumes, allowChanged = false, clock = systemClock } = options;
  const listeners = new Set<(now: PhaseNow) => void>();
  const notify = (): void => {
    for (const listener of listeners) listener(now());
  };
  let effects: ReadonlyMap<string, ToolEffect> = new Map();
  /** How the run ended, or why it cannot continue. */
  let over: Pick<PhaseNow, "end" | "text"> | undefined;
  let starting: Promise<void> | undefined;
  let handle: RunHandle<unknown> | undefined;
  const ended = Promise.withResolvers<RunResult<unknown>>();
  // Those who wait for the end get the error; without them, the calls have reported it.
  ended.promise.catch(() => undefined);

  const exchange = new Exchange({
    clock,
    workTools: () => effects,
    masked: (input) => session.masked(input),
    recorded: (place) => recordedResult(session.host, place),
    isOver: async (runId) => (await session.host.get(runId))?.end !== undefined,
    onPhase: notify,
  });
  const model = agentModel(agent, (turn) => exchange.next(turn));
  const session = options.session({
    traffic: { model: async () => model, files: [] },
    // The calls of states of other kinds are none of the agent's.
    onCall: (call, ctx) => (MODEL_KINDS.has(call.kind) ? exchange.guard(call, ctx) : undefined),
    // An agent works on one state after the other.
    maxParallel: 1,
    ...(native === undefined ? {} : { tools: native((call, input) => exchange.handOver(call, input)) }),
  });
  if (wait) session.attach(exchange.observer);

  let listed: Promise<readonly GatewayTool[]> | undefined;
  const tools = (): Promise<readonly GatewayTool[]> => (listed ??= listTools());
  const listTools = async (): Promise<readonly GatewayTool[]> => {
    const offered = await session.tools(pipeline, resumes === undefined ? {} : { resumes, allowChanged });
    effects = new Map(offered.map(({ name, effect }) => [name, effect]));
    const work = offered.map(({ name, description, inputSchema, effect }) => ({
      name,
      description,
      inputSchema,
      effect,
    }));
    // Native tools are the agent's own; it is not offered them again.
    return [...(native === undefined ? work : []), ...OWN_TOOLS].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  };

  /** The calls that the run's last process left. What only read is simply made again, unless a person decided about it. */
  const adopt = async (runId: string): Promise<void> => {
    const earlier = await lastCalls(session.host, runId);
    const kept = earlier.filter(
      ({ tool, hasEnded, isDecided }) => !hasEnded || isDecided || effects.get(tool) !== "read",
    );
    exchange.adopt(
      kept.map(({ isJudged, isDecided: _decided, ...call }) => {
        if (call.tool === TRANSITION) return { ...call, native: false };
        if (effects.has(call.tool) || isJudged) return { ...call, native: native !== undefined };
        // Any other call that was not judged may complete a state, or was not reached.
        return native === undefined ? { ...asTransition(call), native: false } : call;
      }),
    );
  };
  const launch = async (task: string | undefined): Promise<void> => {
    await tools();
    if (resumes !== undefined) await adopt(resumes);
    const begun = begin(session, task);
    handle = begun;
    begun.then(
      async (end) => {
        const reply = endReply(end);
        const isReleased = end.status === "completed" && pipeline.spec.meta?.onFinal === "release";
        over = { end: { ...endOf(end), ...(isReleased ? { isReleased } : {}) }, text: reply.text };
        await exchange.end(reply, isReleased);
        ended.resolve(end);
      },
      async (thrown: unknown) => {
        const reply = faultReply("run_failed", `The run failed: ${messageOf(thrown)}`);
        over = { text: reply.text };
        await exchange.end(reply);
        ended.reject(thrown);
      },
    );
  };
  const started = (task?: string): Promise<void> => {
    starting ??= launch(task).catch((thrown: unknown) => {
      over = { text: notStarted(thrown).text };
      ended.reject(thrown);
      throw thrown;
    });
    return starting;
  };

  const now = (): PhaseNow => {
    const { phase, isOpen, waiting, awaited } = exchange.view;
    const facts = {
      ...(handle === undefined ? {} : { runId: handle.runId }),
      ...(phase === undefined ? {} : { state: phase.state }),
      tools: phase?.tools ?? [],
    };
    if (over !== undefined) return { ...facts, status: "ended", ...over };
    if (handle === undefined) return { ...facts, status: "not_started", text: NOT_STARTED };
    const own = phase === undefined ? "The run works without you at the moment." : phaseText(phase);
    const about = awaited === undefined ? own : `${own}\n\n${awaited}`;
    if (waiting !== undefined)
      return { ...facts, status: "waiting", waiting, text: `${about}\n\n${waitingText(waiting)}` };
    if (isOpen) return { ...facts, status: "working", text: about };
    return { ...facts, status: "busy", text: awaited === undefined ? `${about}\n\n${BUSY}` : about };
  };

  /** The state, once the run has one. */
  const stateReply = async (): Promise<CallReply> => {
    await started();
    if (now().state === undefined && now().status === "busy") await nextPhase(onPhase, clock);
    const news = exchange.takeNews();
    const { text, status, state, runId, tools: allowed } = now();
    const unread = news.filter((one) => one.by === "result" || !text.includes(one.text));
    const output: Json = {
      status,
      ...(state === undefined ? {} : { state }),
      runId: runId ?? null,
      tools: [...allowed],
    };
    return replyWith({ ok: true, output, text }, [...unread, gatewayPart(text)]);
  };
  const onPhase = (listener: (now: PhaseNow) => void): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };

  const call: GatewayRun["call"] = (given) => {
    if (given.tool === GET_STATE && given.native !== true) return answered(stateReply());
    // Nothing can be approved that has no digest.
    const fault = unicodeFault(given.input);
    if (fault !== undefined)
      return answered(Promise.resolve(faultReply("invalid_tool_input", `The arguments are no JSON: ${fault}`)));
    const pending = exchange.call(given);
    started().catch((thrown: unknown) => exchange.end(notStarted(thrown)));
    return pending;
  };

  return {
    get runId() {
      return handle?.runId;
    },
    tools,
    start: started,
    call,
    now,
    onPhase,
    ended: ended.promise,
    answer: (request, answer: Answer, by) => session.answer(request, answer, by),
    close: async () => {
      exchange.close();
      // The answers to its last calls are read from the store, which the session closes.
      if (handle !== undefined) await Promise.allSettled([handle.suspend(), ended.promise]);
      await session.close();
    },
  };
}

/** The tools with which an agent drives its run. People load, cancel, grant and resume, with commands. */
const OWN_TOOLS: readonly GatewayTool[] = [
  {
    name: TRANSITION,
    description:
      "Requests to leave the current phase by one of its events. get_state lists the events. A rejected transition says what is missing; you are then still in the phase.",
    inputSchema: {
      type: "object",
      properties: {
        event: { type: "string", description: "An event of the current phase." },
        data: {
          type: "object",
          description:
            "What the next phases have to know, with your reason as rationale, or the result that the phase asks for.",
        },
      },
      required: ["event"],
      additionalProperties: false,
    },
    effect: "read",
  },
  {
    name: GET_STATE,
    description:
      "Returns the current phase with its instructions, tools, events and any open request. Changes nothing. Call it first.",
    inputSchema: { type: "object", properties: {}, additionalProperties: false },
    effect: "read",
  },
];

const NOT_STARTED = "The workflow has not started. Call get_state to start it.";
const BUSY =
  "The run works without you at the moment, or has not taken your last call yet. Call get_state again later.";

function answered(answer: Promise<CallReply>): PendingCall {
  const reply = answer.catch(notStarted);
  return {
    answer: reply,
    verdict: reply.then(({ text }) => ({ kind: "deny", text })),
    report: () => undefined,
  };
}

/** Why there is no run, in words: an agent repeats them to its user. */
function notStarted(thrown: unknown): CallReply {
  return faultReply("run_not_started", `The run could not start: ${messageOf(thrown)}`);
}

function faultReply(code: string, message: string): CallReply {
  const text = visible(message);
  return replyWith({ ok: false, output: { code, message }, text }, [gatewayPart(text)]);
}

/** A call of the tool that completes a state, as an agent makes it. */
function asTransition<C extends { readonly tool: string; readonly input: Json }>(call: C): C {
  return { ...call, tool: TRANSITION, input: { event: call.tool, data: call.input } };
}

/** How long a state may take, such as a script, before the agent reads that the run works without it. */
const FIRST_PHASE_MS = 5_000;

function nextPhase(onPhase: GatewayRun["onPhase"], clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    const settle = (): void => {
      stop();
      disarm();
      resolve();
    };
    const stop = onPhase(settle);
    const disarm = clock.after(FIRST_PHASE_MS, settle);
  });
}

function endOf(result: RunResult<unknown>): NonNullable<PhaseNow["end"]> {
  const { status } = result;
  if (status === "completed") return { status, ...(result.state === undefined ? {} : { message: result.state }) };
  return { status, message: status === "suspended" ? result.reason : result.error.message };
}

function endReply(result: RunResult<unknown>): CallReply {
  const { status, runId } = result;
  const { message } = endOf(result);
  const how = message === undefined ? status : `${status} (${message})`;
  const over = `The run ${runId} of the workflow is over: ${how}. Its tools are not available any more.`;
  const left = `The run ${runId} of the workflow is ${how}. Its tools are not available until a person resumes it.`;
  const text = status === "suspended" ? left : over;
  return replyWith({ ok: false, output: { code: "run_ended", status }, text }, [gatewayPart(text)]);
}
