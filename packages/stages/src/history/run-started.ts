import { randomUUID } from "node:crypto";
import {
  field,
  type Json,
  type PipelineSpec,
  type RunHost,
  type RunJournal,
  SluiceError,
  type SluiceEvent,
} from "@sluice/core";
import { startedUnsandboxed } from "@sluice/core/gate";
import { readEvents } from "@sluice/core/host";
import {
  type AnswerRuleOptions,
  inputAt,
  isLifecycle,
  isTexts,
  parseStepId,
  problemsError,
  type StartAt,
  startProblems,
} from "@sluice/core/runtime";
import type { ProjectNeeds } from "../agent/agent-spec.ts";
import { isLowered } from "../sandbox/session-sandbox.ts";
import type { Sandbox, SandboxMode } from "../tools/sandbox.ts";

/** Increased when older journals can no longer be read. */
export const JOURNAL_VERSION = 2;

/** The absolute path of a file and the SHA-256 of its content. */
export type FileDigest = { readonly file: string; readonly digest: string };

/** The config that a run was started with. */
export type ConfigSource = {
  readonly file: string;
  /** Every file that it loads, except installed packages. A list, because keys that look like names of secrets are redacted. */
  readonly files: readonly FileDigest[];
};

/** Where a pipeline was loaded from, so that another process can find it again. */
export type PipelineSource =
  | { readonly kind: "programmatic" }
  | { readonly kind: "bundled"; readonly name: string; readonly config?: ConfigSource }
  | { readonly kind: "config"; readonly name: string; readonly config: ConfigSource }
  | {
      readonly kind: "file";
      readonly file: string;
      readonly export: string;
      /** Every file that it loads, except installed packages. */
      readonly files: readonly FileDigest[];
      readonly config?: ConfigSource;
    };

/** `r` and ten lowercase letters and digits: short to type, with 50 bits against collisions in one store. */
export function newRunId(): string {
  const alphabet = "abcdefghjkmnpqrstuvwxyz0123456789";
  const digits = randomUUID().replaceAll("-", "");
  let id = "r";
  for (let at = 0; at < 30; at += 3)
    id += alphabet.charAt(Number.parseInt(digits.slice(at, at + 3), 16) % alphabet.length);
  return id;
}

/** The journals of a run and its children. Throws Session `run_unknown` or `run_is_child`. */
export async function journalsOf(host: RunHost, runId: string): Promise<readonly RunJournal[]> {
  const journals = await host.journal(runId);
  const [top] = journals;
  if (top === undefined) throw new SluiceError("Session", "run_unknown", `there is no run ${runId} in this store`);
  if (top.parentId === undefined) return journals;
  const message = `${runId} is a sibling in run ${top.parentId}; use the id of the whole run`;
  throw new SluiceError("Session", "run_is_child", message);
}

export async function readRunStarted(host: RunHost, runId: string): Promise<SluiceEvent> {
  for await (const event of host.events(runId)) if (event.type === "run.started") return event;
  throw new SluiceError("Host", "journal_damaged", `run ${runId} has no run.started event`);
}

/** The `run.started` event in the journals of a run; undefined if they do not begin with it. */
export function startedIn(journals: readonly RunJournal[]): SluiceEvent | undefined {
  const root = journals.find(({ parentId }) => parentId === undefined);
  const [first] = root?.records ?? [];
  const events = root === undefined || first === undefined ? [] : readEvents(root.runId, first);
  return events.find(({ type }) => type === "run.started");
}

/**
 * Whether a run reads the project's files in a recorded step; undefined if it does not read them. A run that continues takes that step
 * again if it has recorded it, whatever its pipeline needs now. `journals` are empty for a new run.
 */
export function readsProject({ agents, skills }: ProjectNeeds, journals: readonly RunJournal[]): boolean | undefined {
  const isNeeded = agents || skills;
  const root = journals.find(({ parentId }) => parentId === undefined);
  const first = root?.records.find((record) => !isLifecycle(record))?.stepId;
  const recorded = first === undefined ? isNeeded : parseStepId(first).kind === "project";
  return isNeeded || recorded ? recorded : undefined;
}

