import { field, type Json, type JsonObject, type RunHost, type RunSummary, type SluiceEvent } from "@sluice/core";
import { type RunOutcome, readOutcome, visible } from "@sluice/core/runtime";
import { type AnswerRoute, answerRouteOf, requestFault } from "@sluice/tui/user";
import { type IdleTimes, idleOf, type RouteView, reduceRun } from "@sluice/view";
import { routeLines } from "@sluice/view/routes";
import { requestCard, table } from "@sluice/view/text";
import {
  count,
  eventsOf,
  executionName,
  indented,
  isNothing,
  milliseconds,
  moment,
  oneLine,
  originOf,
  readRunStarted,
  shownError,
  spending,
  textAt,
  withCode,
} from "@sluice/view/words";
import type { CommandContext } from "../../command-context.ts";
import { timeWithCountdown } from "../../output/countdown.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { write } from "../../output/output.ts";
import { toneOf } from "../../output/reporter.ts";
import { asRequest, asShown, type Resumable, type RunTotals, resumeWords, totalsOf } from "../../output/run-report.ts";
import { commandLine, type ProjectPaths } from "../../project/project-paths.ts";
import { answerLine } from "../../runs/answer-line.ts";
import { faultLines } from "../../runs/follow-run.ts";
import { requireRun, withStore } from "../../runs/lookup.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import { type CommonFlags, keptFlags } from "../../runs/run-flags.ts";

/** `sluice show`: one run, finished or not. */
export async function show(context: CommandContext, runId: string, flags: CommonFlags): Promise<number> {
  const { terminal, here, env } = context;
  const place = await projectsHere(flags, context).place();
  const shown = await withStore(place, (host) => look(host, place, runId));
  const line = (words: readonly string[]): string => commandLine(words, place, here, env);
  write(flags.outputFormat, terminal, {
    json: jsonOf(shown, line),
    text: () =>
      textOf(shown, line, {
        painted: (status) => terminal.paint("out", toneOf(status), status),
        columns: terminal.facts().columns,
      }),
  });
  return EXIT.completed;
}

/** The content of `sluice show`; `output` and `error` only of a run that ended. */
async function look(host: RunHost, place: ProjectPaths, named: string) {
  const run = await requireRun(host, place, named);
  const { runId } = run;
  const started = await readRunStarted(host, runId);
  // Read before the events, so that the events contain each of these requests.
  const open = run.end === undefined ? await host.requests(runId) : [];
  const events = await eventsOf(host, runId);
  const reducer = reduceRun(runId, events);
  reducer.setRunning(run.status !== "suspended");
  const view = reducer.view();
  const totals = totalsOf(view);
  const denials = events.filter(
    ({ type, data }) => type === "call.decided" && data.verdict === "refused" && data.cause !== undefined,
  );
  /** Each with why it differs from the request that the run made. */
  const requests = open.map((request) => ({ request, fault: requestFault(request, events) }));
  const route = await answerRouteOf(host, runId, events);
  const { output, error }: Partial<RunOutcome> = run.end === undefined ? {} : readOutcome(run.end);
  return {
    run,
    started,
    totals,
    idle: idleOf(view),
    denials,
    routes: view.routes,
    requests,
    route,
    output: output === undefined ? undefined : asShown(output),
    error: error === undefined ? undefined : shownError(error),
    lastWord: view.lastWord,
    agent: view.agent ?? "",
  };
}

/** The name of the agent of another program that works on the run; '' for a run with models of its own. */
function driverOf(started: JsonObject): string {
  return textAt(started.agent, "name");
}

function resumable({ run, started, requests }: Pick<Shown, "run" | "started" | "requests">): Resumable {
  const isLeftAsleep = run.suspended === "sleeping" && keptFlags(started).suspendSleeps === true;
  return { runId: run.runId, isOpen: requests.length > 0, agent: driverOf(started), isLeftAsleep };
}

type Shown = Awaited<ReturnType<typeof look>>;
type ShownRequest = Shown["requests"][number];
type Line = (words: readonly string[]) => string;

interface Looks {
  readonly painted: (status: string) => string;
  /** Of the terminal; undefined if it is none. */
  readonly columns: number | undefined;
}

