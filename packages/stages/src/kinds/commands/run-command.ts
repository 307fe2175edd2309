// Runs the command of a state. It runs inside a step, whose record keeps how it ended.

import { hash } from "node:crypto";
import { realpath, stat } from "node:fs/promises";
import { delimiter, isAbsolute, resolve, sep } from "node:path";
import {
  type ActScope,
  type Clock,
  type EventDraft,
  isSluiceError,
  type Json,
  type StageContext,
  type StepCall,
} from "@sluice/core";
import { messageOf, raceAbort, redactText } from "@sluice/core/runtime";
import {
  CALL_VARIABLE,
  endSurvivors,
  type ProcessEnd,
  type ProcessOptions,
  RUN_VARIABLE,
  runProcess,
} from "../../tools/bash/process.ts";
import { systemCode } from "../../tools/files/results.ts";
import type { CommandReach, SandboxedExit } from "../../tools/sandbox.ts";
import { durationText } from "../duration.ts";
import type { CommandSpec } from "./command.ts";
import { collectStreams, cutStreams, NO_STREAMS, SHOWN, type Streams } from "./streams.ts";

/** What commands need of their session. */
export interface CommandWorld {
  readonly clock: Clock;
  /** The session's environment, which has the values of secrets. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The name of the session's sandbox, once it is proven. */
  wall(): string | undefined;
  /** Runs a program in the session's sandbox. Undefined if it has none; then nothing has run. */
  walled(program: ProcessOptions, reach: CommandReach): Promise<SandboxedExit | undefined>;
}

/** A command with the values of a run, as recorded before it starts; or why these cannot be arguments. */
export type RenderedCommand =
  | {
      readonly argv: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      readonly stdin?: string;
    }
  | { readonly fault: string };

/** Why a command did not end as it should. */
export type Cause =
  | "input" // a value of the run cannot be an argument
  | "spawn" // it could not be started
  | "timeout"
  | "total" // the same, at the end of the whole poll
  | "exit" // its exit code, or a signal that ended it
  | "output" // it printed too much, or created files that other programs obey
  | "lost"; // the process that ran it died before it ended

/** How a command ended. A type alias, since it is recorded. */
export type CommandEnd = { readonly endedAt: number } & (
  | ({ readonly kind: "exited"; readonly exitCode: number; readonly parsed?: Json; readonly misfit?: string } & Streams)
  | ({ readonly kind: "broken"; readonly cause: Cause; readonly message: string } & Streams)
  /** A cap of the state or its run. */
  | ({
      readonly kind: "limit";
      readonly code: "budget" | "timeout";
      readonly message: string;
      readonly limit: string;
    } & Streams)
  /** With what it had printed, for people. */
  | ({ readonly kind: "cancelled" } & Streams)
);

/** Limits on what a command prints. It has as much memory as the system gives it. */
const LIMITS = { outputBytes: 256 * 1024 * 1024 };
/** The codes of commands that could not be started. */
const NOT_STARTED: ReadonlySet<string> = new Set(["spawn_failed", "sandbox_failed", "sandbox_missing"]);
/** Characters of `parsed` that states read without a schema, and with one. */
const LONGEST_PARSED = 200_000;

/** Fills in the values of a run. */
export function renderCommand(command: CommandSpec | undefined, ctx: StageContext): RenderedCommand {
  if (command === undefined) return { fault: "this state has no command" };
  const { argv, env, stdin } = command;
  try {
    const words = argv.map((word) => word.render(ctx));
    for (const [index, word] of words.entries()) {
      if (word.includes("\0")) return { fault: `command[${index}] holds a NUL, which no argument can` };
      if (argv[index]?.references[0]?.place.offset === 0 && word.startsWith("-"))
        return {
          fault: `command[${index}] begins with a value that starts with "-", which the program would read as an option: ${JSON.stringify(redactText(word).slice(0, 60))}. Put text before the value, such as "./" or "--name="`,
        };
    }
    const variables = [...env].map(([name, value]) => [name, value.render(ctx)] as const);
    const unfit = variables.find(([, value]) => value.includes("\0"));
    if (unfit !== undefined) return { fault: `env.${unfit[0]} holds a NUL, which no variable can` };
    return {
      argv: words,
      env: Object.fromEntries(variables),
      ...(stdin === undefined ? {} : { stdin: stdinText(stdin, ctx) }),
    };
  } catch (thrown) {
    if (isSluiceError(thrown, "prompt_unresolved")) return { fault: thrown.message };
    throw thrown;
  }
}

function stdinText(stdin: NonNullable<CommandSpec["stdin"]>, ctx: StageContext): string {
  if (typeof stdin !== "string") return stdin.render(ctx);
  return JSON.stringify(stdin === "input" ? (ctx.input ?? null) : ctx.upstream);
}

/**
 * The events of a command that is about to start: whether one that belongs in a sandbox is in one. Otherwise, what it executes may
 * answer its own run, so answers of other processes need a code from then on, also after a resume.
 */
