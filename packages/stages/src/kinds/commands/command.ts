// What script() and poll() have in common: one command that the author of a pipeline declares.

import type {
  AnyState,
  CompiledSchema,
  Json,
  JsonObject,
  KindFacts,
  PipelineSpec,
  Schema,
  StateSandbox,
  StateSpec,
} from "@sluice/core";
import { isScratchFolder } from "@sluice/core/gate";
import {
  type CommonOptions,
  type CompiledTemplate,
  createReport,
  isObject,
  isVariable,
  ownSchema,
  pipelinesWithin,
  type Report,
  readVariables,
  schemaAt,
  shortened,
  stateSpec,
  statesWithin,
  toJsonValue,
} from "@sluice/core/runtime";
import { type Duration, durationText, parseDuration } from "../duration.ts";
import { type KindCommon, templateAt } from "../kind-common.ts";
import { varyingCode } from "./program-text.ts";

/** A program with its arguments, or a line for `/bin/sh`. */
export type Command = readonly string[] | { readonly shell: string };

/** The options that states with a command share. `P` is the type of what the command prints. */
export interface CommandOptions<A extends Record<string, AnyState>, P, I, O> extends KindCommon<A, I, O> {
  /**
   * A list starts a program without a shell: its elements but the first may hold `{{ctx.path}}` templates, and each stays one
   * argument, whatever a value holds. A value at the start of an element must not begin with `-`. A shell line has no templates:
   * values arrive in `env` or on standard input.
   */
  readonly command: Command;
  /** Standard input: the input of the state, or all earlier outputs, as JSON; or a text with templates. Default: empty. */
  readonly stdin?: "input" | "upstream" | (string & {});
  /** Further variables of the process. Their values may hold templates. */
  readonly env?: Readonly<Record<string, string>>;
  /** The working directory, absolute or relative to the workspace. Default: the workspace. */
  readonly cwd?: string;
  /** How long the command may run before it is stopped with everything it started. Default: 10 minutes. */
  readonly timeoutMs?: Duration;
  /** Exit codes of success. Default: 0. */
  readonly successCodes?: readonly number[];
  /**
   * Variables of the session's environment that only this command gets. Their values are masked everywhere, and no other process
   * of a run of this pipeline has them. A run does not start without them.
   */
  readonly secrets?: readonly string[];
  /**
   * Runs the command in the session's sandbox, as a command of a stage would: for commands that run code which a model may have
   * written. The workspace is read-only, but for `scratch`, unless `write` is set.
   */
  readonly sandbox?: CommandSandbox;
  /** The schema of `parsed`. Printed output that does not fit fails the state with code `schema`. */
  readonly output?: Schema<P>;
}

/** What a command in the sandbox may do. A type alias, since it is part of the fingerprint. */
export type CommandSandbox = StateSandbox & {
  /** Whether it may write to the workspace. Default: false. */
  readonly write?: boolean;
};

/** The result of a command. Each stream has at most 16,000 characters; a file that `stdoutFile` names has all of them. */
export type ScriptOutput<P = Json> = {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  /** What standard output says as JSON. */
  readonly parsed: P;
  /** Of the whole stream, relative to the workspace. There if the stream is cut. */
  readonly stdoutFile?: string;
  readonly stderrFile?: string;
};

/** A command, as its executor reads it. */
export interface CommandSpec {
  /** The command as its author wrote it, for messages. */
  readonly title: string;
  readonly argv: readonly CompiledTemplate[];
  readonly stdin?: "input" | "upstream" | CompiledTemplate;
  readonly env: ReadonlyMap<string, CompiledTemplate>;
  readonly cwd: string;
  readonly timeoutMs: number;
  readonly successCodes: readonly number[];
  readonly secrets: readonly string[];
  /** Without it, the command runs outside of the sandbox. */
  readonly sandbox?: CommandSandbox;
  /** Checks what the command printed. */
  readonly parsed?: CompiledSchema<unknown>;
}

/** The options of a command with erased types. */
export type CommandFields = Omit<CommonOptions, "env" | "sandbox"> &
  Pick<CommandOptions<Record<never, never>, unknown, unknown, unknown>, (typeof KEYS)[number]>;

const KEYS = [
  "reads",
  "command",
  "stdin",
  "env",
  "cwd",
  "timeoutMs",
  "successCodes",
  "secrets",
  "sandbox",
  "output",
] as const;

const DEFAULT_TIMEOUT_MS = 600_000;
const LONGEST_TITLE = 80;

