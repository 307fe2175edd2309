import { accessSync, constants } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { type Clock, systemClock, type ToolCall, type ToolResult, type ToolSpec } from "@sluice/core";
import { z } from "zod";
import { commandSubjects } from "./bash-subjects.ts";
import { withFolder } from "./open.ts";
import { headTail, KEPT_HALF, SHOWN_HALF } from "./output.ts";
import { CALL_VARIABLE, endSurvivors, type ProcessEnd, RUN_VARIABLE, runProcess } from "./process.ts";
import { asResult, failure, fault } from "./results.ts";
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
/** Variables that make bash run something else, read the line differently, or find folders elsewhere. */
const SHELL_VARIABLES =
  /^(?:BASH_.*|ENV|SHELLOPTS|BASHOPTS|POSIXLY_CORRECT|CDPATH|GLOBIGNORE|EXECIGNORE|PS4|PROMPT_COMMAND)$/;

/** Locales in which bash takes a line for the letters that the gate read: in some others a backslash is half of a letter. */
const READ_ALIKE = /^(?:C|POSIX|[^.]+\.utf-?8(?:@.*)?)$/i;

/** Variables of git in a stage that may not write: whatever may name a program, a file to write, or another repository than was judged. */
const GIT_VARIABLES = /^GIT_(?!CONFIG_(?:GLOBAL|SYSTEM|NOSYSTEM)$|CEILING_DIRECTORIES$)/;

/** Settings for git in a stage that may not write, above those of the repository: no program of its own is run. */
const READING_GIT = {
  "core.fsmonitor": "false",
  "core.hooksPath": "/dev/null",
  "log.showSignature": "false",
  "safe.bareRepository": "explicit",
};

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
}

export function bashTool(options: BashOptions = {}): ToolSpec<BashInput> {
  return {
    name: "Bash",
    description: `Runs a command line with bash. Every call starts in the workspace's root with a fresh shell; standard input is empty.
- Output and errors come back in the order written, the first and last ${SHOWN_HALF} characters of it. A failing command gives its exit code.
- After timeout milliseconds the command and all it started are ended (timeout). Background processes are ended with the command.
- Every command in the line is judged on its own; write simple lines. Where the stage may not write files, only commands that read are free, and a change of the workspace by one is an error (unexpected_change).
- To read, search and edit files, use Read, Grep, Glob, Edit and Write.`,
    input,
    effect: "write",
    subjects: (bash, workspace) => commandSubjects(bash.command, workspace),
    // Without `recover`: nobody can tell how far an interrupted command got.
    execute: (bash, call) => asResult(() => run(bash, call, options)),
  };
}

async function run(bash: BashInput, call: ToolCall, options: BashOptions): Promise<ToolResult> {
  const clock = options.clock ?? systemClock;
  const shell = options.shell ?? findShell();
  // Links may have been turned since the line was judged.
  if (!isDeepStrictEqual(commandSubjects(bash.command, call.workspace), call.judged)) {
    throw fault(
      "path_changed",
      "A path of this command leads elsewhere than when it was judged. Nothing was run; make the call again.",
    );
  }
  const watch = call.mayWrite ? undefined : await watchWorkspace(call.workspace, clock, call.signal);
  const shown = headTail(SHOWN_HALF);
  const kept = headTail(KEPT_HALF);
  const take = (text: string): boolean => {
    shown.push(text);
    kept.push(text);
    return true;
  };
  const end = await withFolder(call.workspace.root, (root) =>
    runProcess({
      file: shell,
      // One pipe for both, so that output and errors keep their order; the inner bash sees the line and nothing of this.
      args: ["--noprofile", "--norc", "-c", 'exec "$0" --noprofile --norc -c "$1" 2>&1', shell, bash.command],
      cwd: root.path,
      env: environment(call),
      signal: call.signal,
      timeoutMs: bash.timeout ?? DEFAULT_TIMEOUT_MS,
      stdout: take,
      stderr: take,
      clock,
    }),
  );
  await endSurvivors(call.idempotencyKey, clock);
  const changes = end.by === "abort" ? undefined : await watch?.changes(call.signal);
  const text = shown.text();
  return {
    ...verdict(bash, call, end, text, changes),
    ...(shown.cut ? { full: kept.text() } : {}),
    facts: {
      exitCode: end.exitCode,
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

function environment(call: ToolCall): Readonly<Record<string, string>> {
  const dropped = (name: string): boolean => SHELL_VARIABLES.test(name) || (!call.mayWrite && GIT_VARIABLES.test(name));
  const kept = Object.fromEntries(Object.entries(call.env).filter(([name]) => !dropped(name)));
  return {
    ...kept,
    // Bash trusts a PWD that leads to the same folder, and then climbs by that name.
    PWD: call.workspace.root,
    ...(READ_ALIKE.test(kept.LC_ALL || kept.LC_CTYPE || kept.LANG || "C") ? {} : { LC_ALL: "C.UTF-8" }),
    // No colours and nothing that waits for a key: nobody sits at this terminal.
    TERM: "dumb",
    PAGER: "cat",
    GIT_PAGER: "cat",
    GIT_TERMINAL_PROMPT: "0",
    // Reading the state of a repository refreshes its index, and may run a program its settings name.
    ...(call.mayWrite
      ? {}
      : {
          GIT_OPTIONAL_LOCKS: "0",
          GIT_NO_LAZY_FETCH: "1",
          ...gitSettings(),
        }),
    [RUN_VARIABLE]: call.runId,
    [CALL_VARIABLE]: call.idempotencyKey,
  };
}

function gitSettings(): Readonly<Record<string, string>> {
  const entries = Object.entries(READING_GIT).flatMap(([key, value], at) => [
    [`GIT_CONFIG_KEY_${at}`, key],
    [`GIT_CONFIG_VALUE_${at}`, value],
  ]);
  return { GIT_CONFIG_COUNT: String(Object.keys(READING_GIT).length), ...Object.fromEntries(entries) };
}

function verdict(
  bash: BashInput,
  call: ToolCall,
  end: ProcessEnd,
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
  const note = changed === undefined ? "" : `\n[The workspace changed while this ran: ${changed.join(", ")}]`;
  if (end.by === "timeout") {
    const ms = bash.timeout ?? DEFAULT_TIMEOUT_MS;
    return failure("timeout", `The command did not end within ${ms} ms and was ended with all it started.`, {
      ...detail,
      output: text + note,
    });
  }
  const output = [...(how === undefined ? [] : [how]), ...(text === "" ? [] : [text])].join("\n");
  return { ok: how === undefined, output: (output === "" ? "(no output)" : output) + note };
}

/** How it ended, when that is not well. */
function ending(end: ProcessEnd): string | undefined {
  if (end.killed !== null) return `Ended by ${end.killed}`;
  return end.exitCode === 0 ? undefined : `Exit code ${end.exitCode}`;
}

function onlyReads(call: ToolCall): boolean {
  return call.judged.every((subject) => {
    if (subject.kind === "command") return subject.readOnly;
    return subject.kind === "path" ? subject.access === "read" : false;
  });
}

function named(changes: WorkspaceChanges): string[] {
  const names = changes.files.slice(0, NAMED_CHANGES).map(({ path, how }) => `${path} (${how})`);
  const more = changes.files.length - names.length;
  return more > 0 ? [...names, `and ${more} more`] : names;
}
