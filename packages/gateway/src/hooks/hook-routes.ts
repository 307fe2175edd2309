import { type Clock, isJsonObject, isSluiceError, type Json, parseJson, systemClock } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import type { Route } from "../mcp/route.ts";
import type { GatewayRun } from "../run/gateway-run-types.ts";
import { GET_STATE } from "../run/words.ts";
import { type HookProof, NONCE_HEADER } from "./answer-proof.ts";
import {
  type CallEvent,
  type HookAdapter,
  type HookAnswer,
  type HookDecision,
  type HookEvent,
  invalidPayload,
} from "./hook-adapter.ts";
import { hookCalls, withCommand } from "./hook-calls.ts";
import { REFUSED_TOOL } from "./tools/native-tools.ts";

export interface HookRoutesOptions {
  readonly run: Pick<GatewayRun, "call" | "now" | "start">;
  readonly adapters: readonly HookAdapter[];
  /** Gets the session that drives the run from now on; undefined once that has ended. */
  readonly onDriver?: (session: string | undefined) => void;
  /** Signs the answers to launchers, which recognize the gateway by it. */
  readonly proof?: HookProof;
  /** How long a call waits for a person, in milliseconds. Has to be below the time limit of the hook. */
  readonly patienceMs?: number;
  readonly clock?: Clock;
  /** Faults that are not shown to a host. */
  readonly onError?: (error: Error) => void;
}

/** `/hook/<host>?event=<name>` of each adapter: decides about what its host reports. Every failure is a refusal. */
export function hookRoutes(options: HookRoutesOptions): readonly Route[] {
  const { adapters, proof, onError = () => undefined } = options;
  const driver = oneDriver(options.onDriver);
  return adapters.map((adapter) => {
    const decide = hookDecider(adapter, driver, options);
    return {
      path: `/hook/${adapter.host}`,
      handle: async (req, body, res) => {
        const event = new URL(req.url ?? "/", "http://localhost").searchParams.get("event") ?? undefined;
        const left = new AbortController();
        res.once("close", () => {
          if (!res.writableFinished) left.abort();
        });
        let answer: HookAnswer;
        try {
          answer = await decide(event, body, left.signal);
        } catch (thrown) {
          if (!isSluiceError(thrown, "hook_payload_invalid"))
            onError(thrown instanceof Error ? thrown : new Error(messageOf(thrown)));
          answer = adapter.refuse(event, messageOf(thrown));
        }
        const nonce = req.headers[NONCE_HEADER];
        const signed =
          proof === undefined || typeof nonce !== "string"
            ? answer.body
            : `${answer.body}\n${proof.lineFor(nonce, answer.body)}`;
        res.writeHead(answer.status, { "Content-Type": "application/json", "Cache-Control": "no-store" });
        res.end(signed);
      },
    };
  });
}

type Decide = (event: string | undefined, body: Buffer, signal: AbortSignal) => Promise<HookAnswer>;

