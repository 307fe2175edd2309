import { field, type Json, type JsonObject } from "@sluice/core";
import { readEvents } from "@sluice/core/host";
import { digestOf } from "@sluice/core/runtime";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Acted,
  type CallScenario,
  type CallTrace,
  callScenario,
  callsIn,
  type Life,
  traceOf,
} from "../support/random-calls.ts";

/** What the records say of one call, each with its place in the journal. */
interface Recorded {
  verdict?: { readonly at: number; readonly value: Json };
  approval?: { readonly at: number; readonly value: Json };
  /** The group's call step, by its place. */
  open?: number;
  done?: number;
  /** The answer that was received. */
  answer?: { readonly at: number; readonly payload: Json };
}

function recordsOf({ records }: CallTrace): ReadonlyMap<string, Recorded> {
  const calls = new Map<string, Recorded>();
  const of = (id: string): Recorded => {
    const known = calls.get(id) ?? {};
    calls.set(id, known);
    return known;
  };
  let group: readonly string[] = [];
  for (const [at, { stepId, phase, value }] of records.entries()) {
    const [, part] = /\/(verdicts|approvals|call)$/.exec(stepId) ?? [];
    const [, asked] = /^wait\/request\/one#1\/a1\/([^/]+)$/.exec(stepId) ?? [];
    if (asked !== undefined && phase === "done") of(asked).answer = { at, payload: JSON.parse(value)?.payload ?? null };
    if (part === "call") for (const id of group) of(id)[phase === "open" ? "open" : "done"] = at;
    if (part !== "verdicts" && part !== "approvals") continue;
    const verdicts: readonly JsonObject[] = JSON.parse(value);
    for (const one of verdicts) of(String(one.id))[part === "verdicts" ? "verdict" : "approval"] = { at, value: one };
    if (part === "verdicts") group = verdicts.map(({ id }) => String(id));
  }
  return calls;
}

const kindOf = (verdict: Json | undefined): Json | undefined => field(field(verdict, "verdict"), "kind");
const byOf = (verdict: Json | undefined): Json | undefined => field(field(verdict, "verdict"), "by");

/** Whether a hook of this life vetoes a call with this input; hooks that cancel veto nothing. */
function isVetoed({ hooks }: Life, input: Json): boolean {
  const odd = JSON.stringify(input).includes("2");
  return odd && Object.values(hooks).some((hook) => hook === "vetoes" || hook === "throws" || hook === "odd");
}

/** What must be true of a call that ran. */
function checkExecution(scenario: CallScenario, trace: CallTrace, recorded: Recorded, ran: Acted): void {
  const { records } = trace;
  const place = records.findIndex(({ stepId, phase }) => `${stepId} ${phase}` === ran.after);
  const life = ran.life === 1 ? scenario.first : scenario.second;
  const made = life.tools[ran.tool as keyof Life["tools"]];

  // The verdict that allows it was recorded before anything followed from it.
  const final = recorded.approval ?? recorded.verdict;
  expect(kindOf(final?.value)).toBe("approved");
  expect(final?.at).toBeLessThanOrEqual(place);
  // A writing call has an open record before it runs.
  if (made.effect === "write") expect(recorded.open ?? Number.POSITIVE_INFINITY).toBeLessThanOrEqual(place);

  // A grant is an approval of exactly this call, received before, and what runs is what was shown.
  if (byOf(final?.value) === "grant") {
    const body = field(field(recorded.verdict?.value, "verdict"), "body");
    expect(kindOf(recorded.verdict?.value)).toBe("ask");
    expect(recorded.answer?.at).toBeLessThan(recorded.approval?.at ?? 0);
    expect(recorded.answer?.payload).toMatchObject({ kind: "approve", digest: field(body, "argsDigest") });
    expect(digestOf(ran.input)).toBe(digestOf(field(body, "input") ?? null));
  } else if (life.allowedTools !== undefined) {
    // Without one, only a call that the envelope of this process holds.
    expect(life.allowedTools.some((rule) => String(rule).split("(")[0] === ran.tool)).toBe(true);
  } else {
    expect(life.mode === "yolo" || life.mode === "allowlist" || life.builtins.some((name) => name === ran.tool)).toBe(
      true,
    );
  }

  // No approval lifts a hard limit or a veto of this process.
  expect(["outside", "throws", "odd"]).not.toContain(
    life.builtins.some((name) => name === ran.tool) ? "" : made.touches,
  );
  const touched = JSON.stringify(field(final?.value, "subjects"));
  expect(touched).not.toContain("/etc/passwd");
  if (life.protects) expect(touched).not.toContain("src/b.ts");
  expect(isVetoed(life, ran.input)).toBe(false);

  // The arguments are the model's, or what the tool's schema made of them.
  const [, turn = "", index = ""] = /^t(\d+)\.c(\d+)$/.exec(ran.callId) ?? [];
  const request = scenario.turns[Number(turn) - 1]?.[Number(index)];
  expect(request?.tool).toBe(ran.tool);
  if (made.input === "any" || made.input === "strict") expect(ran.input).toEqual(request?.input);
}

