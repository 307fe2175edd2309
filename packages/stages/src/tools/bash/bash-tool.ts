import { accessSync, constants } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import {
  type Clock,
  isSluiceError,
  type Subject,
  systemClock,
  type ToolCall,
  type ToolResult,
  type ToolSpec,
} from "@sluice/core";
import { z } from "zod";
import type { Sandbox, SandboxedExit, SandboxPlan } from "../../sandbox/wall.ts";
import { withFolder } from "../files/open.ts";
import { headTail, KEPT_HALF, SHOWN_HALF } from "../files/output.ts";
import { asResult, failure, fault } from "../files/results.ts";
import { lineEnvironment } from "./language/environment.ts";
import { lineSubjects } from "./language/line-subjects.ts";
import {
  CALL_VARIABLE,
  endSurvivors,
  type ProcessEnd,
  type ProcessOptions,
  RUN_VARIABLE,
  runProcess,
} from "./process.ts";
import { type WorkspaceChanges, watchWorkspace } from "./workspace-diff.ts";

const DEFAULT_TIMEOUT_MS = 120_000;
const MAX_TIMEOUT_MS = 600_000;
/** Files a result names. */
const NAMED_CHANGES = 50;
/** Not looked up in PATH, which a workspace can prepend to. Another shell would read a line differently than the gate did. */
const SHELLS = [
  "/bin/bash",
  "/usr/bin/bash",
  "/usr/local/bin/bash",
  "/opt/homebrew/bin/bash",
  "/run/current-system/sw/bin/bash",
];
/** Bounds for what a command prints and holds in memory; its time has a limit anyway. */
const LIMITS = { outputBytes: 256 * 1024 * 1024, memoryBytes: 4 * 1024 * 1024 * 1024 };

const input = z.strictObject({
  command: z.string().min(1).describe("The command line, run by bash in the workspace's root."),
  timeout: z
    .int()
    .min(1)
    .max(MAX_TIMEOUT_MS)
    .optional()
    .describe(`Milliseconds. Default ${DEFAULT_TIMEOUT_MS}, most ${MAX_TIMEOUT_MS}.`),
  description: z
    .string()
    .max(500)
    .optional()
    .describe("What it is for, in a few words, for the person who reads along."),
});
type BashInput = z.infer<typeof input>;

export interface BashOptions {
  /** Absolute path of the bash to run. The system's when omitted. */
  readonly shell?: string;
  readonly clock?: Clock;
  /** The session's OS sandbox; none when omitted. */
  readonly sandbox?: Sandbox;
  /** What every stage of the session may do behind it, besides what the stage says. */
  readonly always?: Pick<SandboxPlan, "scratch" | "network" | "absent">;
  /** Variables that a line may set besides the ones that are harmless everywhere. */
  readonly variables?: readonly string[];
}

export function bashTool(options: BashOptions = {}): ToolSpec<BashInput> {
  return {
    name: "Bash",
    description: `Runs a command line with bash. Every call starts in the workspace's root with a fresh shell; standard input is empty.
- Output and errors come back in the order written, the first and last ${SHOWN_HALF} characters of it. A failing command gives its exit code.
- After timeout milliseconds the command and all it started are ended (timeout). Background processes are ended with the command.
- Where the stage may run only some commands, write plain lines: commands, pipes, && and ||, globs, "cd DIR &&", 2>&1. Substitutions, loops and here-documents need a grant there.
- To read, search and edit files, use Read, Grep, Glob, Edit and Write.`,
    input,
    effect: "write",
    subjects: (bash, workspace, scene) => lineSubjects(bash.command, workspace, scene, options),
    // What holds a command has to be known before the command is judged.
    ready: () => proven(options.sandbox),
    // Without `recover`: nobody can tell how far an interrupted command got.
    execute: (bash, call) => asResult(() => run(bash, call, options)),
  };
}