/** What the kind of a state adds to its command. */
interface CommandKind {
  readonly kind: string;
  /** The names of its own options. */
  readonly keys: readonly string[];
  /** Reads its own options: those of its executor, and what the fingerprint covers of them. */
  readonly own: (report: Report, command: CommandSpec) => { readonly options: object; readonly parts: Parts };
  /** The schemas of what it adds to its output. */
  readonly adds?: JsonObject;
}
type Parts = NonNullable<KindFacts["parts"]>;

/** Makes a state of a command. */
export function commandState<F extends CommandFields>(given: F, { kind, keys, own, adds }: CommandKind): StateSpec {
  const report = createReport();
  const { command, templates, parts } = readCommand(report, given);
  const { options, parts: ownParts } = own(report, command);
  for (const key of ["allowedTools", "onCall"])
    if (key in given) report.add(key, "is for states that call tools; this one runs its command only");
  const mine: readonly string[] = [...KEYS, ...keys];
  const common = Object.fromEntries(Object.entries(given).filter(([key]) => !mine.includes(key)));
  return stateSpec(
    kind,
    { ...common, allowedTools: [] },
    {
      options: { command, ...options },
      output: outputSchema(command.parsed, adds),
      checksOutput: true,
      templates,
      parts: { ...parts, ...ownParts },
      shape: { command: command.title },
      keys: mine,
      problems: report.problems,
    },
  );
}

interface ReadCommand {
  readonly command: CommandSpec;
  readonly templates: NonNullable<KindFacts["templates"]>;
  readonly parts: Parts;
}

/** Reads the options of a command, and reports what is wrong with them. */
function readCommand(report: Report, fields: CommandFields): ReadCommand {
  const templates: Record<string, CompiledTemplate["references"]> = {};
  const template = (path: string, text: string): CompiledTemplate => {
    const compiled = templateAt(report, path, text);
    if (compiled.references.length > 0) templates[path] = compiled.references;
    return compiled;
  };
  const { title, argv } = readArgv(report, fields.command, template);
  const env = readOwnVariables(report, fields.env, template);
  const secrets = readSecrets(report, fields.secrets, env);
  const stdin = fields.stdin === undefined ? undefined : readStdin(report, fields.stdin, template);
  refuseVaryingCode(report, fields.command, argv, stdin);
  const cwd = readFolder(report, fields.cwd);
  const timeoutMs = durationAt(report, "timeoutMs", fields.timeoutMs) ?? DEFAULT_TIMEOUT_MS;
  const successCodes = exitCodesAt(report, "successCodes", fields.successCodes) ?? [0];
  const sandbox = readSandbox(report, fields.sandbox);
  const parsed = fields.output === undefined ? undefined : schemaAt(report, "output", fields.output);
  return {
    command: {
      ...{ title, argv, env, cwd, timeoutMs, successCodes, secrets },
      ...(stdin === undefined ? {} : { stdin }),
      ...(sandbox === undefined ? {} : { sandbox }),
      ...(parsed === undefined ? {} : { parsed }),
    },
    templates,
    parts: {
      command: { data: dataOf(fields.command) },
      timeout: durationText(timeoutMs),
      "success codes": { data: [...successCodes] },
      ...(fields.env === undefined ? {} : { env: { data: dataOf(fields.env) } }),
      ...(stdin === undefined ? {} : { stdin: { data: dataOf(fields.stdin) } }),
      ...(cwd === "" ? {} : { cwd }),
      ...(secrets.length === 0 ? {} : { secrets: { data: [...secrets] } }),
      ...(sandbox === undefined ? {} : { sandbox: { data: sandbox } }),
      ...(parsed === undefined ? {} : { out: parsed }),
    },
  };
}

/** The schema of a command's output, and of what its kind adds to it. */
function outputSchema(parsed: CompiledSchema<unknown> | undefined, more: JsonObject = {}): CompiledSchema<unknown> {
  const { definitions, $defs, ...own } = parsed?.accepted?.() ?? {};
  // A reference to the whole schema would lead to the output instead.
  const isWhole = !/"\$ref":"#\/?"/.test(JSON.stringify(own));
  const text = { type: "string" } as const;
  const properties = { exitCode: { type: "integer" }, stdout: text, stderr: text, parsed: isWhole ? own : {}, ...more };
  return ownSchema({
    type: "object",
    properties: { ...properties, stdoutFile: text, stderrFile: text },
    required: Object.keys(properties),
    ...(definitions === undefined ? {} : { definitions }),
    ...($defs === undefined ? {} : { $defs }),
  });
}

/** The command among the options of a state; undefined for a state without one. */
export function commandOf(options: unknown): CommandSpec | undefined {
  return isObject(options) && isCommandSpec(options.command) ? options.command : undefined;
}

function isCommandSpec(command: unknown): command is CommandSpec {
  return (
    isObject(command) && Array.isArray(command.argv) && Array.isArray(command.secrets) && command.env instanceof Map
  );
}

