import {
  matchesArgv,
  matchesName,
  matchesPath,
  parsePattern,
  type ToolPattern,
} from "../definition/patterns/tool-pattern.ts";
import type { AllowedTool } from "../definition/state-rules.ts";
import { type Cleaning, commandExcerpt } from "./excerpt.ts";
import { insideRoot } from "./hard-limits.ts";
import { riskyWord } from "./known-options.ts";
import type { Reach, Subject, Workspace } from "./subjects.ts";

type PathSubject = Extract<Subject, { readonly kind: "path" }>;
type CommandSubject = Extract<Subject, { readonly kind: "command" }>;

/** The tools that a stage may use without approval, compiled once per definition. */
export interface Envelope {
  /** The patterns as written, for denials and people. */
  readonly allowedTools: readonly string[];
  /** Whether files may be written anywhere in the workspace: Edit or Write is listed without a scope. */
  readonly mayWrite: boolean;
  /** The same, or with a scope of all files, such as `**`. */
  readonly writesAll: boolean;
  /** The rules whose name matches a tool. */
  rulesFor(tool: string): readonly ToolPattern[];
}

/** What the gate knows of the pipeline around a call. */
export interface OtherStages {
  /** Whether a stage of the run may write all files: then a folder is no more dangerous than the workspace's root. */
  writesAll?(): boolean;
}

/** The envelope of a state's allowedTools. Undefined means no envelope; `[]` is an empty one. */
export function compileEnvelope(allowedTools: readonly AllowedTool[]): Envelope;
export function compileEnvelope(allowedTools: readonly AllowedTool[] | undefined): Envelope | undefined;
export function compileEnvelope(allowedTools: readonly AllowedTool[] | undefined): Envelope | undefined {
  return allowedTools === undefined ? undefined : envelopeOf(allowedTools.map(parsePattern));
}

export function envelopeOf(patterns: readonly ToolPattern[]): Envelope {
  const memo = new Map<string, readonly ToolPattern[]>();
  const rulesFor = (tool: string): readonly ToolPattern[] => {
    const known = memo.get(tool);
    if (known !== undefined) return known;
    const rules = patterns.filter((pattern) => matchesName(pattern, tool));
    memo.set(tool, rules);
    return rules;
  };
  const mayWrite = WRITERS.some((tool) => rulesFor(tool).some(isPlain));
  const writers = patterns.filter((pattern) => WRITERS.some((tool) => matchesName(pattern, tool)));
  const writesAll = writers.some(({ scope = "**" }) => EVERYTHING.test(scope));
  return { allowedTools: patterns.map((pattern) => pattern.text), mayWrite, writesAll, rulesFor };
}

/**
 * Whether a call of this tool may be any command line, without parsing it: in a sandbox, if the stage's readable files can be given
 * to the sandbox; without one, if the stage may read and write all files anyway.
 */
export function allowsAnyLine(envelope: Envelope, tool: string, subjects: readonly Subject[]): boolean {
  if (!envelope.rulesFor(tool).some(isPlain)) return false;
  const readable = readableIn(envelope);
  if (isWalled(subjects)) return readable !== undefined;
  return envelope.mayWrite && readable?.includes("") === true;
}

/** Whether the call runs inside an OS sandbox or not at all. */
export function isWalled(subjects: readonly Subject[]): boolean {
  return subjects.some(({ kind }) => kind === "sandboxed");
}

/** The OS sandbox of a call's processes, or `none`. Undefined if the gate knows of no process. */
export function sandboxOf(subjects: readonly Subject[]): string | undefined {
  let sandbox: string | undefined;
  for (const subject of subjects) {
    if (subject.kind === "sandboxed") return subject.by;
    if (subject.kind === "line") sandbox = "none";
  }
  return sandbox;
}

/** The files a process of this tool may touch; without an envelope, the whole workspace. */
export function fileReach(
  envelope: Envelope | undefined,
  tool: string,
): Pick<Reach, "reads" | "writes" | "fileReads" | "fileWrites"> {
  if (envelope === undefined) return { reads: [""], writes: [""] };
  // A command that is listed by a scope may read all files.
  const readable = envelope.rulesFor(tool).some(isPlain) ? readableIn(envelope) : undefined;
  const reads = readable ?? [""];
  const writers = WRITERS.flatMap((writer) => envelope.rulesFor(writer));
  const writes = [...new Set(writers.flatMap((rule) => scopePath(rule) ?? []))];
  const fileReads = filesOf(reads, envelope.rulesFor("Read"));
  const fileWrites = filesOf(writes, writers);
  return {
    reads,
    writes,
    ...(fileReads.length === 0 ? {} : { fileReads }),
    ...(fileWrites.length === 0 ? {} : { fileWrites }),
  };
}

/** The paths that no rule covers with all below them. */
function filesOf(paths: readonly string[], rules: readonly ToolPattern[]): readonly string[] {
  return paths.filter((path) => path !== "" && !rules.some((rule) => matchesPath(rule, path, true)));
}

