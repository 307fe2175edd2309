import { field, type JsonObject, type OpenRequest, SluiceError, type SluiceEvent } from "@sluice/core";
import { sealWithCode } from "@sluice/core/gate";
import { checkAnswer, redactJson, visible } from "@sluice/core/runtime";
import {
  answerPayload,
  answerRouteOf,
  codeScopeOf,
  maskAnswer,
  needsProof,
  pastTense,
  readSettings,
  refusalOf,
  refuseInsideRun,
  requestFault,
  sendAnswer,
  shortDigest,
  type TypedAnswer,
  typedValue,
  unprovenText,
  userName,
  wrongCodeText,
} from "@sluice/tui/user";
import { eventsOf, readRunStarted, textAt } from "@sluice/view/words";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { usageError, write } from "../../output/output.ts";
import { resumeWords } from "../../output/run-report.ts";
import type { Terminal } from "../../output/terminal.ts";
import { commandLine } from "../../project/project-paths.ts";
import type { RunExecution } from "../../runs/execute-run.ts";
import { oneAnswer } from "../../runs/line-interactor.ts";
import { requireRun, withStore, withWritableStore } from "../../runs/lookup.ts";
import { secretsToward } from "../../runs/open-session.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import type { ResumeFlags } from "../resume/action.ts";

type AnswerKind = "approve" | "deny" | "defer" | undefined;
type AnswerFlags = ResumeFlags & {
  readonly reason?: string;
  readonly value?: string;
  /** The first digits of the digest of the request that the user saw, in lower case. */
  readonly digest?: string;
  /** The request's one-time code, as typed. */
  readonly code?: string;
  readonly resume?: boolean;
};

/** `sluice answer`: answers an open request of a run that any process may own. `part` is its id, or a unique end of it. */
export async function answer(
  context: CommandContext,
  named: string,
  part: string,
  kind: AnswerKind,
  flags: AnswerFlags,
): Promise<number> {
  const { terminal, env, here } = context;
  refuseInsideRun(readSettings(env), "answer");
  refuseIdleFlags(flags);
  const projects = projectsHere(flags, context);
  const place = await projects.place();
  const { runId, request, route, code } = await withStore(place, async (host) => {
    const { runId } = await requireRun(host, place, named);
    const found = oneRequest(await host.requests(runId), runId, part);
    const events = await eventsOf(host, runId);
    refuseTampered(found, events);
    const route = await answerRouteOf(host, runId, events);
    return { runId, request: found, route, code: await codeScopeOf(host, found) };
  });
  const { requestId, digest } = request;
  if (flags.digest !== undefined && !digest.startsWith(flags.digest)) {
    const why = `not accepted: the digest of ${requestId} is now ${shortDigest(digest)}, which does not begin with ${flags.digest}; review the request with sluice show`;
    return refused(why, { runId, requestId, outcome: "digest_mismatch", digest }, context, flags);
  }
  const typed = checkedAnswer(request, kind, flags);
  if (!typed.ok)
    throw new SluiceError("Validation", "answer_invalid", `this is not a valid answer to ${requestId}: ${typed.fault}`);

  const done = `${pastTense(typed.answer)} ${requestId}`;
  const sayDone = (): void => terminal.err(`sluice: ${visible(done)}\n`);
  /** Resumes the run; it answers the request when it is opened again, if the answer was not stored before. */
  const resumeHere = async (answered?: RunExecution["answered"]): Promise<number> => {
    const { resumeIn } = await import("../resume/action.ts");
    return await resumeIn(projects, context, runId, flags, answered === undefined ? {} : { answered });
  };
  // The codes of an ended process are lost.
  const proof = route === "resume" ? undefined : flags.code;
  if (route !== "freely" && proof === undefined && needsProof(typed.answer)) {
    if (route === "resume" && flags.resume === true && hasControllingTerminal(terminal))
      return await resumeHere({ request, by: oneAnswer(userName(), { request, answer: typed.answer }, sayDone) });
    return refused(unprovenText(route, request), { runId, requestId, outcome: "unproven" }, context, flags);
  }
  if (proof !== undefined && sealWithCode(proof, code, {}) === undefined)
    return refused(wrongCodeText(request), { runId, requestId, outcome: "other_code" }, context, flags);

  const seal = (payload: JsonObject): JsonObject =>
    (proof === undefined ? undefined : sealWithCode(proof, code, payload)) ?? payload;
  const { outcome, run, secrets, left, agent } = await withWritableStore(place, flags.adoptStore, async (host) => {
    const masks = await secretsToward(host, runId, env);
    const payload = seal(answerPayload(request, maskAnswer(typed.answer, masks)));
    const sent = await sendAnswer(host, request, payload, masks.text(userName()));
    // Other requests that are open would be denied without --wait.
    const left = (await host.requests(runId)).some(
      (open) => open.requestId !== requestId || open.runId !== request.runId,
    );
    const agent = textAt(field(await readRunStarted(host, runId), "agent"), "name");
    return { outcome: sent, run: await host.get(runId), secrets: masks, left, agent };
  });
  if (outcome !== "accepted")
    return refused(refusalOf(outcome, requestId), { runId, requestId, outcome }, context, flags);

  const isSuspended = run?.end === undefined && run?.owner === undefined;
  if (isSuspended && flags.resume === true) {
    sayDone();
    return await resumeHere();
  }
  const resumeLine = commandLine(resumeWords({ runId, isOpen: left, agent }), place, here, env);
  const next =
    run?.end !== undefined
      ? `the run is already ${run.end.status}`
      : run?.owner === undefined
        ? `the run is suspended; resume it with: ${resumeLine}`
        : `${run.owner} continues the run`;
  write(flags.outputFormat, terminal, {
    json: {
      runId,
      requestId,
      answer: redactJson(secrets.json({ ...typed.answer })),
      outcome,
      owner: run?.owner ?? null,
      ...(isSuspended ? { resume: resumeLine } : {}),
    },
    text: () => [visible(`${done}; ${next}`)],
  });
  return EXIT.completed;
}

