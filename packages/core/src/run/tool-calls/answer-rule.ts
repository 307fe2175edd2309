import { field, isJsonObject, type Json } from "../../base/json.ts";
import type { SluiceEvent } from "../../journal/events.ts";
import type { AnswerProof, OwnSeal } from "../../people/answer-proof.ts";

/** Which answers of other processes count in a run and its siblings. One for each run, kept in memory. */
export interface AnswerRule {
  /** Whether the run was started to take answers of any process. */
  readonly any: boolean;
  /** Whether the run, or a sibling in it, has started a process without a wall, in this process or before. */
  isUnwalled(): boolean;
  /** To be said before a process is started without a wall. It stays said. */
  startsUnwalled(): void;
}

export interface AnswerRuleOptions {
  readonly any: boolean;
  /** What the record says of earlier processes; see `startedUnwalled`. */
  readonly unwalled: boolean;
  /** Hears of the first process without a wall. */
  readonly onUnwalled?: () => void;
}

export function createAnswerRule({ any, unwalled, onUnwalled }: AnswerRuleOptions): AnswerRule {
  let started = unwalled;
  return {
    any,
    isUnwalled: () => started,
    startsUnwalled: () => {
      if (started) return;
      started = true;
      onUnwalled?.();
    },
  };
}

export function needsCode(rule: AnswerRule): boolean {
  return !rule.any && rule.isUnwalled();
}

/**
 * Whether a run, or a sibling in it, has started a process without a wall, by the events of all of them. A process that was
 * killed may have started one that it did not come to record: `atWork` says whether the last one still works on the run, and so
 * knows. Of those that do not, one that had no wall counts as having started some.
 */
export function startedUnsandboxed(events: readonly SluiceEvent[], atWork: boolean): boolean {
  let isExposed = false;
  for (const { type, runId, data } of events) {
    // By what the gate knew of the call before, or by what its tool said while it ran.
    if (type === "call.started" && data.wall === "none") return true;
    if (type === "call.finished" && field(data.facts, "wall") === "none") return true;
    if (runId.includes("/") || (type !== "run.started" && type !== "run.resumed")) continue;
    const servers = field(data.sandbox, "unsandboxedServers");
    if (isExposed || data.unsandboxed === true || (Array.isArray(servers) && servers.length > 0)) return true;
    isExposed = field(data.sandbox, "wall") === "none";
  }
  return isExposed && !atWork;
}

const PROOFS: readonly AnswerProof[] = ["session", "code", "sandboxed", "any", "missing"];

/**
 * The payload of an answer as it is recorded: with what shows that a person gave it instead of what it brought along. That is
 * decided when the answer is read, by the process that knows the code, and never again.
 */
export function withVerdict(payload: Json, seal: OwnSeal, rule: AnswerRule): Json {
  if (!isJsonObject(payload)) return payload;
  return { ...payload, proof: seal.provenBy(payload) ?? unproven(rule) };
}

function unproven(rule: AnswerRule): AnswerProof {
  if (rule.any) return "any";
  return rule.isUnwalled() ? "missing" : "sandboxed";
}

/** What the record says of an answer's proof; undefined in records of before there were any. */
export function recordedProof(payload: Json): AnswerProof | undefined {
  const proof = field(payload, "proof");
  return PROOFS.find((known) => known === proof);
}