/** What is missing is said where the call is judged: then it is refused. */
async function proven(sandbox: Sandbox | undefined): Promise<void> {
  try {
    await sandbox?.prove();
  } catch (thrown) {
    if (!isSluiceError(thrown, "sandbox_missing")) throw thrown;
  }
}

async function run(bash: BashInput, call: ToolCall, options: BashOptions): Promise<ToolResult> {
  const clock = options.clock ?? systemClock;
  const line = lineToRun(bash, call, options);
  const isWalled = call.judged.some(({ kind }) => kind === "sandboxed");
  // Nothing changes the workspace behind a wall that may not.
  const watch = call.mayWrite || isWalled ? undefined : await watchWorkspace(call.workspace, clock, call.signal);
  const shown = headTail(SHOWN_HALF);
  const kept = headTail(KEPT_HALF);
  const take = (text: string): boolean => {
    shown.push(text);
    kept.push(text);
    return true;
  };
  const shell = options.shell ?? findShell();
  const end = await withFolder(call.workspace.root, async (root): Promise<ProcessEnd & Partial<SandboxedExit>> => {
    const program: ProcessOptions = {
      file: shell,
      // One pipe for both, so that output and errors keep their order; the inner bash sees the line and nothing of this.
      args: ["--noprofile", "--norc", "-c", 'exec "$0" --noprofile --norc -c -- "$1" 2>&1', shell, line],
      cwd: isWalled ? call.workspace.root : root.path,
      env: {
        ...lineEnvironment(call, call.workspace.root),
        [RUN_VARIABLE]: call.runId,
        [CALL_VARIABLE]: call.idempotencyKey,
      },
      signal: call.signal,
      timeoutMs: bash.timeout ?? DEFAULT_TIMEOUT_MS,
      stdout: take,
      stderr: take,
      limits: LIMITS,
      clock,
    };
    return isWalled ? await behindWall(program, call, options) : await runProcess(program);
  });
  // Behind a wall, what was started ended with it.
  if (!isWalled) await endSurvivors(call.idempotencyKey, clock);
  const changes = end.by === "abort" ? undefined : await watch?.changes(call.signal);
  const text = shown.text();
  return {
    ...verdict(bash, call, end, text, changes),
    ...(shown.cut ? { full: kept.text() } : {}),
    facts: {
      exitCode: end.exitCode,
      wall: isWalled ? (options.sandbox?.wall ?? "lost") : "none",
      ...(end.killed === null ? {} : { killed: end.killed }),
      ...(end.by === "itself" ? {} : { endedBy: end.by }),
      characters: shown.total,
      cut: shown.cut,
      ...(end.leftOthers ? { backgroundEnded: true } : {}),
      ...(changes === undefined
        ? {}
        : { changed: named(changes), changedFiles: changes.files.length, compared: changes.complete }),
    },
  };
}

/** The text for bash: as it was given where any line may run, else what was written from what was judged. */
function lineToRun({ command }: BashInput, call: ToolCall, options: BashOptions): string {
  const now = lineSubjects(command, call.workspace, call, options);
  // Links may have been turned since, files may have come that a glob matches, and a wall may be lost.
  if (!isDeepStrictEqual(now, call.judged)) {
    throw fault(
      "path_changed",
      "What this command names leads elsewhere than when it was judged. Nothing was run; make the call again.",
    );
  }
  if (call.anyLine) return command;
  const line = now.find((subject): subject is Extract<Subject, { kind: "line" }> => subject.kind === "line");
  if (line?.text === undefined) throw fault("command_unparsed", "This line could not be read, so it is not run.");
  return line.text;
}