/** Whether a state of a pipeline, or of those that it may run, says what its processes may do in the sandbox. */
export function runsInSandbox(spec: PipelineSpec): boolean {
  return statesWithin(spec).some(
    ({ sandbox, options }) => sandbox !== undefined || commandOf(options)?.sandbox !== undefined,
  );
}

/** The secrets that commands of a pipeline declare, and of those that it may run, each with a state that declares it. */
export function declaredSecrets(spec: PipelineSpec): ReadonlyMap<string, string> {
  const declared = new Map<string, string>();
  for (const { states } of pipelinesWithin(spec))
    for (const [id, { options }] of states)
      for (const name of commandOf(options)?.secrets ?? []) if (!declared.has(name)) declared.set(name, id);
  return declared;
}

type MakeTemplate = (path: string, text: string) => CompiledTemplate;

function readArgv(
  report: Report,
  command: unknown,
  template: MakeTemplate,
): { readonly title: string; readonly argv: readonly CompiledTemplate[] } {
  if (Array.isArray(command) && command.length > 0 && command.every((word) => typeof word === "string")) {
    const words = command.map(String);
    for (const [index, word] of words.entries())
      if (word.includes("\0")) report.add(`command[${index}]`, "holds a NUL, which no argument can");
    const argv = words.map((word, index) => template(`command[${index}]`, word));
    if (words[0] === "") report.add("command[0]", "must be the program to run");
    if (argv[0] !== undefined && argv[0].references.length > 0)
      report.add("command[0]", "has a template, but the program is fixed", "let a route choose among states instead");
    return { title: titleOf(words.join(" ")), argv };
  }
  if (isObject(command) && typeof command.shell === "string" && command.shell.trim() !== "") {
    const { shell } = command;
    report.unknownKeys("command", command, ["shell"]);
    if (/\{\{\s*(?:ctx|input)\b/.test(shell))
      report.add(
        "command.shell",
        "has a template, but values never become part of a shell line",
        'pass them in env, and write "$NAME"; or on stdin; or use a list of arguments',
      );
    if (shell.includes("\0")) report.add("command.shell", "holds a NUL, which no argument can");
    return { title: titleOf(shell), argv: ["/bin/sh", "-c", shell].map(literal) };
  }
  report.add("command", 'must be a list with a program and its arguments, or { shell: "…" }', '["npm", "test"]');
  return { title: "", argv: [] };
}

/** A list starts no shell, but it may name one, or another program that executes text. */
function refuseVaryingCode(
  report: Report,
  command: unknown,
  argv: readonly CompiledTemplate[],
  stdin: CommandSpec["stdin"],
): void {
  if (!Array.isArray(command)) return;
  const varies = (index: number): boolean => (argv[index]?.references.length ?? 0) > 0;
  const inputVaries = typeof stdin === "string" || (stdin?.references.length ?? 0) > 0;
  const found = varyingCode(command.map(String), varies, inputVaries);
  if (found === undefined) return;
  const path = found.kind === "input" ? "stdin" : `command[${found.index}]`;
  const message = `has a value of the run, but ${found.program} executes it as code`;
  report.add(path, message, "pass the value in env, or as an argument behind the code");
}

function literal(text: string): CompiledTemplate {
  return { paths: [], references: [], render: () => text };
}

function titleOf(text: string): string {
  return shortened(text.replaceAll(/\s+/g, " ").trim().toWellFormed(), LONGEST_TITLE);
}

/** Variables that name programs, code, or settings that name these: a value of a run must not decide that. */
const LOADS_CODE = new RegExp(
  `^(?:${[
    "PATH|SHELL|HOME|ZDOTDIR|XDG_\\w+|TERMINFO|TERMCAP|GCONV_PATH|MAKEFLAGS|GNUMAKEFLAGS|TAR_OPTIONS|GIT_\\w+|GNUPGHOME",
    "EDITOR|VISUAL|PAGER|MANPAGER|BROWSER|LESSOPEN|LESSCLOSE|SSH_ASKPASS|SUDO_ASKPASS|OPENSSL_CONF|OPENSSL_MODULES",
    "NODE_OPTIONS|NODE_PATH|NPM_CONFIG_\\w+|CLASSPATH|JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS|_JAVA_OPTIONS|JAVA_HOME",
    "MAVEN_OPTS|GRADLE_OPTS|GRADLE_USER_HOME|PYTHON(?:PATH|STARTUP|HOME|USERBASE|BREAKPOINT|PYCACHEPREFIX)",
    "PERL5LIB|PERL5OPT|PERL5DB|PERLLIB|RUBYLIB|RUBYOPT|GEM_PATH|GEM_HOME|BUNDLE_GEMFILE|BUNDLE_PATH|LUA_INIT|LUA_C?PATH",
    "PHPRC|PHP_INI_SCAN_DIR|DOTNET_STARTUP_HOOKS|GOFLAGS|GOROOT|GOPATH|RUSTC|RUSTC_WRAPPER|RUSTFLAGS|CARGO_HOME|CC|CXX|LD",
    "KUBECONFIG|DOCKER_CONFIG|DOCKER_HOST|AWS_CONFIG_FILE|AWS_SHARED_CREDENTIALS_FILE",
  ].join("|")})$`,
  "i",
);

function readOwnVariables(report: Report, env: unknown, template: MakeTemplate): ReadonlyMap<string, CompiledTemplate> {
  const set = readVariables(report, "env", env, []) ?? {};
  const variables = new Map<string, CompiledTemplate>();
  for (const [name, text] of Object.entries(set)) {
    const compiled = template(`env.${name}`, text);
    if (compiled.references.length > 0 && LOADS_CODE.test(name))
      report.add(`env.${name}`, "decides which code runs, so it cannot have templates");
    variables.set(name, compiled);
  }
  return variables;
}

function readSecrets(report: Report, secrets: unknown, env: ReadonlyMap<string, unknown>): readonly string[] {
  if (secrets === undefined) return [];
  if (!Array.isArray(secrets)) {
    report.add("secrets", "must be a list of names of variables", '["NPM_TOKEN"]');
    return [];
  }
  return secrets.flatMap((name: unknown, index) => {
    const path = `secrets[${index}]`;
    if (typeof name !== "string" || !isVariable(name)) {
      report.add(path, "is not the name of a variable");
      return [];
    }
    if (/^(?:PATH|HOME|PWD|OLDPWD)$/.test(name)) report.add(path, `${name} is what every program needs, and no secret`);
    if (env.has(name))
      report.add(path, `${name} is also set in env`, "remove it there: its value comes from the session");
    return [name];
  });
}

function readStdin(report: Report, stdin: unknown, template: MakeTemplate): CommandSpec["stdin"] {
  if (stdin === "input" || stdin === "upstream") return stdin;
  if (typeof stdin === "string") return template("stdin", stdin);
  report.add("stdin", 'must be "input", "upstream" or a text');
  return undefined;
}

function readFolder(report: Report, cwd: unknown): string {
  if (cwd === undefined) return "";
  if (typeof cwd === "string" && cwd !== "" && !cwd.includes("\0")) {
    if (/\{\{\s*ctx\b/.test(cwd)) report.add("cwd", "has a template, but the working directory is fixed");
    return cwd;
  }
  report.add("cwd", "must be a path, absolute or relative to the workspace");
  return "";
}

function readSandbox(report: Report, sandbox: unknown): CommandSandbox | undefined {
  if (sandbox === undefined) return undefined;
  if (!isObject(sandbox)) {
    report.add("sandbox", 'must be an object: {}, { write: true } or { scratch: ["coverage"] }');
    return undefined;
  }
  const { network, scratch, write } = sandbox;
  if (write !== undefined && typeof write !== "boolean") report.add("sandbox.write", "must be true or false");
  if (network !== undefined && typeof network !== "boolean") report.add("sandbox.network", "must be true or false");
  if (scratch !== undefined && !(Array.isArray(scratch) && scratch.every(isScratchFolder)))
    report.add("sandbox.scratch", "must be a list of folders of the workspace", '["coverage"]');
  report.unknownKeys("sandbox", sandbox, ["network", "scratch", "write"]);
  return {
    ...(network === true ? { network } : {}),
    ...(Array.isArray(scratch) ? { scratch: scratch.map(String) } : {}),
    ...(write === true ? { write } : {}),
  };
}

/** A duration in milliseconds; undefined if there is none. */
export function durationAt(report: Report, path: string, value: unknown): number | undefined {
  if (value === undefined) return undefined;
  const read = parseDuration(value);
  if (read.ok) return read.ms;
  report.add(path, read.message);
  return undefined;
}

/** A list of exit codes; undefined if there is none. */
export function exitCodesAt(report: Report, path: string, codes: unknown): readonly number[] | undefined {
  if (codes === undefined) return undefined;
  if (Array.isArray(codes) && codes.length > 0 && codes.every(isExitCode)) return [...codes];
  report.add(path, "must be a list of exit codes from 0 to 255", "[0]");
  return undefined;
}

function isExitCode(code: unknown): code is number {
  return typeof code === "number" && Number.isInteger(code) && code >= 0 && code <= 255;
}

/** An option as plain data, for the fingerprint. */
function dataOf(value: unknown): Json {
  const own = toJsonValue(value);
  return own.ok ? own.value : null;
}
