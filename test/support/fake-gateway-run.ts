import { type Clock, type Json, type JsonObject, systemClock, type ToolEffect } from "@sluice/core";
import { digestOf } from "@sluice/core/runtime";
import type { AgentCall, CallReply, GatewayRun, NativeVerdict, OpenQuestion, PhaseNow } from "@sluice/gateway";

/** What a tool of a fake run does. */
export interface FakeTool {
  readonly description?: string;
  readonly inputSchema?: JsonObject;
  readonly effect?: ToolEffect;
  /** A person has to approve each call. */
  readonly gated?: boolean;
  run?(call: AgentCall): CallReply | Promise<CallReply>;
}

/** A run without a session: for tests of what stands in front of runs. */
export interface FakeRun extends GatewayRun {
  /** Calls that the run got, attached ones included. */
  readonly calls: readonly AgentCall[];
  /** Gated calls that were approved and ran. */
  readonly ran: readonly AgentCall[];
  readonly answers: readonly { readonly requestId: string; readonly answer: unknown; readonly by: string }[];
  readonly open: ReadonlyMap<string, OpenQuestion>;
}

export function said(text: string, output: Json = text): CallReply {
  return { ok: true, output, text };
}
export function refusedWith(text: string): CallReply {
  return { ok: false, output: { code: "tool_call_denied" }, text };
}

interface Gated {
  readonly question: OpenQuestion;
  readonly call: AgentCall;
  readonly done: PromiseWithResolvers<CallReply>;
}

export function fakeRun(
  tools: Readonly<Record<string, FakeTool>>,
  options: { readonly clock?: Clock; readonly runId?: string } = {},
): FakeRun {
  const { clock = systemClock, runId = "run-1" } = options;
  const calls: AgentCall[] = [];
  const ran: AgentCall[] = [];
  const answers: { requestId: string; answer: unknown; by: string }[] = [];
  const open = new Map<string, OpenQuestion>();
  const gated = new Map<string, Gated>();
  const listeners = new Set<(now: PhaseNow) => void>();
  let started = false;

  const now = (): PhaseNow => {
    const waiting = open.values().next().value;
    return {
      status: waiting === undefined ? "working" : "waiting",
      ...(started ? { runId } : {}),
      state: "work",
      tools: Object.keys(tools),
      ...(waiting === undefined ? {} : { waiting }),
      text: "You are in the state work.",
    };
  };
  const tell = (): void => {
    for (const listener of [...listeners]) listener(now());
  };

  const gate = (call: AgentCall): Gated => {
    const key = digestOf([call.tool, call.input]);
    const known = gated.get(key);
    if (known !== undefined) return known;
    const requestId = `req-${gated.size + answers.length + 1}`;
    const question: OpenQuestion = {
      runId,
      requestId,
      digest: key,
      question: `approve ${call.tool}`,
      whole: `approve ${call.tool}`,
      command: `sluice answer ${runId} ${requestId} approve`,
    };
    const made: Gated = { question, call, done: Promise.withResolvers<CallReply>() };
    gated.set(key, made);
    open.set(question.requestId, question);
    setImmediate(tell);
    return made;
  };

  const gatedReply = async (call: AgentCall): Promise<CallReply> => {
    const { question, done } = gate(call);
    const patience = Promise.withResolvers<CallReply>();
    let disarm = (): void => undefined;
    const wait = (): void => {
      disarm = clock.after(call.patienceMs ?? 45_000, () => {
        // A form that shows the request is still open.
        if (call.asking?.()?.requestId === question.requestId) {
          wait();
          return;
        }
        patience.resolve({
          ok: false,
          output: { code: "request_open" },
          text: `a person has to decide: sluice answer ${runId} ${question.requestId}; make the same call again`,
          waiting: question,
        });
      });
    };
    wait();
    // The same call made again attaches to the request of one that was given up.
    const left = Promise.withResolvers<undefined>();
    call.signal?.addEventListener("abort", () => left.resolve(undefined), { once: true });
    const reply = await Promise.race([done.promise, patience.promise, left.promise]);
    disarm();
    if (reply === undefined) return { ok: false, output: { code: "caller_left" }, text: "the agent gave up" };
    // A grant is for one call.
    if (reply.waiting === undefined) gated.delete(question.digest);
    return reply;
  };

  const reply = async (call: AgentCall): Promise<CallReply> => {
    started = true;
    if (call.tool === "get_state") return said(now().text, { state: "work" });
    const tool = Object.hasOwn(tools, call.tool) ? tools[call.tool] : undefined;
    if (tool === undefined) return refusedWith(`unknown_tool: there is no tool ${call.tool}`);
    if (tool.gated === true) return await gatedReply(call);
    return (await tool.run?.(call)) ?? said(`${call.tool} ran`);
  };

  return {
    calls,
    ran,
    answers,
    open,
    get runId() {
      return started ? runId : undefined;
    },
    tools: async () =>
      ["get_state", "transition", ...Object.keys(tools)].map((name) => ({
        name,
        description: tools[name]?.description ?? `The tool ${name}.`,
        inputSchema: tools[name]?.inputSchema ?? { type: "object", properties: {} },
        effect: tools[name]?.effect ?? "read",
      })),
    start: async () => {
      started = true;
    },
    call: (call) => {
      calls.push(call);
      const answer = reply(call);
      return {
        answer,
        verdict: answer.then(({ text }): NativeVerdict => ({ kind: "deny", text })),
        report: () => undefined,
      };
    },
    now,
    onPhase: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    ended: new Promise(() => undefined),
    answer: async ({ requestId, digest }, answer, by) => {
      const question = open.get(requestId);
      if (question === undefined) return "already_answered";
      if (question.digest !== digest) return "digest_mismatch";
      const waiting = gated.get(digest);
      open.delete(requestId);
      answers.push({ requestId, answer, by });
      if (waiting !== undefined) {
        if (answer.kind === "approve") {
          ran.push(waiting.call);
          waiting.done.resolve(
            (await tools[waiting.call.tool]?.run?.(waiting.call)) ?? said(`${waiting.call.tool} ran`),
          );
        } else {
          waiting.done.resolve(
            refusedWith(`denied: ${answer.kind === "deny" ? (answer.reason ?? "no reason") : answer.kind}`),
          );
        }
      }
      tell();
      return "accepted";
    },
    close: async () => undefined,
  };
}