async function behindWall(
  program: ProcessOptions,
  call: ToolCall,
  { sandbox, always }: BashOptions,
): Promise<SandboxedExit> {
  if (sandbox === undefined) throw fault("wall_failed", "There is no sandbox in this session. Nothing was run.");
  const { root, store } = call.workspace;
  const { reads, writes, scratch, network, readOnly } = call.reach;
  return await sandbox.run(program, {
    root,
    reads,
    writes,
    // Where the stage may write, what it leaves is for the workspace to keep.
    scratch: writes.includes("") ? [] : [...scratch, ...(always?.scratch ?? [])],
    network: network || always?.network === true,
    absent: [...(store === undefined ? [] : [store]), ...(always?.absent ?? [])],
    readOnly,
  });
}

function findShell(): string {
  for (const path of SHELLS) {
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch (thrown) {
      if (!(thrown instanceof Error)) throw thrown;
    }
  }
  throw fault("no_bash", `There is no bash at ${SHELLS.join(", ")}; commands cannot be run on this machine.`);
}

function verdict(
  bash: BashInput,
  call: ToolCall,
  end: ProcessEnd & Partial<SandboxedExit>,
  text: string,
  changes: WorkspaceChanges | undefined,
): ToolResult {
  const how = ending(end);
  const changed = changes === undefined || changes.files.length === 0 ? undefined : named(changes);
  const detail = { exit_code: end.exitCode, output: text };
  if (end.by === "abort") return failure("cancelled", "The command was stopped before it finished.", detail);
  if (changed !== undefined && onlyReads(call) && !call.othersAtWork()) {
    const message =
      "This command was judged to only read, and files changed while it ran. Nothing was put back. Do not run it again in this stage.";
    return failure("unexpected_change", message, { files: changed, ...detail });
  }
  if (end.movedAway !== undefined && end.movedAway.length > 0) {
    const message =
      "This command left files that a later git or Sluice command would obey. They were moved out of the workspace; the rest of its work stands.";
    return failure("moved_away", message, {
      moved: end.movedAway.map(({ path, to }) => `${path} -> ${to}`),
      ...detail,
    });
  }
  const limit = LIMIT_MESSAGES.get(end.by);
  if (limit !== undefined) return failure("limit_reached", limit, detail);
  const note = changed === undefined ? "" : `\n[The workspace changed while this ran: ${changed.join(", ")}]`;
  if (end.by === "timeout") {
    const ms = bash.timeout ?? DEFAULT_TIMEOUT_MS;
    return failure("timeout", `The command did not end within ${ms} ms and was ended with all it started.`, {
      ...detail,
      output: text + note,
    });
  }
  const readOnlyNote = how !== undefined && call.reach.writes.length === 0 && /Read-only file system|EROFS/.test(text);
  const output = [
    ...(how === undefined ? [] : [how]),
    ...(text === "" ? [] : [text]),
    ...(readOnlyNote ? ["[The sandbox keeps the workspace read-only in this stage.]"] : []),
  ].join("\n");
  return { ok: how === undefined, output: (output === "" ? "(no output)" : output) + note };
}

const LIMIT_MESSAGES = new Map<string, string>([
  ["output", "The command printed more than 256 MB and was ended."],
  ["memory", "The command used more than 4 GiB of memory and was ended."],
  ["cpu", "The command used too much CPU time and was ended."],
]);

/** How it ended, when that is not well. */
function ending(end: ProcessEnd): string | undefined {
  if (end.killed !== null) return `Ended by ${end.killed}`;
  return end.exitCode === 0 ? undefined : `Exit code ${end.exitCode}`;
}

function onlyReads(call: ToolCall): boolean {
  return call.judged.every((subject) => {
    if (subject.kind === "command") return subject.readOnly;
    if (subject.kind === "line") return subject.text !== undefined;
    return subject.kind === "path" ? subject.access === "read" : subject.kind === "sandboxed";
  });
}

function named(changes: WorkspaceChanges): string[] {
  const names = changes.files.slice(0, NAMED_CHANGES).map(({ path, how }) => `${path} (${how})`);
  const more = changes.files.length - names.length;
  return more > 0 ? [...names, `and ${more} more`] : names;
}
