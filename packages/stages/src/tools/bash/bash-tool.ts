import { resolve } from "node:path";
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
import { LiveText, NO_MASK } from "../../secrets/cut-text.ts";
import { BASH_FACTS, BASH_TIMEOUT_MS, type BashInput, SHOWN_HALF } from "../builtin-facts.ts";
import { withFolder } from "../files/open.ts";
import { isFolder, isProgram } from "../files/paths.ts";
import { asResult, failure, fault } from "../files/results.ts";
import { headTail, KEPT_HALF } from "../files/text.ts";
import type { Sandbox, SandboxedExit, SandboxPlan } from "../sandbox.ts";
import { lineEnvironment } from "./language/environment.ts";
import {
  CALL_VARIABLE,
  endSurvivors,
  type ProcessEnd,
  type ProcessOptions,
  RUN_VARIABLE,
  runProcess,
  SHELLS,
} from "./process.ts";
import { reportingChanges, type WorkspaceChanges, watchWorkspace } from "./workspace-diff.ts";

/** Changed files that a result lists. */
const NAMED_CHANGES = 50;
/** Limits on a command's output and memory; its time is limited by the timeout. */
const LIMITS = { outputBytes: 256 * 1024 * 1024, memoryBytes: 4 * 1024 * 1024 * 1024 };

export interface BashOptions {
  /** Absolute path of the bash to run. The system's bash when omitted. */
  readonly shell?: string;
  readonly clock?: Clock;
  /** The session's OS sandbox; none when omitted. */
  readonly sandbox?: Sandbox;
  /** What every stage may do in the sandbox, in addition to its own permissions. */
  readonly always?: Pick<SandboxPlan, "scratch" | "network" | "absent">;
  /** Variables that a line may set, in addition to the harmless ones. */
  readonly variables?: readonly string[];
}

export function bashTool(options: BashOptions = {}): ToolSpec<BashInput> {
  const judge = commandJudge(options);
  return {
    ...BASH_FACTS,
    subjects: (bash, workspace, scene) => judge.subjects(bash.command, workspace, scene),
    ready: judge.ready,
    // No `recover`: it is unknown how far an interrupted command got.
    execute: (bash, call) => {
      const execute = (): Promise<ToolResult> => asResult(() => run(bash, call, options, judge));
      // A sandbox that forbids writing needs no comparison.
      if (isWalledIn(call) && call.reach.writes.length === 0) return execute();
      return asResult(() => reportingChanges(call, options.clock ?? systemClock, execute));
    },
  };
}

