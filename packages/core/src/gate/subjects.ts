import type { Json, JsonObject } from "../base/json.ts";
import type { Schema } from "../schema/schema.ts";

/**
 * One thing a call would touch, as compared by the gate. The tool resolves paths: `real` is absolute and free of links; of a path
 * that does not exist, the nearest existing parent is resolved.
 */
export type Subject =
  | {
      readonly kind: "path";
      readonly real: string;
      readonly access: "read" | "write";
      readonly from?: "redirect" | "operand" | "cd";
      /** Whether the call also touches what is below the path: a rule then covers it only if its scope covers all of that. */
      readonly tree?: true;
    }
  | {
      readonly kind: "command";
      /** Words after quote removal. */
      readonly argv: readonly string[];
      /** Which words are known only when the command runs; they never match a literal word of a rule. */
      readonly dynamic: readonly boolean[];
      /** Whether it is known to only read, with exactly these words. */
      readonly readOnly: boolean;
      /** Why it is not read-only although its program usually is. */
      readonly why?: string;
      /** Whether its program, of git its subcommand, is known to have forms that only read: a rule with a `*` covers only these. */
      readonly hasReadingForms?: true;
      /** Of a command that runs a script of package.json, such as `npm test`: the words of the last command of the script, if it is of plain ones; behind "\n" those of the script that it calls. */
      readonly script?: readonly string[];
      /** Variables assigned in front of it (`NODE_OPTIONS=… npm test`); no rule matches such a command. */
      readonly assignments: readonly string[];
      /** Where it was found: ["xargs"], ["sh -c"], ["$()"]. */
      readonly via: readonly string[];
      /** The folder that it runs in, absolute and free of links; absent in the workspace's root. */
      readonly folder?: string;
    }
  | { readonly kind: "host"; readonly host: string }
  /** A hard limit that the tool found; no grant overrides it. */
  | { readonly kind: "refused"; readonly reason: string }
  /** Unknown before the call runs, so it is outside every envelope, but can be granted. */
  | { readonly kind: "opaque"; readonly reason: string }
  /** A command line: `text` is rebuilt from the parsed commands, `unread` is the original of one that could not be parsed. */
  | { readonly kind: "line"; readonly text?: string; readonly unread?: string }
  /** The call runs inside this OS sandbox or not at all. */
  | { readonly kind: "sandboxed"; readonly by: string };

/** What a call changes in one file. A type, because it is recorded, and only types count as JSON to the compiler. */
export type FileEdit = {
  /** Absolute, links resolved. */
  readonly real: string;
  readonly removed: number;
  readonly added: number;
};

export type ToolEffect = "read" | "write" | "ask";

/** The project folder of a session. */
export interface Workspace {
  /** Absolute, links resolved. */
  readonly root: string;
  /** Absolute real path of the run store's folder, if it is on this disk; tools may neither read nor write it. */
  readonly store?: string;
}

/** The folder of a run store with a record of each command that has not ended. */
export const COMMANDS_FOLDER = "commands";

/** The properties of a stage that affect what its calls touch. */
export interface CallScene {
  /** The environment of child processes, as in `ToolCall`. */
  readonly env: Readonly<Record<string, string>>;
  /** As in `ToolCall`. */
  readonly mayWrite: boolean;
  /** Variables in `env` whose values must not become part of a subject, because subjects are recorded. */
  readonly unrecorded?: readonly string[];
  /** As in `ToolCall`: a call with a known secret in its subjects does not run. */
  readonly secrets?: TextMask;
}

/**
 * The files that a call may touch, for tools that sandbox a process. Paths are relative to the workspace, `""` is all of it, and a
 * folder includes everything below it.
 */
export interface Reach {
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  /** Those of `reads` that mean a file only: a folder of that name may not be read. */
  readonly fileReads?: readonly string[];
  /** The same of `writes`. */
  readonly fileWrites?: readonly string[];
  /** Folders that commands may write although the stage may not write files; their content is discarded afterwards. */
  readonly scratch: readonly string[];
  readonly network: boolean;
  /** Absolute paths that are never written, whatever `writes` says. */
  readonly readOnly: readonly string[];
}

/** Files of the workspace that a pipeline's interrupts name. Paths are relative to the workspace. */
export interface WatchedFiles {
  matches(path: string): boolean;
  /** Whether a file below this folder may match. */
  mayHold(folder: string): boolean;
}

/** Masks secrets in texts. */
export interface TextMask {
  text(text: string): string;
  /** How many characters at the end of a text may begin a secret. */
  begun(text: string): number;
}