/** Whether the process has a terminal, whatever its streams are. */
function hasControllingTerminal(terminal: Terminal): boolean {
  const opened = terminal.controlling();
  opened?.close();
  return opened !== undefined;
}

/** Refuses options that have no effect without --resume. */
function refuseIdleFlags(flags: AnswerFlags): void {
  if (flags.resume === true) return;
  const idle = RESUME_FLAGS.filter((name) => flags[name] !== undefined).map(
    (name) => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`,
  );
  if (idle.length === 0) return;
  throw usageError(`${idle.join(", ")} ${idle.length === 1 ? "has" : "have"} no effect without --resume`);
}

/** The flags that only a resumed run uses. */
const RESUME_FLAGS: readonly (keyof AnswerFlags)[] = [
  "model",
  "record",
  "headless",
  "wait",
  "mode",
  "allow",
  "maxParallel",
  "failOnDenied",
  "suspendSleeps",
  "allowChanged",
];

/** The request in the store, which the user saw, must match the run's record of it. */
function refuseTampered(request: OpenRequest, events: readonly SluiceEvent[]): void {
  const fault = requestFault(request, events);
  if (fault === undefined) return;
  const { requestId } = request;
  throw new SluiceError(
    "Host",
    "journal_damaged",
    `request ${requestId} is not answered: ${fault}; it was changed in the store, so verify the run with sluice audit --verify`,
    { detail: { requestId } },
  );
}

function refused(why: string, json: JsonObject, { terminal }: CommandContext, flags: AnswerFlags): number {
  if (flags.outputFormat !== "text") write(flags.outputFormat, terminal, { json, text: () => [] });
  terminal.err(`sluice: ${visible(why)}\n`);
  return EXIT.failed;
}

function oneRequest(open: readonly OpenRequest[], runId: string, part: string): OpenRequest {
  const exact = open.filter(({ requestId }) => requestId === part);
  const matches = exact.length > 0 ? exact : open.filter((one) => `${one.runId}/${one.requestId}`.endsWith(part));
  const [only] = matches;
  if (only !== undefined && matches.length === 1) return only;
  const ids = (requests: readonly OpenRequest[]): string =>
    requests.map((one) => (one.runId === runId ? one.requestId : `${one.runId}/${one.requestId}`)).join(", ");
  if (matches.length > 1) {
    throw new SluiceError(
      "Validation",
      "request_ambiguous",
      `${part} matches several open requests: ${ids(matches)}; use a longer part of the id`,
    );
  }
  const known = open.length === 0 ? "it has none" : `open: ${ids(open)}`;
  throw new SluiceError("Validation", "request_unknown", `run ${runId} has no open request ${part}; ${known}`);
}

function checkedAnswer(request: OpenRequest, kind: AnswerKind, { reason, value }: AnswerFlags): TypedAnswer {
  if (value !== undefined) {
    if (kind !== undefined) return { ok: false, fault: `use either ${kind} or --value` };
    return typedValue(request, value);
  }
  if (kind === undefined) return { ok: false, fault: "use approve, deny or defer, or a --value" };
  if (reason !== undefined && kind !== "deny") return { ok: false, fault: "--reason needs deny" };
  return checkAnswer(request, { kind, ...(reason === undefined ? {} : { reason }) });
}