export function startEvents(
  { executionId, ctx }: ActScope,
  { wall }: Pick<CommandWorld, "wall">,
  { title, sandbox }: CommandSpec,
): readonly EventDraft[] {
  if (sandbox === undefined) return [];
  const data = { command: title, wall: wall() ?? "none" };
  return [{ type: "command.started", executionId, attempt: ctx.attempt, data }];
}

export interface CommandStart {
  readonly command: CommandSpec;
  readonly rendered: Exclude<RenderedCommand, { readonly fault: string }>;
  /** The name of the step, unique in the attempt. */
  readonly step: string;
  /** Of this start. */
  readonly timeoutMs: number;
  /** Reads standard output. */
  readonly parse: (text: string) => Json;
  /** Whether a result with this exit code goes to other states. */
  readonly counts: (exitCode: number) => boolean;
}

/** Runs a command to its end, and stops everything that it started. Returns failures as values. */
export async function runCommand(
  scope: ActScope,
  world: CommandWorld,
  start: CommandStart,
  signal: AbortSignal,
): Promise<CommandEnd> {
  const { clock, env } = world;
  const { command, rendered, timeoutMs } = start;
  const { workspace, runId } = scope.ctx;
  const key = callKey(scope, start.step, scope.steps.incarnation);
  const cwd = resolve(workspace, command.cwd);
  const broken = (cause: Cause, message: string, streams: Streams = NO_STREAMS): CommandEnd => ({
    ...{ kind: "broken", cause, message: scope.secrets.text(message), ...streams },
    endedAt: clock.now(),
  });
  const missing = await folderFault(cwd);
  if (missing !== undefined) return broken("spawn", `the working directory ${cwd} ${missing}`);
  const unknown = command.secrets.find((name) => !isSecretOf(scope, name, env[name]));
  if (unknown !== undefined)
    return broken(
      "input",
      `${unknown} is not a secret of this run: the pipeline that declares it was not known when the run started`,
    );
  const [file = "", ...args] = rendered.argv;
  const collected = collectStreams(scope.secrets);
  const secrets = command.secrets.map((name) => [name, env[name] ?? ""] as const);
  const take = (stream: "stdout" | "stderr") => (text: string) => {
    collected[stream].push(text);
    return true;
  };
  const path: { readonly PATH?: string } = secrets.length === 0 ? {} : await foreignPath(scope.env, workspace);
  let end: ProcessEnd & Partial<SandboxedExit>;
  try {
    end = await scope.deadline.timed(signal, (signal) =>
      runIn(scope, world, command, {
        file,
        args,
        cwd,
        env: {
          ...scope.env,
          ...path,
          PWD: cwd,
          ...rendered.env,
          ...Object.fromEntries(secrets),
          [RUN_VARIABLE]: runId,
          [CALL_VARIABLE]: key,
        },
        ...(rendered.stdin === undefined ? {} : { stdin: rendered.stdin }),
        signal,
        timeoutMs,
        stdout: take("stdout"),
        stderr: take("stderr"),
        limits: LIMITS,
        clock,
      }),
    );
  } catch (thrown) {
    if (!isSluiceError(thrown) || !NOT_STARTED.has(thrown.code)) throw thrown;
    const hint = path.PATH === undefined || path.PATH === scope.env.PATH ? "" : WITHOUT_OWN;
    return broken("spawn", `${command.title}: ${thrown.message}${hint}`);
  }
  // A process may leave its group, but it keeps its environment.
  await endSurvivors(key, clock);
  const texts = {
    stdout: collected.stdout.text().trim(),
    stderr: collected.stderr.text().trim(),
  };
  const streams = async (): Promise<Streams> => await cutStreams(scope, texts, start.step);
  if (end.by === "abort") return aborted(scope, clock, await streams());
  if (end.by === "timeout")
    return broken(
      "timeout",
      `${command.title} did not end within ${durationText(timeoutMs)} and was stopped`,
      await streams(),
    );
  if (end.by !== "itself")
    return broken("output", `${command.title} printed more than 256 MB and was stopped`, await streams());
  if (end.movedAway !== undefined && end.movedAway.length > 0) {
    const moved = end.movedAway.map(({ path, to }) => `${path} -> ${to}`).join(", ");
    const message = `${command.title} created files that a later git or Sluice command would obey; they were moved: ${moved}`;
    return broken("output", message, await streams());
  }
  if (end.exitCode === null)
    return broken("exit", `${command.title} was ended by ${end.killed ?? "a signal"}`, await streams());
  const { exitCode } = end;
  if (!start.counts(exitCode)) {
    const shown = { stdout: tail(texts.stdout), stderr: tail(texts.stderr) };
    return { kind: "exited", exitCode, ...shown, endedAt: clock.now() };
  }
  const own = await streams();
  if (!command.successCodes.includes(exitCode)) return { kind: "exited", exitCode, ...own, endedAt: clock.now() };
  // After masking, since an escape in JSON can hide a secret.
  const whole = scope.secrets.json(start.parse(texts.stdout));
  const parsing = await scope.deadline.timed(signal, (timed) => raceAbort(timed, parsedOf(command, whole, own)));
  if (parsing === undefined) return aborted(scope, clock, own);
  return { kind: "exited", exitCode, ...own, ...parsing.value, endedAt: clock.now() };
}