function hookDecider(adapter: HookAdapter, driver: Driver, options: HookRoutesOptions): Decide {
  const { run, patienceMs, clock = systemClock } = options;
  const calls = hookCalls(clock, adapter);
  /** Refused stops in a row, by session: those of one phase since its last prompt. */
  const stops = new Map<string, { readonly state: string | undefined; readonly refused: number }>();

  const beforeCall = async (event: CallEvent, signal: AbortSignal): Promise<HookDecision> => {
    const { session, agent, call } = event;
    if (call.kind === "own" || call.kind === "harmless") return { kind: "allow" };
    if (call.kind === "writes") return { kind: "deny", reason: NOT_APPROVED };
    const { tool, input }: { readonly tool: string; readonly input: Json } =
      call.kind === "refused" ? { tool: REFUSED_TOOL, input: { tool: event.native.tool, reason: call.reason } } : call;
    const decided = calls.awaits(session, agent);
    const pending = run.call({
      tool,
      input,
      native: true,
      signal,
      ...(agent === undefined ? {} : { agent }),
      ...(patienceMs === undefined ? {} : { patienceMs }),
    });
    const verdict = await pending.verdict.finally(decided);
    if (verdict.kind === "deny") return { kind: "deny", reason: verdict.text };
    const refuse = (reason: string): HookDecision => {
      pending.report({ ok: false, output: { code: "not_run", message: reason } });
      return { kind: "deny", reason };
    };
    if (call.kind === "refused") return refuse(call.reason);
    if (signal.aborted) return refuse("the host did not wait for the decision");
    const approved = commandIn(verdict.input);
    const given = commandIn(call.input);
    const isChanged = approved !== undefined && approved !== given;
    if (isChanged && adapter.rewrites === "ignores" && !isPlainLine(given ?? "")) return refuse(rewriteText(approved));
    const line = isChanged && adapter.rewrites === "runs" ? adapter.lineFor(event, approved) : undefined;
    calls.approve(event, line === undefined ? call : withCommand(call, line), pending);
    if (call.spans) pending.report({ ok: true, output: STARTED });
    return { kind: "allow", ...(line === undefined ? {} : { command: line }) };
  };

  const permission = (event: CallEvent): HookDecision => {
    if (event.call.kind === "own" || event.call.kind === "harmless") return { kind: "allow" };
    return calls.permits(event) ? { kind: "allow" } : { kind: "deny", reason: NOT_APPROVED };
  };

  /** What the agent should know, once the run has a phase. */
  const context = async (task: string): Promise<HookDecision> => {
    try {
      await run.start(task);
      const { text } = await run.call({ tool: GET_STATE, input: {} }).answer;
      return { kind: "context", text };
    } catch (thrown) {
      return {
        kind: "context",
        text: `The workflow could not start, so every tool call is refused: ${messageOf(thrown)}`,
      };
    }
  };

  const stop = ({ session, agent }: HookEvent): HookDecision => {
    calls.settle(session, agent);
    const { status, state, text } = run.now();
    const last = stops.get(session);
    const refused = last !== undefined && last.state === state ? last.refused : 0;
    if ((status !== "working" && status !== "busy") || refused >= adapter.refusedStops) return { kind: "continue" };
    stops.set(session, { state, refused: refused + 1 });
    return { kind: "block", reason: `${NOT_OVER}\n\n${text}` };
  };

  const decide = async (event: HookEvent, signal: AbortSignal): Promise<HookDecision> => {
    const { session } = event;
    switch (event.kind) {
      case "pre": {
        const other = driver.claim(adapter.host, session);
        if (other !== undefined) return { kind: "deny", reason: other };
        return await beforeCall(event, signal);
      }
      case "permission":
        return driver.isOf(adapter.host, session) ? permission(event) : { kind: "deny", reason: NOT_APPROVED };
      case "post":
        calls.report(event);
        return { kind: "continue" };
      case "prompt": {
        // What an agent asks another one is not a prompt of a person.
        if (event.agent !== undefined) return { kind: "context", text: run.now().text };
        const other = driver.claim(adapter.host, session);
        if (other !== undefined) return { kind: "context", text: other };
        calls.settleAll(session);
        // Some hosts report each round of their agent as a prompt, and the reason of a refused stop.
        if (event.prompt.trim() === "" || event.prompt.includes(NOT_OVER)) return { kind: "continue" };
        stops.delete(session);
        return await context(event.prompt);
      }
      case "session_start":
        return { kind: "context", text: run.now().text };
      case "stop":
        return driver.isOf(adapter.host, session) ? stop(event) : { kind: "continue" };
      case "subagent_stop":
        if (event.agent !== undefined) calls.settle(session, event.agent);
        return { kind: "continue" };
      case "session_end":
        calls.settleAll(session);
        stops.delete(session);
        driver.release(adapter.host, session);
        return { kind: "continue" };
      case "config_change":
        return { kind: "block", reason: "The host's configuration must not change while a workflow binds it." };
      case "subagent_start":
      case "elicitation":
      case "other":
        return { kind: "continue" };
    }
  };

  return async (name, body, signal) => {
    const payload = parseJson(decoded(body));
    if (!payload.ok) throw invalidPayload("it is not JSON");
    const event = adapter.read(name, payload.value);
    return adapter.answer(event, await decide(event, signal));
  };
}

/** The one session that drives the run: what a second one does would be judged for the first one's phase. */
interface Driver {
  /** Why this session may not drive the run. */
  claim(host: string, session: string): string | undefined;
  isOf(host: string, session: string): boolean;
  release(host: string, session: string): void;
}

function oneDriver(onDriver: HookRoutesOptions["onDriver"] = () => undefined): Driver {
  let holder: string | undefined;
  const keyOf = (host: string, session: string): string => JSON.stringify([host, session]);
  return {
    claim: (host, session) => {
      if (holder === undefined) {
        onDriver(session);
        holder = keyOf(host, session);
      }
      if (holder === keyOf(host, session)) return undefined;
      return `Another agent works on this run: the session ${holder}. End it first, or start a run of your own.`;
    },
    isOf: (host, session) => holder === keyOf(host, session),
    release: (host, session) => {
      if (holder !== keyOf(host, session)) return;
      holder = undefined;
      onDriver(undefined);
    },
  };
}

function commandIn(input: Json): string | undefined {
  const command = isJsonObject(input) ? input.command : undefined;
  return typeof command === "string" ? command : undefined;
}

/**
 * Whether every word of a line is what it says, so that the line means the same as the one it was rewritten to. For hosts that run
 * the agent's own line.
 */
function isPlainLine(line: string): boolean {
  const unquoted = line.replaceAll(/'[^']*'/g, "").replaceAll(/"[^"$`\\!]*"/g, "");
  return !/[*?[\]{}~$`!()\\#"'^]/.test(unquoted);
}

function rewriteText(approved: string): string {
  return `This agent's host can only run a command line as it was written, and the workflow approved this one with its patterns and variables replaced. Write the line without them: ${approved}`;
}

const STARTED: Json = "It was started. Its end is not awaited.";
const NOT_APPROVED = "The permission gate has not approved this call.";
const NOT_OVER =
  "The workflow is not at its end. Continue with the phase, and leave it by calling transition with one of its events.";

function decoded(body: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    throw invalidPayload("it is not UTF-8");
  }
}