/** The folders and files that Read covers; undefined if a scope is neither. */
function readableIn(envelope: Envelope): readonly string[] | undefined {
  const readers = envelope.rulesFor("Read");
  // Without a rule for Read, Bash without a scope may read the workspace.
  if (readers.length === 0 || readers.some(isPlain)) return [""];
  const paths = readers.map(scopePath);
  return paths.includes(undefined) ? undefined : paths.filter((path) => path !== undefined);
}

/** The folder or file that a rule covers, `""` for all; undefined for another glob. */
function scopePath({ scope }: ToolPattern): string | undefined {
  if (scope === undefined || scope === "**") return "";
  const path = scope.endsWith("/**") ? scope.slice(0, -3) : scope;
  return /[*?{}]/.test(path) ? undefined : path;
}

/** Why a call is outside the envelope, for the person who may grant it; undefined if it is inside. */
export function whyOutside(
  envelope: Envelope,
  tool: string,
  subjects: readonly Subject[],
  workspace: Workspace,
  cleaning: Cleaning & OtherStages = {},
): string | undefined {
  const rules = envelope.rulesFor(tool);
  if (rules.length === 0)
    return `${tool} is not in the envelope (${envelope.allowedTools.join(", ") || "it is empty"})`;
  const kinds = new Set(subjects.map(({ kind }) => kind));
  if (kinds.has("line") && allowsAnyLine(envelope, tool, subjects)) return undefined;
  const commands = kinds.has("command") ? subjects.filter((subject) => subject.kind === "command") : [];
  const listed = commands.filter((command) => rulesOf(command, rules, workspace.root).length > 0);
  const scene: Scene = {
    envelope,
    rules,
    plain: rules.some(isPlain),
    walled: kinds.has("sandboxed"),
    listed: listed.length === 0 ? "none" : listed.length < commands.length ? "some" : "all",
    root: workspace.root,
    cleaning,
  };
  for (const subject of subjects) {
    const why = faultOf(subject, scene);
    if (why !== undefined) return why;
  }
  if (scene.plain || commands.length > 0) return undefined;
  if (subjects.some((subject) => subject.kind === "path" && subject.from === undefined)) return undefined;
  return `${texts(rules)} limits ${tool} to a scope, and this call has no path or command to compare with it`;
}

/** What the subjects of one call are checked against. */
interface Scene {
  readonly envelope: Envelope;
  /** The rules for the called tool. */
  readonly rules: readonly ToolPattern[];
  /** Whether one of them has no scope. */
  readonly plain: boolean;
  readonly walled: boolean;
  /** Which commands of the call are listed by a scope. */
  readonly listed: "none" | "some" | "all";
  readonly root: string;
  readonly cleaning: Cleaning & OtherStages;
}

function faultOf(subject: Subject, scene: Scene): string | undefined {
  switch (subject.kind) {
    case "path":
      return subject.from === undefined ? ownPathFault(subject, scene) : foundPathFault(subject, scene);
    case "command":
      return commandFault(subject, scene);
    case "host":
      return scene.plain ? undefined : `${texts(scene.rules)} does not cover the host ${subject.host}`;
    case "opaque":
    case "refused":
      return subject.reason;
    case "line":
    case "sandboxed":
      return undefined;
  }
}

/** The tools that write files. */
const WRITERS = ["Edit", "Write"];

function isPlain(rule: ToolPattern): boolean {
  return rule.scope === undefined;
}

function texts(rules: readonly ToolPattern[]): string {
  return rules.map((rule) => rule.text).join(", ");
}

/** For a path that the tool takes as input. */
function ownPathFault({ real, tree }: PathSubject, { rules, plain, root }: Scene): string | undefined {
  const path = insideRoot(root, real);
  if (path !== undefined && (plain || rules.some((rule) => matchesPath(rule, path, tree)))) return undefined;
  return `${shownPath(path ?? real, tree)} is outside ${texts(rules)}`;
}

/** A path as reasons name it. */
function shownPath(path: string, tree: true | undefined): string {
  const shown = path === "" ? "." : path;
  return tree === true ? `${shown} with all below it` : shown;
}

/** For a path in a command: it needs what Read, Edit and Write need, so that Bash does not bypass them. */
function foundPathFault({ real, access, from, tree }: PathSubject, scene: Scene): string | undefined {
  const { envelope, plain, listed, root } = scene;
  const path = insideRoot(root, real);
  if (path === undefined) return `the command leaves the workspace for ${real}`;
  // The scope of a listed command covers its operands.
  if (from === "cd" || (from === "operand" && listed === "all")) return undefined;
  const covers = (rule: ToolPattern): boolean => matchesPath(rule, path, tree);
  const shown = shownPath(path, tree);
  if (access === "write") {
    const open = WRITERS.some((tool) => envelope.rulesFor(tool).some(covers));
    return open ? undefined : `the command writes ${shown}, where neither Edit nor Write is allowed`;
  }
  const readers = envelope.rulesFor("Read");
  const open = readers.length === 0 ? plain : readers.some(covers);
  return open ? undefined : `the command reads ${shown}, where Read is not allowed`;
}

