import {
  type Answer,
  checkAnswer,
  type JsonObject,
  type OpenRequest,
  type RunHost,
  type RunSummary,
  redactJson,
  type SecretFilter,
  type SignalOutcome,
  SluiceError,
  type SluiceEvent,
  sealWithCode,
  visible,
} from "@sluice/core";
import {
  answerPayload,
  answerRouteOf,
  codeScopeOf,
  type Environment,
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
import { eventsOf, rootOf } from "@sluice/view";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { write } from "../../output/output.ts";
import type { Terminal } from "../../output/terminal.ts";
import { commandLine, storeOpener } from "../../project/project-paths.ts";
import type { Projects } from "../../project/projects.ts";
import { oneAnswer } from "../../runs/line-interactor.ts";
import { requireRun, withStore } from "../../runs/lookup.ts";
import { secretsToward } from "../../runs/open-session.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import type { ExecuteFlags } from "../../runs/run-flags.ts";

export interface AnswerRequest {
  readonly runId: string;
  /** The request's id, or an ending of it that fits no other open request of the run. */
  readonly request: string;
  readonly answer: "approve" | "deny" | "defer" | undefined;
  readonly flags: ExecuteFlags & {
    readonly reason?: string;
    readonly value?: string;
    /** The beginning of the digest of what was looked at, in lower case. */
    readonly digest?: string;
    /** The request's one-time code, as it was typed. */
    readonly code?: string;
    readonly resume?: boolean;
    /** With `resume`: also with a pipeline that changed. */
    readonly allowChanged?: boolean;
  };
}

/** `sluice answer`: answers an open request of a run, whoever owns it. */
export async function answer(given: AnswerRequest, context: CommandContext): Promise<number> {
  const { terminal, env, here } = context;
  const { runId, flags } = given;
  refuseInsideRun(readSettings(env), "answer");
  refuseWithoutResume(flags);
  const projects = projectsHere(flags, context);
  const place = await projects.place();
  const { request, way, code } = await withStore(place, async (host) => {
    await requireRun(host, place, runId);
    const found = oneRequest(await host.requests(runId), given);
    const events = await eventsOf(host, runId);
    refuseOther(found, events);
    return { request: found, way: await answerRouteOf(host, runId, events), code: await codeScopeOf(host, found) };
  });
  const { requestId, digest } = request;
  if (flags.digest !== undefined && !digest.startsWith(flags.digest)) {
    const why = `not accepted: ${requestId} has the digest ${shortDigest(digest)} now, which does not begin with ${flags.digest}; look at it again with sluice show`;
    return refused(why, { runId, requestId, outcome: "digest_mismatch", digest }, given, context);
  }
  const typed = checkedAnswer(request, given);
  if (!typed.ok)
    throw new SluiceError("Validation", "answer_invalid", `this does not answer ${requestId}: ${typed.fault}`);

  // A process that is gone took its codes along.
  const proof = way === "resume" ? undefined : flags.code;
  if (way !== "freely" && proof === undefined && needsProof(typed.answer)) {
    if (way === "resume" && flags.resume === true && hasTerminal(terminal))
      return await answerAndResume({ request, answer: typed.answer }, given, projects, context);
    return refused(unprovenText(way, request), { runId, requestId, outcome: "unproven" }, given, context);
  }
  if (proof !== undefined && sealWithCode(proof, code, {}) === undefined)
    return refused(wrongCodeText(request), { runId, requestId, outcome: "other_code" }, given, context);

  const host = (await storeOpener(place, { adopt: flags.adoptStore === true }))();
  const seal = (payload: JsonObject): JsonObject =>
    (proof === undefined ? undefined : sealWithCode(proof, code, payload)) ?? payload;
  const { outcome, run, secrets } = await send(host, { request, answer: typed.answer, seal }, env);
  if (outcome !== "accepted")
    return refused(refusalOf(outcome, requestId), { runId, requestId, outcome }, given, context);

  const did = `${pastTense(typed.answer)} ${requestId}`;
  const waits = run?.end === undefined && run?.owner === undefined;
  if (waits && flags.resume === true) {
    terminal.err(`sluice: ${visible(did)}\n`);
    const { resume } = await import("../resume/action.ts");
    return await resume({ runId, flags }, context, projects);
  }
  const resumeLine = commandLine(["resume", runId], place, here, env);
  const then =
    run?.end !== undefined
      ? `the run is ${run.end.status} by now`
      : run?.owner === undefined
        ? `nobody works on the run now; go on with: ${resumeLine}`
        : `${run.owner} goes on with it`;
  write(flags.outputFormat, terminal, {
    json: {
      runId,
      requestId,
      answer: redactJson(secrets.json({ ...typed.answer })),
      outcome,
      owner: run?.owner ?? null,
      ...(waits ? { resume: resumeLine } : {}),
    },
    text: () => [visible(`${did}; ${then}`)],
  });
  return EXIT.completed;
}

interface Given {
  readonly request: OpenRequest;
  readonly answer: Answer;
}

/** Whether somebody may sit here, whatever the streams are. */
function hasTerminal(terminal: Terminal): boolean {
  const here = terminal.controlling();
  here?.close();
  return here !== undefined;
}

/** Resumes the run and answers the request when the run asks again: nothing of the answer is in the store before. */
async function answerAndResume(
  { request, answer }: Given,
  { runId, flags }: AnswerRequest,
  projects: Projects,
  context: CommandContext,
): Promise<number> {
  const said = `sluice: ${visible(`${pastTense(answer)} ${request.requestId}`)}\n`;
  const by = oneAnswer(userName(), { request, answer }, () => context.terminal.err(said));
  const { resume } = await import("../resume/action.ts");
  return await resume({ runId, flags }, context, projects, { answered: { request, by } });
}

/** An option that would do nothing is said to. */
function refuseWithoutResume(flags: AnswerRequest["flags"]): void {
  if (flags.resume === true) return;
  const idle = RESUMING.filter(([name]) => flags[name] !== undefined).map(([, option]) => option);
  if (idle.length === 0) return;
  throw new SluiceError(
    "Validation",
    "usage",
    `${idle.join(", ")} ${idle.length === 1 ? "is" : "are"} for going on with the run: give --resume, too`,
  );
}

/** What only a run that goes on here would heed. */
const RESUMING = [
  ["model", "--model"],
  ["record", "--record"],
  ["headless", "--headless"],
  ["wait", "--wait"],
  ["mode", "--mode"],
  ["allow", "--allow"],
  ["maxParallel", "--max-parallel"],
  ["failOnDenied", "--fail-on-denied"],
  ["allowChanged", "--allow-changed"],
] as const satisfies readonly (readonly [keyof AnswerRequest["flags"], string])[];

/** Whoever answers has seen the request, and the run goes by its record: both have to be one. */
function refuseOther(request: OpenRequest, events: readonly SluiceEvent[]): void {
  const fault = requestFault(request, events);
  if (fault === undefined) return;
  const { requestId } = request;
  throw new SluiceError(
    "Host",
    "journal_damaged",
    `request ${requestId} is not answered: ${fault}; somebody changed it in the store, so verify the run`,
    { detail: { requestId } },
  );
}

function refused(why: string, json: JsonObject, { flags }: AnswerRequest, { terminal }: CommandContext): number {
  if (flags.outputFormat !== "text") write(flags.outputFormat, terminal, { json, text: () => [] });
  terminal.err(`sluice: ${visible(why)}\n`);
  return EXIT.failed;
}

function oneRequest(open: readonly OpenRequest[], { runId, request }: AnswerRequest): OpenRequest {
  const exact = open.filter(({ requestId }) => requestId === request);
  const fitting = exact.length > 0 ? exact : open.filter((one) => `${one.runId}/${one.requestId}`.endsWith(request));
  const [only] = fitting;
  if (only !== undefined && fitting.length === 1) return only;
  const ids = (requests: readonly OpenRequest[]): string =>
    requests.map((one) => (one.runId === runId ? one.requestId : `${one.runId}/${one.requestId}`)).join(", ");
  if (fitting.length > 1) {
    throw new SluiceError(
      "Validation",
      "request_ambiguous",
      `${request} fits several open requests: ${ids(fitting)}; write more of it`,
    );
  }
  const there = open.length === 0 ? "it has none" : `open: ${ids(open)}`;
  throw new SluiceError("Validation", "request_unknown", `run ${runId} has no open request ${request}; ${there}`);
}

function checkedAnswer(request: OpenRequest, { answer: kind, flags }: AnswerRequest): TypedAnswer {
  const { reason, value } = flags;
  if (value !== undefined) {
    if (kind !== undefined) return { ok: false, fault: `give either ${kind} or --value` };
    return typedValue(request, value);
  }
  if (kind === undefined) return { ok: false, fault: "say approve, deny or defer, or give a --value" };
  if (reason !== undefined && kind !== "deny") return { ok: false, fault: "--reason goes with deny" };
  return checkAnswer(request, { kind, ...(reason === undefined ? {} : { reason }) });
}

async function send(
  host: RunHost,
  { request, answer, seal }: Given & { readonly seal: (payload: JsonObject) => JsonObject },
  env: Environment,
): Promise<{ outcome: SignalOutcome; run: RunSummary | undefined; secrets: SecretFilter }> {
  try {
    const runId = rootOf(request.runId);
    const secrets = await secretsToward(host, runId, env);
    const payload = seal(answerPayload(request, maskAnswer(answer, secrets)));
    const outcome = await sendAnswer(host, request, payload, secrets.text(userName()));
    return { outcome, run: await host.get(runId), secrets };
  } finally {
    await host.close();
  }
}