async function run(bash: BashInput, call: ToolCall, options: BashOptions, judge: CommandJudge): Promise<ToolResult> {
  const clock = options.clock ?? systemClock;
  const line = judge.lineToRun(bash.command, call);
  const isWalled = isWalledIn(call);
  // A sandbox that forbids writing needs no comparison.
  const isExpectedToRead = !call.mayWrite && !isWalled;
  const watch = isExpectedToRead ? await watchWorkspace(call.workspace, clock, call.signal) : undefined;
  const shown = headTail(SHOWN_HALF);
  const kept = headTail(KEPT_HALF);
  const keep = (text: string): void => {
    shown.push(text);
    kept.push(text);
  };
  // Masked before the output is cut, which could halve a secret.
  const masked = new LiveText(call.secrets ?? NO_MASK, keep);
  const take = (text: string): boolean => {
    masked.push(text);
    return true;
  };
  const shell = options.shell ?? findShell();
  const end = await withFolder(call.workspace.root, async (root): Promise<ProcessEnd & Partial<SandboxedExit>> => {
    const program: ProcessOptions = {
      file: shell,
      // One pipe for both keeps output and errors in order; the inner bash sees only the line.
      args: ["--noprofile", "--norc", "-c", 'exec "$0" --noprofile --norc -c -- "$1" 2>&1', shell, line],
      cwd: isWalled ? call.workspace.root : root.path,
      env: {
        ...lineEnvironment(call, call.workspace.root),
        [RUN_VARIABLE]: call.runId,
        [CALL_VARIABLE]: call.idempotencyKey,
      },
      signal: call.signal,
      timeoutMs: bash.timeout ?? BASH_TIMEOUT_MS,
      stdout: take,
      stderr: take,
      limits: LIMITS,
      clock,
    };
    return isWalled ? await behindWall(program, call, options) : await runProcess(program);
  });
  // Processes in a sandbox end with it.
  if (!isWalled) await endSurvivors(call.idempotencyKey, clock);
  const changes = end.by === "abort" ? undefined : await watch?.changes(call.signal);
  masked.end();
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

function isWalledIn({ judged }: ToolCall): boolean {
  return judged.some(({ kind }) => kind === "sandboxed");
}

async function behindWall(
  program: ProcessOptions,
  call: ToolCall,
  { sandbox, always }: BashOptions,
): Promise<SandboxedExit> {
  if (sandbox === undefined) throw fault("sandbox_failed", "This session has no sandbox. Nothing was run.");
  const { root, store } = call.workspace;
  const { reads, writes, fileReads = [], fileWrites = [], scratch, network, readOnly } = call.reach;
  const isOpen = (path: string, files: readonly string[]): boolean =>
    !files.includes(path) || !isFolder(resolve(root, path));
  return await sandbox.run(program, {
    root,
    reads: reads.filter((path) => isOpen(path, fileReads)),
    writes: writes.filter((path) => isOpen(path, fileWrites)),
    // In a writing stage these files belong to the workspace.
    scratch: writes.includes("") ? [] : [...scratch, ...(always?.scratch ?? [])],
    network: network || always?.network === true,
    absent: [...(store === undefined ? [] : [store]), ...(always?.absent ?? [])],
    readOnly,
  });
}

function findShell(): string {
  const shell = SHELLS.find(isProgram);
  if (shell === undefined)
    throw fault("no_bash", `There is no bash at ${SHELLS.join(", ")}, so commands cannot run on this machine.`);
  return shell;
}

function verdict(
  bash: BashInput,
  call: ToolCall,
  end: ProcessEnd & Partial<SandboxedExit>,
  text: string,
  changes: WorkspaceChanges | undefined,
): ToolResult {
  const changed = changes === undefined || changes.files.length === 0 ? undefined : named(changes);
  const detail = { exit_code: end.exitCode, output: text };
  if (end.by === "abort") return failure("cancelled", "The command was cancelled before it finished.", detail);
  if (changed !== undefined && onlyReads(call) && !call.othersAtWork()) {
    const message =
      "This command was expected to only read, but files changed while it ran. Nothing was rolled back. Do not run it again in this stage.";
    return failure("unexpected_change", message, { files: changed, ...detail });
  }
  if (end.movedAway !== undefined && end.movedAway.length > 0) {
    const message =
      "This command created files that a later git or Sluice command would obey. They were moved out of the workspace; its other changes remain.";
    const moved = end.movedAway.map(({ path, to }) => `${path} -> ${to}`);
    return failure("moved_away", message, { moved, ...detail });
  }
  const limit = LIMIT_MESSAGES.get(end.by);
  if (limit !== undefined) return failure("limit_reached", limit, detail);
  const note = changed === undefined ? "" : `\n[The workspace changed while this ran: ${changed.join(", ")}]`;
  if (end.by === "timeout") {
    const ms = bash.timeout ?? BASH_TIMEOUT_MS;
    const message = `The command did not end within ${ms} ms and was stopped with everything it started.`;
    return failure("timeout", message, { ...detail, output: text + note });
  }
  const ok = end.exitCode === 0 && end.killed === null;
  const lines = text === "" ? [] : [text];
  if (!ok) {
    lines.unshift(end.killed === null ? `Exit code ${end.exitCode}` : `Ended by ${end.killed}`);
    if (call.reach.writes.length === 0 && /Read-only file system|EROFS/.test(text))
      lines.push("[The sandbox keeps the workspace read-only in this stage.]");
  }
  return { ok, output: (lines.length === 0 ? "(no output)" : lines.join("\n")) + note };
}

const LIMIT_MESSAGES = new Map<string, string>([
  ["output", "The command printed more than 256 MB and was stopped."],
  ["memory", "The command used more than 4 GiB of memory and was stopped."],
  ["cpu", "The command used too much CPU time and was stopped."],
]);

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

type SubjectsOf = ToolSpec<string>["subjects"];

export interface CommandJudgeOptions {
  /** The OS sandbox that commands run in; none when omitted. */
  readonly sandbox?: Sandbox;
  /** Variables that a line may set, in addition to the harmless ones. */
  readonly variables?: readonly string[];
}

/** Judges command lines, for the Bash tool and for agents that run commands themselves. */
export interface CommandJudge {
  /** Loads what only calls need, and proves the sandbox, on which the gate's decision depends. */
  ready(): Promise<void>;
  /** What a command line would run and touch. Needs `ready`. */
  subjects: SubjectsOf;
  /**
   * The line that an approved call may run: as given if any line may run, else as rewritten from what was judged. Throws
   * `path_changed` if it would now touch something else.
   */
  lineToRun(command: string, call: ToolCall): string;
}

/** Judges command lines as the Bash tool does, for programs that run them themselves. */
export function commandJudge(options: CommandJudgeOptions = {}): CommandJudge {
  let analyser: typeof import("./language/line-subjects.ts") | undefined;
  const subjects: SubjectsOf = (command, workspace, scene) => {
    if (analyser === undefined) throw new Error("the shell analyser is not loaded");
    return analyser.lineSubjects(command, workspace, scene, options);
  };
  return {
    ready: async () => {
      analyser = await import("./language/line-subjects.ts");
      await proven(options.sandbox);
    },
    subjects,
    lineToRun: (command, call) => {
      const now = subjects(command, call.workspace, call);
      // Links or globbed files may have changed since, or the sandbox was lost.
      if (!isDeepStrictEqual(now, call.judged)) {
        throw fault(
          "path_changed",
          "The paths in this command no longer lead to where they led when the command was checked. Nothing was run. Make the call again.",
        );
      }
      if (call.anyLine) return command;
      const line = now.find((subject): subject is Extract<Subject, { kind: "line" }> => subject.kind === "line");
      if (line?.text === undefined)
        throw fault("command_unparsed", "This line could not be parsed, so it was not run.");
      return line.text;
    },
  };
}

/** Ignores a missing sandbox, which the judgement of the call then refuses. */
async function proven(sandbox: Sandbox | undefined): Promise<void> {
  try {
    await sandbox?.prove();
  } catch (thrown) {
    if (!isSluiceError(thrown, "sandbox_missing")) throw thrown;
  }
}
