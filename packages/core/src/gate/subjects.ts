import { isAbsolute, relative, sep } from "node:path";
import type { Json, JsonObject } from "../base/json.ts";
import type { Schema } from "../schema/schema.ts";

/**
 * One thing a call would touch, as a fact the gate compares. Paths are resolved by the tool: `real` is the path after
 * links, absolute; for something that does not exist yet, its nearest existing parent resolved and the rest appended.
 */
export type Subject =
  | {
      readonly kind: "path";
      readonly real: string;
      readonly access: "read" | "write";
      readonly from?: "redirect" | "operand" | "cd";
    }
  | {
      readonly kind: "command";
      /** Words after quote removal. */
      readonly argv: readonly string[];
      /** Which words are only known when the command runs; they never match a literal word of a rule. */
      readonly dynamic: readonly boolean[];
      /** Whether it is known to only read, with exactly these words. */
      readonly readOnly: boolean;
      /** Why it is not, where its program is one of those known to read. */
      readonly why?: string;
      /** How many of its first words, alone, would only read: a rule of those words and a `*` lets no more through than that. */
      readonly readsWith?: readonly number[];
      /** Names assigned in front of it (`NODE_OPTIONS=… npm test`): such a command falls under no rule. */
      readonly assignments: readonly string[];
      /** What it was found inside: ["xargs"], ["sh -c"], ["$()"]. */
      readonly via: readonly string[];
    }
  | { readonly kind: "host"; readonly host: string }
  /** A hard limit the tool found while looking: no grant lifts it. */
  | { readonly kind: "refused"; readonly reason: string }
  /** Something that cannot be known before it runs, so it is outside every envelope but can be granted. */
  | { readonly kind: "opaque"; readonly reason: string }
  /** The call is a command line: `text` is it written from what was judged, or `unread` is it as it was given and could not be read. */
  | { readonly kind: "line"; readonly text?: string; readonly unread?: string }
  /** It runs behind this OS sandbox, or not at all. */
  | { readonly kind: "sandboxed"; readonly by: string };

export type ToolEffect = "read" | "write" | "ask";

/** The place a session works in, as tools and the gate see it. */
export interface Workspace {
  /** Absolute, links resolved. */
  readonly root: string;
  /** Absolute real path of the run store's folder, when it is on this disk: tools neither read nor write it. */
  readonly store?: string;
}

/** What a tool needs to know of a stage to say what a call would touch. */
export interface CallScene {
  /** The environment of child processes, as in `ToolCall`. */
  readonly env: Readonly<Record<string, string>>;
  /** As in `ToolCall`. */
  readonly mayWrite: boolean;
}

/**
 * The files that a call may touch, for tools that can hold a process to it. Paths are relative to the workspace, `""` is all of
 * it; a folder stands for all below it.
 */
export interface Reach {
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  /** Folders that commands may fill although the stage may not write: what is in them is gone afterwards. */
  readonly scratch: readonly string[];
  readonly network: boolean;
  /** Absolute paths that are never written, whatever `writes` says. */
  readonly readOnly: readonly string[];
}

/** What a tool is given besides its input. */
export interface ToolCall {
  readonly runId: string;
  readonly executionId: string;
  readonly attempt: number;
  readonly proposalId: string;
  /** The same on every re-execution of this call. */
  readonly idempotencyKey: string;
  readonly workspace: Workspace;
  readonly signal: AbortSignal;
  /** Environment for child processes: the session's keys and named secrets are already taken out. */
  readonly env: Readonly<Record<string, string>>;
  /** Notes of this execution that outlive a call (which files were read, at which hash). Rebuilt on resume from `notes` of results. */
  readonly notes: Readonly<Record<string, Json>>;
  /** Whether the stage's envelope holds a tool that writes files. */
  readonly mayWrite: boolean;
  /** What a process that the call starts may touch. A call that a person granted may write the workspace. */
  readonly reach: Reach;
  /** Whether any command line may run: in full, as it was given. Otherwise what runs is the `line` among `judged`. */
  readonly anyLine: boolean;
  /** Whether another call of this session was at work at the same time. */
  readonly othersAtWork: () => boolean;
  /**
   * To be said before this call starts a process without a wall, which could write answers into the run's store: from then on
   * answers of other processes to this run need a proof.
   */
  readonly startsUnwalled: () => void;
  /** What the gate judged this call to touch: it opens these paths and no others; one that resolves otherwise by now is `path_changed`. */
  readonly judged: readonly Subject[];
  /** What `prepare` returned for this call. */
  readonly intent?: Json;
}

/** How a call ended, for the transcript and the record. Failures of the domain are values. */
export interface ToolResult {
  readonly ok: boolean;
  /** What the model reads: text, or an object for typed errors. */
  readonly output: Json;
  /** The whole of it when `output` was cut; kept in the journal. */
  readonly full?: Json;
  /** Merged into the execution's notes. */
  readonly notes?: JsonObject;
  /** Facts for the event: exit code, bytes, changed files. */
  readonly facts?: JsonObject;
}

/** A tool: what it is called, what it takes, what it touches, and how to run it. It never decides about itself. */
export interface ToolSpec<I = Json> {
  readonly name: string;
  readonly description: string;
  readonly input: Schema<I>;
  /** `read` may run beside other reads and again after a crash; `write` runs alone behind an open record; `ask` waits for a person. */
  readonly effect: ToolEffect;
  /** What this call would touch. Throwing is a hard limit. */
  readonly subjects: (input: I, workspace: Workspace, scene: CallScene) => readonly Subject[];
  /** Awaited before a call is judged, for what `subjects` needs and cannot wait for. */
  readonly ready?: () => Promise<void>;
  /** The intent recorded before a writing call runs, for recovery (hashes before and after). */
  readonly prepare?: (input: I, call: ToolCall) => Json | Promise<Json>;
  readonly execute: (input: I, call: ToolCall) => Promise<ToolResult>;
  /** After a crash: what happened to a call whose intent was recorded. Omitted means `unknown`. */
  readonly recover?: (intent: Json, call: ToolCall) => RecoverAnswer | Promise<RecoverAnswer>;
  /** For `ask`: the question and the schema of its answer. */
  readonly question?: (input: I) => { readonly question: string; readonly answer: JsonObject };
}
/** What took effect may hand over the notes that its result would have left for later calls. */
export type RecoverAnswer = "done" | "not_started" | "unknown" | { readonly done: { readonly notes: JsonObject } };

/** A path as rules see it: relative to the root, with `/` between folders, "" for the root. Undefined outside of it. */
export function insideRoot(root: string, real: string): string | undefined {
  const path = relative(root, real);
  if (path === ".." || path.startsWith(`..${sep}`) || isAbsolute(path)) return undefined;
  return sep === "/" ? path : path.replaceAll(sep, "/");
}

/** Whether a path is a folder or lies in it, on a filesystem that may not tell upper from lower case. */
export function isInside(path: string, folder: string): boolean {
  return insideRoot(foldCase(folder), foldCase(path)) !== undefined;
}

/** Upper case first: it folds letters such as the long s, which some filesystems take for an s. */
export function foldCase(text: string): string {
  return text.toUpperCase().toLowerCase();
}
