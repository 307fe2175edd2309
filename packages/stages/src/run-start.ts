import { randomUUID } from "node:crypto";
import {
  compileEnvelope,
  field,
  type Json,
  type PipelineSpec,
  problemsError,
  type RunDeps,
  type RunHost,
  SluiceError,
  type SluiceEvent,
} from "@sluice/core";

/** Changes when the order of records changes in a way that older runs cannot be resumed over. */
export const JOURNAL_VERSION = 1;

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

/** What `run.started` says, from any process. */
export async function startOf(host: RunHost, runId: string): Promise<SluiceEvent> {
  for await (const event of host.events(runId)) if (event.type === "run.started") return event;
  throw new SluiceError("Host", "journal_damaged", `run ${runId} has no run.started event`);
}

/** Whether this session may go on with a run that was started with what `run.started` says; throws what is other. */
export function refuseOther(
  spec: PipelineSpec,
  runId: string,
  { data }: SluiceEvent,
  here: { readonly root: string; readonly mode: string },
  acceptChanges: boolean,
): void {
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
      "pipeline_other",
      `run ${runId} is a run of ${shown(pipeline)}, not of ${spec.id}`,
    );
  }
  if (field(data, "fingerprint") !== spec.fingerprint && !acceptChanges) {
    throw new SluiceError(
      "Validation",
      "pipeline_changed",
      `pipeline ${spec.id} was changed since run ${runId} started (states, routes, envelopes, schemas or prompts); bring the old one back, or accept the changes when resuming`,
    );
  }
  if (field(data, "cwd") !== here.root) {
    throw new SluiceError(
      "Validation",
      "workspace_other",
      `run ${runId} works in ${shown(field(data, "cwd"))}, this session in ${here.root}; resume it there`,
    );
  }
  if (field(data, "mode") !== here.mode) {
    throw new SluiceError(
      "Validation",
      "mode_other",
      `run ${runId} was started in mode ${shown(field(data, "mode"))}, this session is in mode ${here.mode}; a run keeps its mode`,
    );
  }
}

/**
 * Whether the tools that the pipeline's stages may call are those that the run was started with; throws which are not. Those
 * that come with Sluice are left out: they change with its version only, and what they did is read back.
 */
export function refuseOtherTools(
  spec: PipelineSpec,
  runId: string,
  { data }: SluiceEvent,
  { tools, builtins }: Pick<RunDeps, "tools" | "builtins">,
  acceptChanges: boolean,
): void {
  if (acceptChanges) return;
  const recorded = field(data, "tools");
  const matters = (name: string): boolean => !builtins.has(name) && mayCall(spec, name);
  const changed = Array.isArray(recorded)
    ? recorded.flatMap((was: Json) => {
        const name = shown(field(was, "name"));
        if (!matters(name)) return [];
        const tool = tools.get(name);
        if (tool === undefined) return [`${name} is gone`];
        return tool.schemaDigest === field(was, "digest") ? [] : [`${name} is another`];
      })
    : // What cannot be compared is not taken to be the same.
      [...tools.keys()].filter(matters).map((name) => `${name} was not recorded`);
  if (changed.length === 0) return;
  throw new SluiceError(
    "Validation",
    "tools_changed",
    `tools of run ${runId} were changed since it started: ${changed.join(", ")}; bring the old ones back, or accept the changes when resuming`,
    { detail: { tools: changed } },
  );
}

function mayCall({ states }: PipelineSpec, tool: string): boolean {
  return [...states.values()].some(({ allowedTools }) => {
    const envelope = compileEnvelope(allowedTools);
    return envelope === undefined || envelope.rulesFor(tool).length > 0;
  });
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