/** Returns `started` if the run can be read with this pipeline and this version of Sluice; throws otherwise. */
export function refuseVersionMismatch(spec: PipelineSpec, runId: string, started: SluiceEvent): SluiceEvent {
  const { data } = started;
  const version = field(data, "journalVersion");
  if (version !== JOURNAL_VERSION) {
    const message = `run ${runId} has journal version ${shown(version)}, and this version of Sluice reads version ${JOURNAL_VERSION}; use the version of Sluice that started it`;
    throw new SluiceError("Host", "journal_version", message);
  }
  const pipeline = field(data, "pipeline");
  if (pipeline !== spec.id) {
    const message = `run ${runId} is a run of ${shown(pipeline)}, not of ${spec.id}`;
    throw new SluiceError("Validation", "pipeline_mismatch", message);
  }
  return started;
}

/** A run resumes in its workspace and mode. Throws Validation `workspace_mismatch` and `mode_mismatch`. */
export function refuseWorkspaceMismatch(
  runId: string,
  { data }: SluiceEvent,
  here: { readonly root: string; readonly mode: string },
): void {
  if (field(data, "cwd") !== here.root) {
    const message = `the workspace of run ${runId} is ${shown(field(data, "cwd"))}, and that of this session is ${here.root}; resume the run in its workspace`;
    throw new SluiceError("Validation", "workspace_mismatch", message);
  }
  if (field(data, "mode") !== here.mode) {
    const message = `run ${runId} was started in mode ${shown(field(data, "mode"))}, and this session is in mode ${here.mode}; resume the run in its mode`;
    throw new SluiceError("Validation", "mode_mismatch", message);
  }
}

/** What a recorded run says about the sessions that it had. */
export interface RunRules extends Pick<AnswerRuleOptions, "any" | "unwalled"> {
  /** The sandbox in which commands of the run ran or would have run, if there was one. */
  readonly wall?: string;
  /** Whether a pipeline was made during the run. */
  readonly hasMade?: boolean;
  /** Files from which its agents start and that were not there when it began, unless changes are allowed. */
  readonly missing?: readonly string[];
}
export interface RecordedRules extends RunRules {
  /** The list for mode `allowlist` that was last in force. */
  readonly allow: Json;
  /** The names of all secret variables that a session declared. */
  readonly secrets: ReadonlySet<string>;
}

/** How a recorded run that continues treats answers from other processes, where its commands ran, and what its sessions declared. */
export function recordedRules(
  { data }: SluiceEvent,
  journals: readonly RunJournal[],
  { allowChanged = false }: { readonly allowChanged?: boolean },
): RecordedRules {
  const events = journals.flatMap(({ runId, records }) =>
    records.flatMap((record) => (TELLS_WALL.test(record.events) ? readEvents(runId, record) : [])),
  );
  const wall = events.map(wallIn).find((one) => typeof one === "string" && one !== "none");
  return {
    any: field(data, "answers") === "any",
    unwalled: startedUnsandboxed(events, false),
    ...(typeof wall === "string" ? { wall } : {}),
    hasMade: events.some(({ type, data: { made } }) => type === "run.started" && made !== undefined),
    missing: allowChanged ? [] : missingIn(events),
    allow: allowIn(events),
    secrets: new Set(events.flatMap((event) => secretsIn(event))),
  };
}

/** The files that were missing when the run last began, with those of its earlier lives unless that allowed changes. */
function missingIn(events: readonly SluiceEvent[]): readonly string[] {
  const lives = [...ownEvents(events).toReversed(), ...events.slice(0, 1)];
  const missing = lives.find(({ type, data }) => BEGINS_LIFE.has(type) && data.missing !== undefined)?.data.missing;
  return isTexts(missing) ? missing : [];
}

const BEGINS_LIFE = new Set(["run.started", "run.resumed"]);

/** The names of secret variables that a start or a resume declares. */
function secretsIn({ type, data: { secrets } }: SluiceEvent): readonly string[] {
  if (!BEGINS_LIFE.has(type) || !Array.isArray(secrets)) return [];
  return secrets.filter((name: Json) => typeof name === "string");
}

/** What a run recorded itself. A fork's own start is not among them: it comes before the records that it copied. */
function ownEvents(events: readonly SluiceEvent[]): readonly SluiceEvent[] {
  return events.slice(events.findLastIndex(({ type }) => type === "run.forked") + 1);
}

