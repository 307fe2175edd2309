import { type Clock, isJsonObject } from "@sluice/core";
import { digestOf } from "@sluice/core/runtime";
import type { NativeReport, PendingCall } from "../run/gateway-run-types.ts";
import { LOST_REPORT } from "../run/words.ts";
import type { CallEvent, MappedCall, ReportEvent } from "./hook-adapter.ts";

/** How long a new call waits for the report of an earlier one of the same agent, before that report counts as missing. */
const REPORT_GRACE_MS = 5_000;
const MOST_CALLS = 256;

interface ApprovedCall {
  readonly session: string;
  readonly agent: string | undefined;
  readonly callId: string | undefined;
  /** The call as it was made, and as it may run. */
  readonly keys: ReadonlySet<string>;
  readonly runs: string;
  readonly pending: Pick<PendingCall, "report">;
  /** Whether the host has asked for permission. */
  asked: boolean;
  /** Whether its report is due. */
  due: boolean;
}

/** The calls that hosts may run now: until a host reports one, or goes on without a report. */
export interface HookCalls {
  /** `as` is the call as it may run, if that differs. */
  approve(event: CallEvent, as: MappedCall, pending: Pick<PendingCall, "report">): void;
  /** Whether a permission that names no call is for one that was approved. Each approval counts once. */
  permits(event: CallEvent): boolean;
  report(event: ReportEvent): void;
  /** The agent makes another call: earlier ones are reported soon, or not at all. */
  expectReports(session: string, agent: string | undefined): void;
  /** The agent has gone on: no report of its calls comes any more. */
  settle(session: string, agent: string | undefined): void;
  /** The same for all agents of a session. */
  settleAll(session: string): void;
}

export function hookCalls(clock: Clock): HookCalls {
  let calls: ApprovedCall[] = [];
  const end = (call: ApprovedCall, result: NativeReport): void => {
    calls = calls.filter((one) => one !== call);
    call.pending.report(result);
  };
  const lose = (call: ApprovedCall): void => {
    if (calls.includes(call)) end(call, LOST_REPORT);
  };

  return {
    approve: ({ session, agent, callId, call }, as, pending) => {
      const [oldest] = calls;
      if (oldest !== undefined && calls.length >= MOST_CALLS) lose(oldest);
      const runs = keyOf(as);
      calls.push({
        session,
        agent,
        callId,
        keys: new Set([keyOf(call), runs]),
        runs,
        pending,
        asked: false,
        due: false,
      });
    },
    permits: ({ session, call }) => {
      const key = keyOf(call);
      const found = calls.find((one) => one.session === session && !one.asked && one.runs === key);
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
    expectReports: (session, agent) => {
      for (const call of calls) {
        if (call.session !== session || call.agent !== agent || call.due) continue;
        call.due = true;
        clock.after(REPORT_GRACE_MS, () => lose(call));
      }
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

/** A call of a shell with another line. */
export function withCommand(call: MappedCall, command: string): MappedCall {
  if (call.kind !== "call" || !isJsonObject(call.input)) return call;
  return { ...call, input: { ...call.input, command } };
}
