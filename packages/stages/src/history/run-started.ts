import { randomUUID } from "node:crypto";
import {
  type AnswerRuleOptions,
  field,
  type Json,
  type PipelineSpec,
  problemsError,
  type RunHost,
  type RunJournal,
  readEvents,
  SluiceError,
  type SluiceEvent,
  startedUnsandboxed,
} from "@sluice/core";
import { isLowered } from "../sandbox/session-sandbox.ts";
import type { SandboxMode } from "../sandbox/wall.ts";

/** Changes when the order of records changes in a way that older runs cannot be resumed over. */
export const JOURNAL_VERSION = 2;

/** A file as it was: its absolute path, and the SHA-256 of what it held. */
export type FileDigest = { readonly file: string; readonly digest: string };

/** The project's config that a run was started with. */
export type ConfigSource = {
  readonly file: string;
  /** Every file it is made of, installed packages aside. A list, since keys that read like a secret's are redacted. */
  readonly files: readonly FileDigest[];
};

/** Where a pipeline came from, so that another process finds it again, with the config where there was one. */
export type PipelineSource =
  | { readonly kind: "programmatic" }
  | { readonly kind: "bundled"; readonly name: string; readonly config?: ConfigSource }
  | { readonly kind: "config"; readonly name: string; readonly config: ConfigSource }
  | {
      readonly kind: "file";
      readonly file: string;
      readonly export: string;
      /** Every file it is made of, installed packages aside. */
      readonly files: readonly FileDigest[];
      readonly config?: ConfigSource;
    };

/** Ten characters of lower case letters and digits: short to type, and 50 bits against collisions in one store. */
export function newRunId(): string {
  const alphabet = "abcdefghjkmnpqrstuvwxyz0123456789";
  const digits = randomUUID().replaceAll("-", "");
  const pick = (at: number): string =>
    alphabet[Number.parseInt(digits.slice(3 * at, 3 * at + 3), 16) % alphabet.length] ?? "";
  return `r${Array.from({ length: 10 }, (_, at) => pick(at)).join("")}`;
}

/** The journals of a run and its children. Throws Session `run_unknown` or `run_is_child`. */
export async function journalsOf(host: RunHost, runId: string): Promise<readonly RunJournal[]> {
  const journals = await host.journal(runId);
  const [top] = journals;
  if (top === undefined) throw new SluiceError("Session", "run_unknown", `there is no run ${runId} in this store`);
  if (top.parentId === undefined) return journals;
  throw new SluiceError("Session", "run_is_child", `${runId} is a part of run ${top.parentId}; name the whole run`);
}

/** What `run.started` says, from any process. */
export async function readRunStarted(host: RunHost, runId: string): Promise<SluiceEvent> {
  for await (const event of host.events(runId)) if (event.type === "run.started") return event;
  throw new SluiceError("Host", "journal_damaged", `run ${runId} has no run.started event`);
}

/** Whether a run that began with what `run.started` says can be read with this pipeline; throws why not, else returns it. */
export function refuseVersionMismatch(spec: PipelineSpec, runId: string, started: SluiceEvent): SluiceEvent {
  const { data } = started;
  const version = field(data, "journalVersion");
  if (version !== JOURNAL_VERSION) {
    throw new SluiceError(
      "Host",
      "journal_version",
      `run ${runId} has journal version ${shown(version)}, this Sluice reads ${JOURNAL_VERSION}; use the Sluice that started it`,
    );
  }
  const pipeline = field(data, "pipeline");
  if (pipeline !== spec.id) {
    throw new SluiceError(
      "Validation",
      "pipeline_mismatch",
      `run ${runId} is a run of ${shown(pipeline)}, not of ${spec.id}`,
    );
  }
  return started;
}

/** A run goes on where it was started, and in its mode; throws what is other here. */
export function refuseWorkspaceMismatch(
  runId: string,
  { data }: SluiceEvent,
  here: { readonly root: string; readonly mode: string },
): void {
  if (field(data, "cwd") !== here.root) {
    throw new SluiceError(
      "Validation",
      "workspace_mismatch",
      `run ${runId} works in ${shown(field(data, "cwd"))}, this session in ${here.root}; resume it there`,
    );
  }
  if (field(data, "mode") !== here.mode) {
    throw new SluiceError(
      "Validation",
      "mode_mismatch",
      `run ${runId} was started in mode ${shown(field(data, "mode"))}, this session is in mode ${here.mode}; a run keeps its mode, resume it in that one`,
    );
  }
}

/** What a run's record says of answers from other processes, for a process that resumes or forks it. */
export function recordedAnswers(
  { data }: SluiceEvent,
  journals: readonly RunJournal[],
): Pick<AnswerRuleOptions, "any" | "unwalled"> {
  const events = journals.flatMap(({ runId, records }) => records.flatMap((record) => readEvents(runId, record)));
  return { any: field(data, "answers") === "any", unwalled: startedUnsandboxed(events, false) };
}

/** What holds the commands of a run may be raised where it is resumed or forked, and is never lowered. */
export function refuseLowerSandbox(
  runId: string,
  { data }: SluiceEvent,
  { sandboxMode }: { readonly sandboxMode: SandboxMode },
): void {
  const recorded = field(data.sandbox, "mode");
  if (!isLowered(recorded, sandboxMode)) return;
  throw new SluiceError(
    "Validation",
    "sandbox_lowered",
    `run ${runId} was started with sandbox ${shown(recorded)}, and this session has ${sandboxMode}; use ${shown(recorded)} or a stricter one`,
  );
}

/** A run whose commands were held by a wall does not go on where there is none. Throws Validation `sandbox_lowered`. */
export function refuseMissingSandbox(runId: string, { data }: SluiceEvent, now: Json): void {
  const recorded = field(data.sandbox, "wall");
  if (typeof recorded !== "string" || recorded === "none" || field(now, "wall") !== "none") return;
  throw new SluiceError(
    "Validation",
    "sandbox_lowered",
    `the commands of run ${runId} were held by ${recorded}, and no sandbox can be built here; sluice doctor says how to get one`,
  );
}

/** The input as the pipeline and its initial state accept it. Throws Validation `input_invalid`. */
export async function checkedInput(spec: PipelineSpec, input: unknown): Promise<Json> {
  const verdict = await spec.input.check(input);
  if (!verdict.ok)
    throw problemsError("input_invalid", `The input of pipeline ${spec.id} does not fit:`, verdict.issues);
  const value: Json = JSON.parse(JSON.stringify(verdict.value ?? null));
  // The initial state's input is the run's; nobody routes there who could have checked it.
  const entry = await spec.states.get(spec.initial)?.inputSchema?.check(value);
  if (entry?.ok === false)
    throw problemsError(
      "input_invalid",
      `The input of pipeline ${spec.id} does not fit its state ${spec.initial}:`,
      entry.issues,
    );
  return value;
}

/** A value of a record as a message may show it. */
function shown(value: Json | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}
