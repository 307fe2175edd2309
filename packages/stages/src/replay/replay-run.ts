import {
  type AgentSpec,
  checkSession,
  compileEnvelope,
  createAnswerRule,
  createConcurrencySlots,
  field,
  type Json,
  type JsonObject,
  type Pipeline,
  type PipelineSpec,
  problemsError,
  type RecordDifference,
  type RunDeps,
  type RunJournal,
  readEvents,
  redactJson,
  replayClock,
  replayPipeline,
  replayTools,
  type SecretFilter,
  type SecurityMode,
  SluiceError,
  type SluiceEvent,
  type StateExecutor,
  systemClock,
  type Tool,
  verifyJournal,
} from "@sluice/core";
import { agentExecutor } from "../agent/executor.ts";
import { parseAgentStep } from "../agent/step-names.ts";
import { pipelineChanges, recordedPipeline } from "../history/pipeline-changes.ts";
import { type PipelineSource, refuseVersionMismatch } from "../history/run-started.ts";
import type { ResolvedModel } from "../models/model.ts";
import { modelFacts } from "../models/pricing/prices.ts";
import { sessionSecrets } from "../secrets/detect.ts";
import type { SessionOptions } from "../session/options.ts";
import { builtinTools } from "../session/tools.ts";
import { differenceLines } from "./diff-lines.ts";
import { locationOf, type RecordLocation, usualCauseOf } from "./locate.ts";

/** What a session had that the run was recorded in, as far as it decides. Mode, allowlist and folder are those of the record. */
export interface ReplayRunOptions
  extends Pick<SessionOptions, "tools" | "executors" | "onCall" | "env" | "secrets" | "passEnv" | "prices" | "clock"> {
  /** Where the pipeline was found now: then changed files are told, too. */
  readonly source?: PipelineSource;
}

/** The first place where a replay is not what was recorded. */
export interface RunDivergence extends RecordLocation, RecordDifference {
  /** What that usually comes from. */
  readonly means: string;
  /** Where, what was recorded, what comes now and what that means, as lines for people. */
  readonly message: string;
}

/** What a replay of a run came to. */
export interface RunReplay {
  readonly runId: string;
  readonly pipeline: string;
  /** Whether everything that was decided anew is as it was recorded, as far as the record goes. */
  readonly identical: boolean;
  /** How the recorded run ended. One that is unfinished, or that was ended from outside, is replayed as far as its record goes. */
  readonly status: "completed" | "failed" | "cancelled" | "unfinished";
  readonly records: number;
  /** Steps that were decided anew, and steps that were taken from the record. */
  readonly decided: number;
  readonly taken: number;
  /** What of the pipeline is not what the run was started with, in words; it need not have made a difference. */
  readonly changes: readonly string[];
  readonly divergence?: RunDivergence;
}

/**
 * Runs a pipeline again over a recorded run: today's prompts, gate, hooks, schemas, asserts and routes, over the recorded answers of
 * models, tools and people and the recorded clock. Nothing is called, opened or written. `recorded` is what `host.journal(runId)`
 * gives. Throws Host `journal_damaged` for journals that are not as they were written, `journal_version`, Validation
 * `pipeline_mismatch` for a run of another pipeline, and `session_invalid` where a kind of state has no executor.
 */
export async function replayRun<I, O>(
  { spec }: Pipeline<I, O>,
  recorded: readonly RunJournal[],
  options: ReplayRunOptions = {},
): Promise<RunReplay> {
  refuseDamaged(recorded);
  const start = startOf(recorded);
  const { runId, data, at } = start;
  refuseVersionMismatch(spec, runId, start);
  const deps = replayDeps(spec, recorded, { data, at, options });
  const { status, decided, taken, difference } = await replayPipeline(spec, deps, recorded);
  const records = recorded.reduce((sum, journal) => sum + journal.records.length, 0);
  return {
    runId,
    pipeline: spec.id,
    identical: difference === undefined,
    status,
    records,
    decided,
    taken,
    changes: pipelineChanges(recordedPipeline(recorded), spec, options.source).changes.map(deps.secrets.text),
    ...(difference === undefined ? {} : { divergence: divergenceOf(difference, recorded, deps.secrets) }),
  };
}

function refuseDamaged(recorded: readonly RunJournal[]): void {
  const [fault] = verifyJournal(recorded).faults;
  if (fault === undefined) return;
  const message = `the record of run ${fault.runId} is not as it was written (${fault.fault}); it is not replayed`;
  throw new SluiceError("Host", "journal_damaged", message, { detail: { runId: fault.runId } });
}

function startOf(recorded: readonly RunJournal[]): SluiceEvent {
  const [root] = recorded.filter(({ parentId }) => parentId === undefined);
  const [first] = root?.records ?? [];
  const events = root === undefined || first === undefined ? [] : readEvents(root.runId, first);
  const start = events.find(({ type }) => type === "run.started");
  if (start !== undefined) return start;
  throw new SluiceError(
    "Host",
    "journal_damaged",
    "these journals are of no whole run: replay a run, not one of its siblings",
  );
}

interface Recording {
  /** What `run.started` says. */
  readonly data: JsonObject;
  /** When it started, epoch milliseconds. */
  readonly at: number;
  readonly options: ReplayRunOptions;
}