test("of any calls, in any processes, only those run that may: once, recorded, and as they were approved", {
  timeout: 300_000,
}, async () => {
  const seen = { calls: 0, ran: 0, granted: 0, inSecond: 0, recovered: 0, denied: 0, expired: 0 };
  const checkAll = async (scenario: CallScenario): Promise<void> => {
    const trace = await traceOf(scenario);
    const recorded = recordsOf(trace);
    const executed = Map.groupBy(
      trace.acted.filter(({ what }) => what === "execute"),
      ({ callId }) => callId,
    );
    const resumed = trace.records.findIndex(({ stepId }) => stepId === "resume");
    seen.calls += callsIn(scenario);
    // Whatever changed in between, the run goes on where its journal ends.
    expect(trace.ends).not.toContain("journal_mismatch");

    for (const [id, runs] of executed) {
      const of = recorded.get(id) ?? {};
      for (const ran of runs) checkExecution(scenario, trace, of, ran);
      seen.ran += 1;
      if (byOf(of.approval?.value) === "grant") seen.granted += 1;
      // Once in a process; a call that writes, once in all, unless its tool says that it did not start.
      expect(runs.filter(({ life }) => life === 1).length).toBeLessThanOrEqual(1);
      expect(runs.filter(({ life }) => life === 2).length).toBeLessThanOrEqual(1);
      const last = runs.at(-1);
      if (last?.life !== 2) continue;
      seen.inSecond += 1;
      const wasOpen = of.open !== undefined && of.open < resumed;
      if (!wasOpen) continue;
      const recovery = trace.acted.find(({ what, callId, life }) => what === "recover" && callId === id && life === 2);
      expect(recovery && scenario.second.tools[last.tool as keyof Life["tools"]].recovers).toBe("not_started");
      seen.recovered += 1;
    }
    // What was at work goes to recovery, or its outcome is unknown: it is never decided, nor run, as if it were new.
    for (const [id, { open, done, verdict }] of recorded) {
      if (open === undefined || open >= resumed || (done !== undefined && done < resumed)) continue;
      expect(verdict?.at).toBeLessThan(open);
      const value: Json = done === undefined ? [] : JSON.parse(trace.records[done]?.value ?? "[]");
      const outcome = Array.isArray(value) ? field(value[0], "outcome") : undefined;
      if (executed.get(id)?.some(({ life }) => life === 2) !== true && done !== undefined)
        expect(["recovered", "outcome_unknown", "error"]).toContain(outcome);
    }

    // One verdict for every call, one end for every grant.
    const events = trace.records.flatMap(({ events }, seq) => readEvents("run", { seq, events }));
    const dataOf = (type: string) => events.filter((event) => event.type === type).map(({ data }) => data);
    const decided = dataOf("call.decided").map(({ callId }) => callId);
    expect(new Set(decided).size).toBe(decided.length);
    const [consumed, expired] = [dataOf("grant.consumed"), dataOf("grant.expired")].map((all) =>
      all.map(({ requestId }) => requestId),
    );
    const ended = [...(consumed ?? []), ...(expired ?? [])];
    expect(new Set(ended).size).toBe(ended.length);
    seen.expired += expired?.length ?? 0;
    seen.denied += dataOf("call.decided").filter(({ verdict }) => verdict === "refused").length;
    for (const { data, type } of events)
      if (type === "hook.vetoed")
        expect(
          kindOf((recorded.get(String(data.callId))?.approval ?? recorded.get(String(data.callId))?.verdict)?.value),
        ).toBe("refused");

    // One outcome for every call, in order.
    if (trace.ends.at(-1) !== "completed") return;
    const asked = scenario.turns.flatMap((calls, turn) => calls.map((_, index) => `t${turn + 1}.c${index}`));
    expect(trace.outcomes.map(({ id }) => id)).toEqual(asked);
  };
  await fc.assert(fc.asyncProperty(callScenario, checkAll), { numRuns: 1_000 });
  expect(seen.calls).toBeGreaterThan(9_000);
  // Otherwise the property would hold because nothing ever happened.
  for (const [what, count] of Object.entries(seen)) expect(count, what).toBeGreaterThan(0);
});