function jsonOf(
  { run, started, totals, idle, routes, requests, route, output, error, lastWord }: Shown,
  line: Line,
): JsonObject {
  const resume = run.status === "suspended" ? { resume: line(resumeWords(resumable({ run, started, requests }))) } : {};
  return {
    runId: run.runId,
    status: run.status,
    ...(run.suspended === undefined ? {} : { suspended: run.suspended }),
    ...(run.faults === undefined ? {} : { faults: run.faults.map((fault) => asShown(fault)) }),
    ...(run.wakeAt === undefined ? {} : { wakeAt: run.wakeAt }),
    ...(run.owner === undefined ? {} : { owner: run.owner }),
    pipeline: textAt(started, "pipeline"),
    task: textAt(started.input, "task"),
    input: started.input ?? null,
    model: textAt(started, "model"),
    models: started.models ?? [],
    ...(started.agent === undefined ? {} : { agent: started.agent }),
    mode: textAt(started, "mode"),
    ...(started.sandbox === undefined ? {} : { sandbox: started.sandbox }),
    cwd: textAt(started, "cwd"),
    createdAt: run.createdAt,
    ...(started.forkedFrom === undefined ? {} : { forkedFrom: started.forkedFrom }),
    ...(started.from === undefined ? {} : { from: started.from }),
    ...(started.answers === undefined ? {} : { answers: started.answers }),
    output: output ?? null,
    error: error ?? null,
    ...(lastWord === undefined ? {} : { lastWord: { ...lastWord } }),
    stages: totals.stages,
    idle: { ...idle },
    denied: totals.denied,
    routes: routes.map(asRoute),
    usage: totals.usage,
    requests: requests.map(({ request, fault }) => ({
      ...asRequest(request),
      ...(fault === undefined ? { answer: answerLine(request, route, line) } : { answer: null, fault }),
    })),
    records: run.records,
    head: run.head,
    ...resume,
  };
}

/** A decision about a route, redacted like the events that it comes from. */
function asRoute({
  runId,
  executionId,
  at,
  outcome,
  hop,
  event,
  rationale,
  approved,
  by,
  why,
  ...rest
}: RouteView): Json {
  const { considered, rows, named } = rest;
  return asShown({
    ...{ runId, executionId, at, outcome, by },
    ...(hop === undefined ? {} : { choice: hop.choice, to: hop.to }),
    ...(event === "" ? {} : { event }),
    ...(rationale === "" ? {} : { rationale }),
    ...(why === "" ? {} : { why }),
    ...(approved ? { approved } : {}),
    ...(named === undefined ? {} : { named }),
    ...(considered.length === 0 ? {} : { considered }),
    ...(rows.length === 0 ? {} : { rows }),
  });
}

function deniedLine({ runId, executionId = "", attempt = 1, data }: SluiceEvent): string {
  const call = `${executionName({ runId, executionId })} attempt ${attempt} ${textAt(data, "callId")}`;
  const reason = textAt(field(data, "result"), "reason");
  return `  ${oneLine(`${call}: ${textAt(data, "tool")} (${textAt(data, "cause")})${reason === "" ? "" : `: ${reason}`}`, 1_000)}`;
}

/** The sandbox mode, and the sandbox that was found at the start. */
function sandboxText(sandbox: Json): string {
  const [mode, wall] = [textAt(sandbox, "mode"), textAt(sandbox, "wall")];
  if (wall === "" || mode === "off") return mode;
  return wall === "none" ? `${mode}: none available` : `${mode}: ${wall}`;
}

function textOf(
  { run, started, totals, idle, denials, routes, requests, route, output, error, lastWord, agent }: Shown,
  line: Line,
  { painted, columns }: Looks,
): readonly string[] {
  const why = run.suspended === undefined ? "" : ` (${WHY[run.suspended]})`;
  const facts = table([
    ["pipeline", oneLine(textAt(started, "pipeline"))],
    ["task", oneLine(textAt(started.input, "task"), 1_000)],
    agent === ""
      ? ["model", Array.isArray(started.models) ? oneLine(started.models.join(", "), 1_000) : ""]
      : ["agent", oneLine(agent)],
    ["mode", oneLine(textAt(started, "mode"))],
    ...(started.sandbox === undefined ? [] : [["sandbox", oneLine(sandboxText(started.sandbox))]]),
    ...(started.answers === "any" ? [["answers", "of any process count"]] : []),
    ["workspace", oneLine(textAt(started, "cwd"), 1_000)],
    ["started", moment(run.createdAt)],
    ...(originOf(started) === "" ? [] : [["origin", oneLine(originOf(started))]]),
    ...(run.owner === undefined ? [] : [["owner", oneLine(run.owner)]]),
    ...(run.wakeAt === undefined || run.end !== undefined
      ? []
      : [["wakes at", timeWithCountdown(run.wakeAt, Date.now())]]),
    ...idleRows(idle),
    ["usage", agent !== "" && isNothing(totals.usage) ? "the agent's own" : spending(totals.usage)],
    ["journal", `${run.records} records, head ${run.head}`],
  ]);
  const lines = [`${oneLine(run.runId)}  ${painted(run.status)}${why}`, ...facts.map((fact) => `  ${fact}`)];
  if (totals.stages.length > 0) lines.push("", ...stageRows(totals));
  if (denials.length > 0) lines.push("", "denied calls:", ...denials.map(deniedLine));
  if (routes.length > 0) lines.push("", ...routeRows(routes));
  for (const request of requests) lines.push("", ...requestLines(request, route, line, columns));
  if (run.faults !== undefined) lines.push("", ...faultLines(run));
  if (error !== undefined) lines.push("", "error:", indented(visible(withCode(error))));
  if (output !== undefined) lines.push("", "output:", indented(visible(JSON.stringify(output, null, 2))));
  if (lastWord !== undefined) {
    lines.push("", "the orchestrator says:", indented(visible(lastWord.text)));
    if (lastWord.asksForRun) lines.push("  It asks for another run.");
  }
  if (run.status === "suspended")
    lines.push("", `resume with: ${visible(line(resumeWords(resumable({ run, started, requests }))))}`);
  return lines;
}