/** The context of a tool's execution. */
export interface ToolCall {
  readonly runId: string;
  readonly executionId: string;
  readonly attempt: number;
  readonly proposalId: string;
  /** The same on every re-execution of this call. */
  readonly idempotencyKey: string;
  readonly workspace: Workspace;
  readonly signal: AbortSignal;
  /** Environment for child processes, without the session's keys and named secrets. */
  readonly env: Readonly<Record<string, string>>;
  /** Masks the session's secrets. The result is masked anyway; a tool that cuts a text masks it before, since a cut may halve one. */
  readonly secrets?: TextMask;
  /** As in `CallScene`. */
  readonly unrecorded?: readonly string[];
  /** Notes of earlier calls of this attempt, such as hashes of files that were read. Rebuilt on resume from `notes` of results. */
  readonly notes: Readonly<Record<string, Json>>;
  /** Whether the processes of the stage may write files: its envelope has a tool that does, and it has no limit on edits. */
  readonly mayWrite: boolean;
  /** The files a process of this call may touch. A granted call may write the workspace. */
  readonly reach: Reach;
  /** Whether the command line may run as it was given. Otherwise run the `line` in `judged`. */
  readonly anyLine: boolean;
  /** The files whose changes start interrupts: the run needs to know which of them the call changes. Absent if there are none. */
  readonly watched?: WatchedFiles;
  /** Whether another call of this session was running at the same time. */
  readonly othersAtWork: () => boolean;
  /**
   * Call this before starting a process without a sandbox. Such a process could write answers into the run store, so answers from
   * other processes to this run then need a proof. Throws Validation `process_undeclared` unless the tool has `startsProcesses`.
   */
  readonly startsUnwalled: () => void;
  /** The subjects that the gate approved. Open only these paths; one that now resolves differently is `path_changed`. */
  readonly judged: readonly Subject[];
  /** What `measure` returned, in stages that limit edits. The call must not change another file or more lines. */
  readonly edits?: readonly FileEdit[];
  /** The return value of `prepare` for this call. */
  readonly intent?: Json;
  /** The media types of files that the model reads in results; absent if it reads only text. */
  readonly takes?: readonly string[];
}

/** What a tool may use to measure a call. */
export type MeasureScene = Pick<ToolCall, "workspace" | "notes" | "judged">;

/** A file that a model reads as such, for example an image. A type alias, since results are JSON. */
export type ResultFile = {
  readonly name: string;
  /** Such as `image/png`. */
  readonly mediaType: string;
  /** Base64. Masking would break it, so a file that contains a known secret in base64 is refused. */
  readonly data: string;
};

/** The result of a call, for the transcript and the record. Expected failures are values. */
export interface ToolResult {
  readonly ok: boolean;
  /** What the model reads: text, or an object for typed errors. */
  readonly output: Json;
  /** What the model reads beside the output, of the types that `ToolCall.takes` lists; at most 5 MB together. */
  readonly files?: readonly ResultFile[];
  /** The complete output if `output` was cut; kept in the journal. */
  readonly full?: Json;
  /** Merged into the attempt's notes. */
  readonly notes?: JsonObject;
  /** Data of the event: exit code, bytes, changed files. */
  readonly facts?: JsonObject;
  /**
   * The files that a writing call changed, as paths in the workspace with `/`. Absent: the paths among its subjects that it may
   * write, unless it failed.
   */
  readonly changed?: readonly string[];
  /** A writing call may have changed other files than these, and it is unknown which. */
  readonly changesUnknown?: boolean;
}

/** The definition of a tool. Whether a call may run is decided by the gate alone. */
export interface ToolSpec<I = Json> {
  readonly name: string;
  readonly description: string;
  readonly input: Schema<I>;
  /** `read` may run beside other reads and again after a crash; `write` runs alone behind an open record; `ask` waits for a person. */
  readonly effect: ToolEffect;
  /** What this call would touch. A throw counts as a hard limit. */
  readonly subjects: (input: I, workspace: Workspace, scene: CallScene) => readonly Subject[];
  /** Awaited before `subjects` is called, for asynchronous preparation. */
  readonly ready?: () => Promise<void>;
  /**
   * What this call would change now; [] if it would fail. Called in stages that limit edits, before the call is decided. A throw
   * counts as a hard limit. Without it, such a stage denies the calls of a writing tool.
   */
  readonly measure?: (input: I, scene: MeasureScene) => readonly FileEdit[] | Promise<readonly FileEdit[]>;
  /** The intent recorded before a writing call runs, for recovery (hashes before and after). */
  readonly prepare?: (input: I, call: ToolCall) => Json | Promise<Json>;
  readonly execute: (input: I, call: ToolCall) => Promise<ToolResult>;
  /** After a crash: what happened to a call whose intent was recorded. `unknown` when omitted. */
  readonly recover?: (intent: Json, call: ToolCall) => RecoverAnswer | Promise<RecoverAnswer>;
  /** For `ask`: the question and the schema of its answer. */
  readonly question?: (input: I) => { readonly question: string; readonly answer: JsonObject };
  /** Whether its calls may start processes without a sandbox: required for `call.startsUnwalled()`. */
  readonly startsProcesses?: true;
}
/** A call that took effect may return the notes of its lost result. */
export type RecoverAnswer = "done" | "not_started" | "unknown" | { readonly done: { readonly notes: JsonObject } };
