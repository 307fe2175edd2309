import { field, isJsonObject, type Json } from "../../base/json.ts";
import type { SluiceEvent } from "../../journal/events.ts";
import type { AnswerProof, OwnSeal } from "../../people/answer-proof.ts";

/** Which answers from other processes count in a run and its siblings. Kept in memory, one per run. */
export interface AnswerRule {
  /** Whether the run was started to accept answers from any process. */
  readonly any: boolean;
  /** Whether the run or one of its siblings ever started a process without a sandbox. */
  isUnwalled(): boolean;
  /** Has to be called before a process is started without a sandbox. */
  startsUnwalled(): void;
}

export interface AnswerRuleOptions {
  readonly any: boolean;
  /** The value of `isUnwalled` by the record; see `startedUnsandboxed`. */
  readonly unwalled: boolean;
  /** Called before the first process without a sandbox. */
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
 * Whether a run or one of its siblings started a process without a sandbox, by the events of all of them. A killed process may
 * not have recorded that, so a process without a sandbox counts as having done it, unless it is the last one and `isActive`.
 */
export function startedUnsandboxed(events: readonly SluiceEvent[], isActive: boolean): boolean {
  let isExposed = false;
  for (const { type, runId, data } of events) {
    // Recorded by the gate before the call, or by the tool while it ran.
    if (type === "call.started" && data.wall === "none") return true;
    if (type === "call.finished" && field(data.facts, "wall") === "none") return true;
    if (runId.includes("/") || (type !== "run.started" && type !== "run.resumed")) continue;
    const servers = field(data.sandbox, "unsandboxedServers");
    if (isExposed || data.unsandboxed === true || (Array.isArray(servers) && servers.length > 0)) return true;
    isExposed = field(data.sandbox, "wall") === "none";
  }
  return isExposed && !isActive;
}

const PROOFS: readonly AnswerProof[] = ["session", "code", "sandboxed", "any", "missing"];

/**
 * The payload of an answer as recorded: its proof is replaced by the verdict on it. The verdict is made once, by the process that
 * knows the request's code.
 */
export function withVerdict(payload: Json, seal: OwnSeal, rule: AnswerRule): Json {
  if (!isJsonObject(payload)) return payload;
  return { ...payload, proof: seal.provenBy(payload) ?? unproven(rule) };
}

function unproven(rule: AnswerRule): AnswerProof {
  if (rule.any) return "any";
  return rule.isUnwalled() ? "missing" : "sandboxed";
}

/** The recorded verdict on an answer's proof; undefined in records that predate proofs. */
export function recordedProof(payload: Json): AnswerProof | undefined {
  const proof = field(payload, "proof");
  return PROOFS.find((known) => known === proof);
}