function replayDeps(spec: PipelineSpec, recorded: readonly RunJournal[], { data, at, options }: Recording): RunDeps {
  const env = options.env ?? process.env;
  const { named, passed } = { named: options.secrets ?? [], passed: options.passEnv ?? [] };
  const { filter } = sessionSecrets(env, { named, passed, values: [] });
  const builtins = builtinTools();
  const custom = options.tools ?? [];
  const replaced = new Set(custom.map(({ name }) => name));
  const live = new Map<string, Tool>([...builtins, ...custom].map((tool) => [tool.name, tool]));
  const tools = replayTools(live, namesIn(data.tools), recorded);
  const agent = agentExecutor(recordedModels(spec, recorded, data), modelFacts(options.prices));
  const executors = new Map<string, StateExecutor>([agent, ...(options.executors ?? [])].map((one) => [one.kind, one]));
  const problems = checkSession(spec, { tools: [...tools.keys()], kinds: [...executors.keys()] });
  if (problems.length > 0)
    throw problemsError("session_invalid", `Pipeline ${spec.id} cannot be replayed with what is given:`, problems);
  return {
    clock: replayClock(options.clock ?? systemClock, at),
    executors,
    tools,
    mode: modeIn(data),
    allow: compileEnvelope(textsIn(data.allow)),
    builtins: new Set(builtins.map(({ name }) => name).filter((name) => !replaced.has(name))),
    workspace: { root: textOf(data.cwd) },
    env: {},
    secrets: filter,
    slots: createConcurrencySlots(Number.MAX_SAFE_INTEGER),
    people: { reachable: () => true, offer: () => undefined, withdraw: () => undefined },
    // What answers were taken for was decided when they came, and is recorded.
    answers: createAnswerRule({ any: false, unwalled: false }),
    maxParallelReads: 1,
    atWork: { count: 0, started: 0 },
    ...(options.onCall === undefined ? {} : { onCall: options.onCall }),
  };
}

/** Models by the names that the record calls them; none of them can be asked. */
function recordedModels(
  spec: PipelineSpec,
  recorded: readonly RunJournal[],
  data: JsonObject,
): (agent: AgentSpec) => ResolvedModel {
  const byState = new Map<string, string>();
  for (const { runId, records } of recorded)
    for (const record of records) {
      if (record.phase !== "open" || parseAgentStep(record.stepId)?.kind !== "model") continue;
      for (const { type, executionId = "", data: said } of readEvents(runId, record)) {
        const state = executionId.split("#", 1)[0] ?? "";
        if (type === "turn.started" && typeof said.model === "string" && !byState.has(state))
          byState.set(state, said.model);
      }
    }
  const models = new Map<AgentSpec, ResolvedModel>();
  for (const [id, { agent }] of spec.states)
    if (agent !== undefined) models.set(agent, recordedModel(byState.get(id) ?? agent.model ?? textOf(data.model)));
  return (agent) => models.get(agent) ?? recordedModel(textOf(data.model));
}

function recordedModel(id: string): ResolvedModel {
  return {
    id,
    secrets: [],
    at: () => {
      throw new SluiceError("Host", "replay_acted", "a replay asks no model; this is a fault of Sluice");
    },
  };
}

function divergenceOf(
  difference: RecordDifference,
  recorded: readonly RunJournal[],
  secrets: SecretFilter,
): RunDivergence {
  const place = locationOf(difference, recorded);
  const means = usualCauseOf(difference);
  const clean = (value: Json | undefined): Json | undefined => value && redactJson(secrets.json(value));
  const [was, is] = [clean(difference.recorded), clean(difference.now)];
  return {
    ...difference,
    recorded: was,
    now: is,
    ...place,
    means,
    message: [`${whereOf(difference, place)}:`, ...differenceLines(was, is), `This usually means: ${means}.`].join(
      "\n",
    ),
  };
}

function whereOf({ runId, seq, stepId, part, path, event }: RecordDifference, place: RecordLocation): string {
  const { executionId, attempt, turn, callId } = place;
  const what = {
    step: "the next step",
    announced: "what is announced",
    value: "the value",
    event: "the events",
    input: "the input",
    end: "the end",
    fault: "code that throws",
  };
  const parts = [
    `run ${runId}`,
    ...(executionId === undefined ? [] : [executionId]),
    ...(attempt === undefined ? [] : [`attempt ${attempt}`]),
    ...(turn === undefined ? [] : [`turn ${turn}`]),
    ...(callId === undefined ? [] : [`call ${callId}`]),
    `record ${seq} (${stepId})`,
  ];
  const in_ = event === undefined ? what[part] : `event ${event}`;
  return `${parts.join(", ")}, ${in_}${path === "$" ? "" : ` at ${path}`}`;
}

const MODES: readonly SecurityMode[] = ["ask", "allowlist", "yolo"];

function modeIn({ mode }: JsonObject): SecurityMode {
  return MODES.find((known) => known === mode) ?? "ask";
}

function namesIn(tools: Json | undefined): readonly string[] {
  return (Array.isArray(tools) ? tools : []).flatMap((tool: Json) => {
    const name = field(tool, "name");
    return typeof name === "string" ? [name] : [];
  });
}

function textsIn(value: Json | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}
