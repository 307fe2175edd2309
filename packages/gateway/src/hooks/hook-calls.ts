import { type Clock, isJsonObject } from "@sluice/core";
import { digestOf } from "@sluice/core/runtime";
import type { NativeReport, PendingCall } from "../run/gateway-run-types.ts";
import { LOST_REPORT, STARTED_TOGETHER } from "../run/words.ts";
import type { CallEvent, MappedCall, ReportEvent } from "./hook-adapter.ts";

/** How long a new call waits for the report of an earlier one of the same agent, before that report counts as missing. */
const REPORT_GRACE_MS = 5_000;
/** The same for hosts that run none of several calls before all are decided: only what arrives at the same time is waited for. */
const TOGETHER_GRACE_MS = 50;
const MOST_CALLS = 256;

interface ApprovedCall {
  readonly session: string;
  readonly agent: string | undefined;
  readonly callId: string | undefined;
  /** The call as it was made, and as it may run. */
  readonly keys: ReadonlySet<string>;
  readonly runs: string;
  /** The file that it writes. */
  readonly writes: string | undefined;
  readonly pending: Pick<PendingCall, "report">;
  /** Whether the host has asked for permission. */
  asked: boolean;
  /** Whether its report is due. */
  due: boolean;
}

/** The calls that hosts may run now: until a host reports one, or continues without a report. */
export interface HookCalls {
  /** `as` is the call as it may run, if that differs. */
  approve(event: CallEvent, as: MappedCall, pending: Pick<PendingCall, "report">): void;
  /** Whether a permission that names no call is for one that was approved. Each approval counts once. */
  permits(event: CallEvent): boolean;
  report(event: ReportEvent): void;
  /** The agent waits for a decision about another call: earlier ones are reported soon, or not at all. Call the result when it is made. */
  awaits(session: string, agent: string | undefined): () => void;
  /** The agent has continued: no report of its calls comes any more. */
  settle(session: string, agent: string | undefined): void;
  /** The same for all agents of a session. */
  settleAll(session: string): void;
}

export function hookCalls(clock: Clock, { startsTogether }: { readonly startsTogether: boolean }): HookCalls {
  let calls: ApprovedCall[] = [];
  const waits = new Set<{ readonly session: string; readonly agent: string | undefined }>();
  const end = (call: ApprovedCall, result: NativeReport): void => {
    calls = calls.filter((one) => one !== call);
    call.pending.report(result);
  };
  const lose = (call: ApprovedCall): void => {
    if (calls.includes(call)) end(call, LOST_REPORT);
  };
  /** The report of a call is due, because another one waits for it. */
  const expect = (call: ApprovedCall): void => {
    if (call.due) return;
    call.due = true;
    const [ms, result] = startsTogether ? [TOGETHER_GRACE_MS, STARTED_TOGETHER] : [REPORT_GRACE_MS, LOST_REPORT];
    // It stays, since its host may still ask for its permission.
    clock.after(ms, () => {
      if (calls.includes(call)) call.pending.report(result);
    });
  };

  return {
    approve: ({ session, agent, callId, call }, as, pending) => {
      const [oldest] = calls;
      if (oldest !== undefined && calls.length >= MOST_CALLS) lose(oldest);
      const runs = keyOf(as);
      const added: ApprovedCall = {
        session,
        agent,
        callId,
        keys: new Set([keyOf(call), runs]),
        runs,
        writes: fileOf(call),
        pending,
        asked: false,
        due: false,
      };
      calls.push(added);
      if ([...waits].some((wait) => wait.session === session && wait.agent === agent)) expect(added);
    },
    permits: ({ session, call }) => {
      const key = keyOf(call);
      const fits = (one: ApprovedCall): boolean =>
        call.kind === "writes" ? one.writes === call.path : one.runs === key;
      const found = calls.find((one) => one.session === session && !one.asked && fits(one));
      if (found === undefined) return false;
      found.asked = true;
      return true;
    },
    report: ({ session, agent, callId, call, result }) => {
      const own = calls.filter((one) => one.session === session);
      const key = keyOf(call);
      const found =
        callId === undefined
          ? own.find((one) => one.agent === agent && one.keys.has(key))
          : own.find((one) => one.callId === callId);
      if (found !== undefined) end(found, result);
    },
    awaits: (session, agent) => {
      const wait = { session, agent };
      waits.add(wait);
      for (const call of calls) if (call.session === session && call.agent === agent) expect(call);
      return () => void waits.delete(wait);
    },
    settle: (session, agent) => {
      for (const call of [...calls]) if (call.session === session && call.agent === agent) lose(call);
    },
    settleAll: (session) => {
      for (const call of [...calls]) if (call.session === session) lose(call);
    },
  };
}

/** What has to be equal for two reports to be of one call: hosts drop settings that change nothing. */
function keyOf(call: MappedCall): string {
  if (call.kind !== "call") return call.kind;
  const { options: _options, folder: _folder, ...input } = call.input;
  return digestOf([call.tool, input]);
}

function fileOf(call: MappedCall): string | undefined {
  if (call.kind !== "call" || (call.tool !== "Edit" && call.tool !== "Write")) return undefined;
  const { file_path: path } = call.input;
  return typeof path === "string" ? path : undefined;
}

/** A call of a shell with another line. */
export function withCommand(call: MappedCall, command: string): MappedCall {
  if (call.kind !== "call" || !isJsonObject(call.input)) return call;
  return { ...call, input: { ...call.input, command } };
}