/** The rules whose scopes cover a command. */
function rulesOf(
  { argv, dynamic, folder }: CommandSubject,
  rules: readonly ToolPattern[],
  root: string,
): readonly ToolPattern[] {
  const from = folder === undefined ? "" : (insideRoot(root, folder) ?? folder);
  return rules.filter((rule) => !isPlain(rule) && matchesArgv(rule, argv, dynamic, from));
}

function commandFault(command: CommandSubject, scene: Scene): string | undefined {
  const { envelope, rules, plain, listed, root, cleaning } = scene;
  const { argv, dynamic, assignments, readOnly, why } = command;
  if (assignments.length > 0)
    return `${commandExcerpt(argv, cleaning)} runs with ${assignments.join(", ")} changed, which no rule covers`;
  if (dynamic[0] !== false) return `the program of ${commandExcerpt(argv, cleaning)} is known only when it runs`;
  const covering = rulesOf(command, rules, root);
  if (covering.length > 0) {
    if (envelope.mayWrite) return undefined;
    const faults = covering.map(
      (rule) =>
        overstepOf(command, rule, scene) ?? optionFault(command, rule, scene) ?? folderFault(command, rule, scene),
    );
    return faults.includes(undefined) ? undefined : faults[0];
  }
  // Next to a listed command, a read-only command such as `head` only shows its output.
  if (readOnly && (plain || listed !== "none")) return undefined;
  const shown = commandExcerpt(argv, cleaning);
  if (!plain) return `${shown} does not match ${texts(rules)}`;
  if (envelope.mayWrite) return undefined;
  return why === undefined
    ? `${shown} is not known to only read, and the stage may not write files`
    : `${shown}: ${why}, and the stage may not write files`;
}

/** Of a command that can only read, a `*` covers only that: `git log *` must not allow writing a file or running a program. */
function overstepOf(
  { argv, readOnly, why = "it is not known to only read", hasReadingForms }: CommandSubject,
  { text, command }: ToolPattern,
  { cleaning }: Scene,
): string | undefined {
  if (readOnly || hasReadingForms !== true || command === undefined) return undefined;
  if (!command.open && command.stars.length === 0) return undefined;
  return `${commandExcerpt(argv, cleaning)}: ${why}, which ${text} does not cover in a stage that may not write files`;
}

/**
 * An option, a setting such as `SHELL=./x` or a file of options such as `@args` may name a program to run or a file to write. A
 * sandbox makes that harmless; without one, a `*` of a rule covers only what is known to do neither if the stage may not write.
 */
function optionFault(
  { argv, dynamic, readOnly, script, folder }: CommandSubject,
  { text, command }: ToolPattern,
  { walled, root, cleaning }: Scene,
): string | undefined {
  if (walled || readOnly || command === undefined) return undefined;
  if (dynamic.includes(true))
    return `${commandExcerpt(argv, cleaning)} has words that are known only when it runs: without a sandbox, ${text} does not cover them in a stage that may not write files`;
  const { words, stars } = command;
  const risky = riskyWord(inFolder(argv, folder, root), (at) => at >= words || stars.includes(at), script);
  if (risky === undefined) return undefined;
  return `${commandExcerpt([risky], cleaning)} may name a program to run or a file to write: without a sandbox, ${text} does not cover it in a stage that may not write files`;
}

/** A command as its line spells it: the gate sees a program of the workspace by its path from the root. */
function inFolder(argv: readonly string[], folder: string | undefined, root: string): readonly string[] {
  const place = folder === undefined ? undefined : insideRoot(root, folder);
  if (place === undefined) return argv;
  const start = `./${place}/`;
  return argv.map((word, at) => (at === 0 && word.startsWith(start) ? `./${word.slice(start.length)}` : word));
}

/** A scope of all files. */
const EVERYTHING = /^(?:\*\*\/)*\*\*(?:\/\*)?$/;

/**
 * In another folder than the root, a listed command may run what the run has written there: `npm test` after `cd docs`. A sandbox
 * makes that harmless, a stage that may write all files could do the same in the root, and an author may name the folder in the rule.
 */
function folderFault(
  { argv, readOnly, folder }: CommandSubject,
  { text, command }: ToolPattern,
  { envelope, walled, root, cleaning }: Scene,
): string | undefined {
  if (folder === undefined || readOnly || walled || command?.folder !== undefined) return undefined;
  if (envelope.writesAll || cleaning.writesAll?.() === true) return undefined;
  const place = insideRoot(root, folder) ?? folder;
  if (place === "") return undefined;
  const word = /^[\w./@+-]+$/.test(place) ? place : `'${place}'`;
  return `${commandExcerpt(argv, cleaning)} runs in ${place}, and without a sandbox ${text} covers it only in the workspace's root: run it there, or list it with its folder, as Bash(cd ${word} && …)`;
}