/** When no process executed the run. */
function idleRows({ suspendedMs, unknownMs, unknownSince }: IdleTimes): readonly (readonly string[])[] {
  return [
    ...(suspendedMs === 0 ? [] : [["suspended", `for ${milliseconds(suspendedMs)}`]]),
    ...(unknownMs === 0 ? [] : [["unknown", `${milliseconds(unknownMs)} after a process ended`]]),
    ...(unknownSince === undefined
      ? []
      : [["unknown since", `${moment(unknownSince)}: the process ended without a record`]]),
  ];
}

/** Why no process executes a run. */
const WHY = {
  sleeping: "sleeping",
  waiting: "waiting for an answer",
  interrupted: "stopped in between",
  provider: "a provider failed",
} as const satisfies Record<NonNullable<RunSummary["suspended"]>, string>;

/** The last decisions about a route that are shown. */
const MOST_ROUTES = 20;

function routeRows(routes: readonly RouteView[]): readonly string[] {
  const shown = routes.slice(-MOST_ROUTES);
  const left = routes.length - shown.length;
  const lines = routeLines({ routes: shown }).map((line) => line.map(({ text }) => text).join(""));
  return [
    "routes:",
    ...(left === 0 ? [] : [`  ${count(left, "earlier decision")}; --output-format json has all`]),
    ...lines.filter((line) => line !== "").map((line) => `  ${line.trimEnd()}`),
  ];
}

/** Items of a list that each have a row; of a longer list, only those that did not complete. */
const MOST_ITEMS = 20;

function stageRows({ stages }: RunTotals): readonly string[] {
  const lists = Map.groupBy(stages, ({ runId, executionId, key }) =>
    key === undefined ? undefined : `${parentOf(runId)}:${executionId}`,
  );
  const long = new Set(
    [...lists].flatMap(([list, items]) => (list === undefined || items.length <= MOST_ITEMS ? [] : items)),
  );
  const shown = stages.filter((stage) => !long.has(stage) || stage.status !== "completed");
  const rows = shown.map(({ runId, executionId, key, status, attempts, turns, usage, ms }) => [
    oneLine(
      key === undefined && runId.includes("/") ? `${executionId} (${runId})` : executionName({ runId, executionId }),
      80,
    ),
    oneLine(status, 20),
    String(attempts),
    String(turns),
    spending(usage),
    milliseconds(ms),
  ]);
  const left = stages.length - shown.length;
  const note = left === 0 ? [] : [`and ${count(left, "item")} that completed; --json lists all`];
  return [...table([["STAGE", "STATUS", "ATTEMPTS", "TURNS", "USAGE", "TIME"], ...rows]), ...note];
}

function parentOf(runId: string): string {
  return runId.slice(0, runId.lastIndexOf("/"));
}

/** An open request with the command that answers it. */
function requestLines(
  { request, fault }: ShownRequest,
  route: AnswerRoute,
  line: Line,
  columns: number | undefined,
): readonly string[] {
  const last = fault === undefined ? answerLine(request, route, line) : `cannot be answered: ${fault}; verify the run`;
  return [
    `open request ${oneLine(request.requestId)}:`,
    ...requestCard(request, columns).trim().split("\n"),
    `  ${visible(last)}`,
  ];
}