function allowIn(events: readonly SluiceEvent[]): Json {
  return [...ownEvents(events).toReversed(), ...events].find(({ data }) => data.allow !== undefined)?.data.allow ?? [];
}

/** The sandbox that an event names: that of a session's commands, or that of one command. */
function wallIn({ type, data }: SluiceEvent): Json | undefined {
  return type.startsWith("run.") ? field(data.sandbox, "wall") : data.wall;
}

/** Records with an event that `recordedRules` reads; parsing all others took half of the time that a long run needs to resume. */
const TELLS_WALL = /"type":"(?:run\.(?:started|resumed|forked)|call\.(?:started|finished)|command\.started)"/;

/** Resuming or forking may use a stricter sandbox mode, never a weaker one. Throws Validation `sandbox_lowered`. */
export function refuseLowerSandbox(
  runId: string,
  { data }: SluiceEvent,
  { sandboxMode }: { readonly sandboxMode: SandboxMode },
): void {
  const recorded = field(data.sandbox, "mode");
  if (!isLowered(recorded, sandboxMode)) return;
  const message = `run ${runId} was started with sandbox mode ${shown(recorded)}, and this session has ${sandboxMode}; use ${shown(recorded)} or a stricter mode`;
  throw new SluiceError("Validation", "sandbox_lowered", message);
}

/**
 * A run whose commands or servers were sandboxed does not resume without a sandbox. `recorded` is the mechanism, `now` the session's
 * sandbox after it was proven. Throws Validation `sandbox_lowered`.
 */
export function refuseMissingSandbox(runId: string, recorded: string, now: Pick<Sandbox, "mode" | "wall">): void {
  if (now.wall !== undefined) return;
  const fix =
    now.mode === "off"
      ? "this session has sandbox mode off; use --sandbox try"
      : "none can be built here; sluice doctor explains how to get one";
  const message = `processes of run ${runId} were kept in a sandbox (${recorded}), and ${fix}`;
  throw new SluiceError("Validation", "sandbox_lowered", message);
}

/**
 * The input as the pipeline accepts it, and where the run starts. The state in which it starts has to accept its input. Throws
 * Validation `input_invalid`, and `start_invalid` for a state in which no run can start.
 */
export async function checkedInput(spec: PipelineSpec, input: unknown, from?: StartAt): Promise<Json> {
  const checked = await spec.input.check(input);
  if (!checked.ok)
    throw problemsError("input_invalid", `The input of pipeline ${spec.id} does not match its schema:`, checked.issues);
  const value: Json = JSON.parse(JSON.stringify(checked.value ?? null));
  if (from !== undefined) {
    await refuseStart(spec, value, from);
    return value;
  }
  // The run's input is also the initial state's input, which no route has checked.
  const entry = await spec.states.get(spec.initial)?.inputSchema?.check(value);
  if (entry?.ok === false)
    throw problemsError(
      "input_invalid",
      `The input of pipeline ${spec.id} does not match the input schema of state ${spec.initial}:`,
      entry.issues,
    );
  return value;
}

async function refuseStart(spec: PipelineSpec, runInput: Json, from: StartAt): Promise<void> {
  const { state } = from;
  const problems = startProblems(spec, runInput, from);
  if (problems.length > 0)
    throw problemsError("start_invalid", `A run of pipeline ${spec.id} cannot start in state ${state}:`, problems);
  const checked = await spec.states.get(state)?.inputSchema?.check(inputAt(spec, runInput, from));
  if (checked === undefined || checked.ok) return;
  const problem = `The input of state ${state} of pipeline ${spec.id} does not match its schema:`;
  throw problemsError("input_invalid", problem, checked.issues);
}

/** The state in which a run started, if not in the initial one, from the data of `run.started`. */
export function recordedStart(data: Json | undefined): StartAt | undefined {
  const from = field(data, "from");
  const [state, input] = [field(from, "state"), field(from, "input")];
  if (typeof state !== "string") return undefined;
  return input === undefined ? { state } : { state, input };
}

/** A recorded value as messages show it. */
function shown(value: Json | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}
