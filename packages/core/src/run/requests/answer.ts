// How a run asks a person, and which answers count: the request is open in a record, the answer comes back as a signal.
import { messageOf, SluiceError } from "../../base/errors.ts";
import { field, isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import type { EventDraft, EventType, SluiceEvent } from "../../journal/events.ts";
import type { SecretFilter } from "../../journal/redaction.ts";
import type { OpenRequest, ReceivedSignal, StepRunner, WaitOptions } from "../../journal/seam.ts";
import { type AnswerProof, type AnswerSeal, createSeal, type OwnSeal } from "../../people/answer-proof.ts";
import { compileJsonSchema } from "../../schema/json-schema.ts";

/** Where a run's requests go. Answers come back as signals. */
export interface People {
  /** Whether anyone can answer now or later. If not, requests are denied immediately with `no_interactor`. */
  reachable(): boolean;
  /** `seal` proves answers given in this process and is never stored. */
  offer(request: OpenRequest, seal: AnswerSeal): void;
  withdraw(runId: string, requestId: string): void;
}

/** An answer as read from the journal. */
export interface JournaledAnswer {
  readonly kind: "approve" | "deny" | "defer" | "value" | "none";
  readonly reason: string | undefined;
  readonly value: Json | undefined;
  readonly digest: string | undefined;
  /** Who answered. */
  readonly by: string;
  readonly proof: AnswerProof | undefined;
}

export const UNPROVEN =
  "the answer came from another process without proof that a person gave it; a person has to answer in the terminal of the process that runs this, or elsewhere with the code shown there";
const KINDS: readonly JournaledAnswer["kind"][] = ["approve", "deny", "defer", "value", "none"];

/** Answers from other processes are untrusted: an unrecognised or unproven one is a denial. */
export function readAnswer({ payload, by }: ReceivedSignal): JournaledAnswer {
  const members = new Map(isJsonObject(payload) ? Object.entries(payload) : []);
  const text = (key: string): string | undefined => {
    const value = members.get(key);
    return typeof value === "string" ? value : undefined;
  };
  const given = text("kind");
  const kind = KINDS.find((known) => known === given);
  const proof = recordedProof(payload);
  const answer = { value: members.get("value"), digest: text("digest"), by, proof };
  if (kind === undefined) return { ...answer, kind: "deny", reason: "the answer could not be understood" };
  if (proof === "missing" && permits(kind)) return { ...answer, kind: "deny", reason: UNPROVEN, value: undefined };
  return { ...answer, kind, reason: text("reason") ?? text("cause") };
}

/** Why the schema of a question's answer cannot be used, if it cannot. */
export function questionFault({ answer }: JsonObject): string | undefined {
  if (answer === undefined) return undefined;
  if (!isJsonObject(answer)) return "the schema of the answer is not an object";
  try {
    compileJsonSchema(answer);
    return undefined;
  } catch (thrown) {
    return `the schema of the answer is invalid: ${messageOf(thrown)}`;
  }
}

/** Event data that all answers have. */
export function answeredByOf({ kind, by, reason, proof }: JournaledAnswer, { at }: ReceivedSignal): JsonObject {
  return {
    answer: kind,
    by,
    answeredAt: at,
    ...(proof === undefined ? {} : { proof }),
    ...(reason === undefined ? {} : { reason }),
  };
}

/** What asking needs of a run. */
interface AskingRun {
  readonly steps: Pick<StepRunner, "incarnation" | "waitForSignal">;
  readonly deps: {
    readonly people: People;
    readonly secrets: Pick<SecretFilter, "json">;
    readonly answers: AnswerRule;
  };
}

/** Makes events of what asks. */
type RequestJournal = { event(type: EventType, data: JsonObject): EventDraft };

/**
 * Offers an open request and waits for its answer. A caller that holds a concurrency slot has to release it. An approval or a value
 * that was given while an earlier process waited proves nothing in this one, which asks again.
 * Undefined if the run is cancelled first, or at the deadline `until` in epoch milliseconds.
 */
export async function awaitAnswer(
  { steps, deps }: AskingRun,
  request: OpenRequest,
  journal: RequestJournal,
  until?: number,
): Promise<ReceivedSignal | undefined> {
  const { people, secrets, answers } = deps;
  const { runId, requestId } = request;
  const seal = createSeal({ ...request, incarnation: steps.incarnation }, () => needsCode(answers));
  const options: WaitOptions = {
    // No one is asked again while other runs still read their records.
    begun: () => people.offer(request, seal),
    take: (given, isEarlier) => {
      const payload = withVerdict(given, secrets.json(given), seal, answers);
      const isOutlived = isEarlier && field(payload, "proof") === "missing" && permits(field(payload, "kind"));
      if (!isOutlived || !isJsonObject(payload)) return { payload, events: [] };
      return { payload: { ...payload, proof: OUTLIVED }, events: askedAgain(request, journal, until) };
    },
    until,
  };
  try {
    for (;;) {
      const received = await steps.waitForSignal(`request/${requestId}`, options);
      if (received === undefined || field(received.payload, "proof") !== OUTLIVED) return received;
    }
  } finally {
    people.withdraw(runId, requestId);
  }
}

/** Stands for the verdict on an approval or a value whose proof, if it had one, only an earlier process could check. */
const OUTLIVED = "outlived";

/** Closes a request and opens it again, for those who count requests and the time that people take. */
function askedAgain(
  { requestId, kind, digest, body }: OpenRequest,
  journal: RequestJournal,
  until: number | undefined,
): readonly EventDraft[] {
  const [expired, opened] =
    kind === "grantStageTool"
      ? (["grant.expired", "grant.requested"] as const)
      : (["request.expired", "request.opened"] as const);
  const deadline = until === undefined ? {} : { until };
  return [
    journal.event(expired, { requestId, cause: "unproven" }),
    journal.event(opened, { requestId, kind, digest, body, ...deadline }),
  ];
}

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

/** The rule of one run. It only becomes stricter. */
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

/**
 * Notes that a tool or a kind is about to start a process. Throws Validation `process_undeclared` unless it has declared that: only the
 * declaration is recorded before such a process, which may outlive this one.
 */
export function startUnwalled(
  rule: Pick<AnswerRule, "startsUnwalled">,
  what: string,
  declared: { readonly startsProcesses?: true } | undefined,
): void {
  if (declared?.startsProcesses !== true) {
    const message = `${what} may not start a process without a sandbox; declare it with startsProcesses: true`;
    throw new SluiceError("Validation", "process_undeclared", message);
  }
  rule.startsUnwalled();
}

function needsCode(rule: AnswerRule): boolean {
  return !rule.any && rule.isUnwalled();
}

/**
 * Whether a run or one of its siblings started a process without a sandbox, by the events of all of them. A killed process may
 * not have recorded that. So a process of Sluice without a sandbox for commands, or with a tool or kind that starts processes, counts as
 * having done it, unless it is the last one and `isActive`.
 */
export function startedUnsandboxed(events: readonly SluiceEvent[], isActive: boolean): boolean {
  let isExposed = false;
  /** In a fork, records up to `run.forked` are copies. The process that makes a fork also begins it. */
  let fork: "copied" | "begins" | undefined;
  for (const { type, runId, data } of events) {
    // Recorded by the gate before the call, by a kind before its command, or by the tool while it ran.
    if ((type === "call.started" || type === "command.started") && data.wall === "none") return true;
    if (type === "call.finished" && field(data.facts, "wall") === "none") return true;
    if (type === "run.forked") fork = "begins";
    if (type !== "run.started" && type !== "run.resumed") continue;
    // Of a child, too: a pipeline that is made during a run may name such an agent.
    if (startsAdvisory(data)) return true;
    // What the original's processes did is in `unsandboxed` of the fork's start.
    if (runId.includes("/") || fork === "copied") continue;
    const isEarlier = isExposed && fork !== "begins";
    const servers = field(data.sandbox, "unsandboxedServers");
    if (isEarlier || data.unsandboxed === true || (Array.isArray(servers) && servers.length > 0)) return true;
    isExposed ||= field(data.sandbox, "wall") === "none" || field(data.sandbox, "processes") === true;
    fork = data.forkedFrom === undefined ? undefined : "copied";
  }
  return isExposed && !isActive;
}

/** Whether a run starts an agent of another program whose own tools pass no gate. */
function startsAdvisory({ agents }: JsonObject): boolean {
  return Array.isArray(agents) && agents.some((one: Json) => field(one, "class") === "advisory");
}

const PROOFS: readonly AnswerProof[] = ["session", "code", "sandboxed", "any", "missing"];

/**
 * The payload of an answer as recorded, `masked`: its proof is replaced by the verdict on it, which covers the answer as it was given
 * and is never masked. The verdict is made once, by the process that knows the request's code.
 */
function withVerdict(payload: Json, masked: Json, seal: OwnSeal, rule: AnswerRule): Json {
  if (!isJsonObject(payload) || !isJsonObject(masked)) return masked;
  return { ...masked, proof: seal.provenBy(payload) ?? unproven(rule) };
}

/** A denial and a deferral permit nothing, and need no proof. */
function permits(kind: Json | undefined): boolean {
  return kind === "approve" || kind === "value";
}

function unproven(rule: AnswerRule): AnswerProof {
  if (rule.any) return "any";
  return rule.isUnwalled() ? "missing" : "sandboxed";
}

/** The recorded verdict on an answer's proof; undefined in records that predate proofs. Whatever else is there proves nothing. */
function recordedProof(payload: Json): AnswerProof | undefined {
  const proof = field(payload, "proof");
  return proof === undefined ? undefined : (PROOFS.find((known) => known === proof) ?? "missing");
}