/** Whether a run masks the value of a secret and keeps it from all other processes. */
function isSecretOf({ secrets, env }: ActScope, name: string, value = ""): boolean {
  const text = value.trim();
  return !(name in env) && secrets.text(text) !== text;
}

/** Runs a program in the sandbox if its command belongs there. */
async function runIn(
  scope: ActScope,
  { walled }: CommandWorld,
  { sandbox }: CommandSpec,
  program: ProcessOptions,
): Promise<ProcessEnd & Partial<SandboxedExit>> {
  if (sandbox === undefined) return await runProcess(program);
  const { write = false, scratch = [], network = false } = sandbox;
  const { protectedPaths: readOnly } = scope;
  const end = await walled(program, { writes: write ? [""] : [], scratch: write ? [] : scratch, network, readOnly });
  if (end !== undefined) return end;
  scope.startsUnwalled();
  return await runProcess(program);
}

/** What other states read of the parsed output. */
async function parsedOf(
  { parsed: schema }: CommandSpec,
  whole: Json,
  { stdout }: Streams,
): Promise<{ readonly parsed: Json } | { readonly misfit: string }> {
  if (schema === undefined) return { parsed: JSON.stringify(whole).length <= SHOWN ? whole : { result: stdout } };
  const checked = await schema.check(whole);
  if (!checked.ok) {
    const issues = checked.issues.map(({ path, message }) => `${path}: ${message}`);
    return { misfit: `its output does not fit the schema: ${issues.join("; ")}` };
  }
  const { length } = JSON.stringify(checked.value);
  if (length <= LONGEST_PARSED) return { parsed: checked.value };
  return { misfit: `its output has ${length} characters of JSON, but at most ${LONGEST_PARSED} go to other states` };
}

/** Characters of each stream that are kept of a command that has to be run again. */
const TAIL = 2_000;

function tail(text: string): string {
  return text.length <= TAIL ? text : `… ${text.slice(-TAIL)}`.toWellFormed();
}

function aborted({ deadline, signal }: ActScope, clock: Clock, streams: Streams): CommandEnd {
  const endedAt = clock.now();
  const hit = signal.aborted ? undefined : deadline.exceeded();
  if (hit === undefined) return { kind: "cancelled", ...streams, endedAt };
  const { code, message, limit } = hit;
  return { kind: "limit", code, message, limit, ...streams, endedAt };
}

/** The end of a command whose process of Sluice died: its outcome is unknown. */
export function lostCommand({ title }: CommandSpec, clock: Clock): CommandEnd {
  const message = `${title} was running when its process was stopped; it may have run. Set repeat: true if it may run twice`;
  return { kind: "broken", cause: "lost", message, ...NO_STREAMS, endedAt: clock.now() };
}

/** Whether another process of Sluice began this step and died. Then what it started is stopped first. */
export async function wasLost(
  scope: ActScope,
  step: string,
  opened: StepCall["opened"],
  clock: Clock,
): Promise<boolean> {
  if (opened === undefined || opened.incarnation === scope.steps.incarnation) return false;
  await endSurvivors(callKey(scope, step, opened.incarnation), clock);
  return true;
}

/** Names a start in the environment of its processes. */
function callKey({ ctx, executionId }: ActScope, step: string, incarnation: string): string {
  return hash("sha256", JSON.stringify([ctx.runId, executionId, ctx.attempt, step, incarnation])).slice(0, 32);
}

const SYSTEM_PATH = ["/usr/bin", "/bin"].join(delimiter);
const WITHOUT_OWN =
  " A command with secrets does not find programs of the workspace through PATH: name such a program by its path, as in ./node_modules/.bin/tool.";

/** PATH without the folders of the workspace, where an agent may have put a program of any name. */
async function foreignPath(
  { PATH }: Readonly<Record<string, string>>,
  workspace: string,
): Promise<{ readonly PATH?: string }> {
  if (PATH === undefined) return {};
  const root = await realpath(workspace);
  const entries = PATH.split(delimiter);
  const foreign = await Promise.all(entries.map((entry) => isForeign(entry, root)));
  const kept = entries.filter((_, index) => foreign[index] === true);
  // An empty PATH means the current folder.
  return { PATH: kept.length === 0 ? SYSTEM_PATH : kept.join(delimiter) };
}

async function isForeign(entry: string, root: string): Promise<boolean> {
  if (!isAbsolute(entry)) return false;
  try {
    return !`${await realpath(entry)}${sep}`.startsWith(`${root}${sep}`);
  } catch (thrown) {
    // Nothing is there, but something might be created.
    if (systemCode(thrown) === undefined) throw thrown;
    return false;
  }
}

async function folderFault(path: string): Promise<string | undefined> {
  try {
    return (await stat(path)).isDirectory() ? undefined : "is not a folder";
  } catch (thrown) {
    const code = systemCode(thrown);
    return code === "ENOENT" || code === "ENOTDIR"
      ? "does not exist"
      : `cannot be opened: ${code ?? messageOf(thrown)}`;
  }
}
