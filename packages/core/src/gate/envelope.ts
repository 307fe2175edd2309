import {
  matchesArgv,
  matchesName,
  matchesPath,
  parsePattern,
  type ToolPattern,
} from "../definition/patterns/tool-pattern.ts";
import type { AllowedTool } from "../definition/state-rules.ts";
import { insideRoot, type Reach, type Subject, type Workspace } from "./subjects.ts";

type PathSubject = Extract<Subject, { readonly kind: "path" }>;
type CommandSubject = Extract<Subject, { readonly kind: "command" }>;

/** What a stage may do, compiled once per definition. */
export interface Envelope {
  /** The patterns as their author wrote them, for denials and people. */
  readonly allowedTools: readonly string[];
  /** Whether files may be written anywhere in the workspace: Edit or Write is listed, with no scope. Plain Bash is then open. */
  readonly mayWrite: boolean;
  /** The rules whose name covers a tool; looked up once per tool. */
  rulesFor(tool: string): readonly ToolPattern[];
}

/** The envelope of a state's allowedTools. Undefined, no envelope, is not the same as [], an empty one. */
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
  return { allowedTools: patterns.map((pattern) => pattern.text), mayWrite, rulesFor };
}

/**
 * Whether a call of this tool may be any command line: it needs no reading then. Behind a wall, where the stage's files can be given
 * to the wall; without one, where the stage may read and write every file anyway.
 */
export function allowsAnyLine(envelope: Envelope, tool: string, subjects: readonly Subject[]): boolean {
  if (!envelope.rulesFor(tool).some(isPlain)) return false;
  const readable = readableIn(envelope);
  if (isWalled(subjects)) return readable !== undefined;
  return envelope.mayWrite && readable?.includes("") === true;
}

/** Whether the call runs behind an OS sandbox, or not at all. */
export function isWalled(subjects: readonly Subject[]): boolean {
  return subjects.some(({ kind }) => kind === "sandboxed");
}

/** Which OS sandbox holds the processes of a call, `none` without one; undefined where it starts none that the gate knows of. */
export function sandboxOf(subjects: readonly Subject[]): string | undefined {
  const walled = subjects.find((subject) => subject.kind === "sandboxed");
  return walled?.by ?? (isLine(subjects) ? "none" : undefined);
}

/** What a process that this tool starts may touch. Without an envelope, the whole workspace. */
export function fileReach(envelope: Envelope | undefined, tool: string): Pick<Reach, "reads" | "writes"> {
  if (envelope === undefined) return { reads: [""], writes: [""] };
  // A command that a rule names runs as its author meant it, on the files it needs.
  const readable = envelope.rulesFor(tool).some(isPlain) ? readableIn(envelope) : undefined;
  const writers = WRITERS.flatMap((writer) => envelope.rulesFor(writer));
  return { reads: readable ?? [""], writes: [...new Set(writers.flatMap((rule) => placeOf(rule) ?? []))] };
}

/** The folders and files that Read opens; undefined where they are not whole folders and single files. */
function readableIn(envelope: Envelope): readonly string[] | undefined {
  const readers = envelope.rulesFor("Read");
  // Where nothing is said of reading, Bash without a scope opens the workspace.
  if (readers.length === 0 || readers.some(isPlain)) return [""];
  const places = readers.map(placeOf);
  return places.includes(undefined) ? undefined : places.filter((place) => place !== undefined);
}

/** The folder or file that a rule covers, `""` for all; undefined when it is neither. */
function placeOf({ scope }: ToolPattern): string | undefined {
  if (scope === undefined || scope === "**") return "";
  const place = scope.endsWith("/**") ? scope.slice(0, -3) : scope;
  return /[*?{}]/.test(place) ? undefined : place;
}

/** Why a call is outside the envelope, for the person who may grant it; undefined when it is inside. */
export function whyOutside(
  envelope: Envelope,
  tool: string,
  subjects: readonly Subject[],
  workspace: Workspace,
): string | undefined {
  const rules = envelope.rulesFor(tool);
  if (rules.length === 0)
    return `${tool} is not in the envelope (${envelope.allowedTools.join(", ") || "it is empty"})`;
  if (isLine(subjects) && allowsAnyLine(envelope, tool, subjects)) return undefined;
  const commands = subjects.filter((subject) => subject.kind === "command");
  const listed = commands.filter((command) => ruleFor(command, rules) !== undefined);
  const scene: Scene = {
    envelope,
    rules,
    plain: rules.some(isPlain),
    walled: isWalled(subjects),
    listed: commands.length === 0 || listed.length === 0 ? "none" : listed.length < commands.length ? "some" : "all",
    root: workspace.root,
  };
  for (const subject of subjects) {
    const why = faultOf(subject, scene);
    if (why !== undefined) return why;
  }
  const compared =
    commands.length > 0 || subjects.some((subject) => subject.kind === "path" && subject.from === undefined);
  if (scene.plain || compared) return undefined;
  return `${texts(rules)} limits ${tool} to a scope, and this call names nothing to compare with it`;
}

/** What the subjects of one call are compared with. */
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
}

function faultOf(subject: Subject, scene: Scene): string | undefined {
  switch (subject.kind) {
    case "path":
      return subject.from === undefined ? ownPathFault(subject, scene) : foundPathFault(subject, scene);
    case "command":
      return commandFault(subject, scene);
    case "host":
      return scene.plain ? undefined : `${texts(scene.rules)} says nothing about the host ${subject.host}`;
    case "opaque":
    case "refused":
      return subject.reason;
    case "line":
    case "sandboxed":
      return undefined;
  }
}

function isLine(subjects: readonly Subject[]): boolean {
  return subjects.some(({ kind }) => kind === "line");
}

/** The tools that write files: what DESIGN calls a state that may write is decided by their names. */
const WRITERS = ["Edit", "Write"];

function isPlain(rule: ToolPattern): boolean {
  return rule.scope === undefined;
}

function texts(rules: readonly ToolPattern[]): string {
  return rules.map((rule) => rule.text).join(", ");
}

/** A path the tool itself names. */
function ownPathFault({ real }: PathSubject, { rules, root }: Scene): string | undefined {
  const path = insideRoot(root, real);
  if (path !== undefined && rules.some((rule) => matchesPath(rule, path))) return undefined;
  return `${path ?? real} is outside ${texts(rules)}`;
}

/** A path found in a command: as free as Read, Edit and Write are there, since it must not be a way around them. */
function foundPathFault({ real, access, from }: PathSubject, scene: Scene): string | undefined {
  const { envelope, plain, listed, root } = scene;
  const path = insideRoot(root, real);
  if (path === undefined) return `the command leaves the workspace for ${real}`;
  // A listed command runs as listed, with the operands its author let it have.
  if (from === "cd" || (from === "operand" && listed === "all")) return undefined;
  if (access === "write") {
    const open = WRITERS.some((tool) => envelope.rulesFor(tool).some((rule) => matchesPath(rule, path)));
    return open ? undefined : `the command writes ${path}, where neither Edit nor Write is allowed`;
  }
  const readers = envelope.rulesFor("Read");
  const open = readers.length === 0 ? plain : readers.some((rule) => matchesPath(rule, path));
  return open ? undefined : `the command reads ${path}, where Read is not allowed`;
}

function ruleFor({ argv, dynamic }: CommandSubject, rules: readonly ToolPattern[]): ToolPattern | undefined {
  return rules.find((rule) => !isPlain(rule) && matchesArgv(rule, argv, dynamic));
}

function commandFault(command: CommandSubject, scene: Scene): string | undefined {
  const { envelope, rules, plain, listed, walled } = scene;
  const { argv, dynamic, assignments, readOnly, why } = command;
  const shown = excerpt(argv.join(" "));
  if (assignments.length > 0) return `${shown} runs with ${assignments.join(", ")} changed, which no rule covers`;
  if (dynamic[0] !== false) return `which command ${shown} is, is only known when it runs`;
  const rule = ruleFor(command, rules);
  if (rule !== undefined)
    return envelope.mayWrite ? undefined : (overstepOf(command, rule) ?? optionFault(command, rule, walled));
  // Beside a listed command, what reads nothing but its input is no more than a view of it.
  if (readOnly && (plain || listed !== "none")) return undefined;
  if (!plain) return `${shown} does not match ${texts(rules)}`;
  if (envelope.mayWrite) return undefined;
  return why === undefined
    ? `${shown} is not known to only read, and the stage may not write files`
    : `${shown}: ${why}, and the stage may not write files`;
}

/** A rule for words that only read covers reading and no more: `git log *` is no way to write a file or to run a program. */
function overstepOf({ argv, why, readsWith }: CommandSubject, { text, command }: ToolPattern): string | undefined {
  if (why === undefined || command === undefined || readsWith?.includes(command.words) !== true) return undefined;
  return `${excerpt(argv.join(" "))}: ${why}, which ${text} does not cover in a stage that may not write files`;
}

/** Options of test runners and their like that name neither a program to run nor a file to write. */
const PLAIN_OPTION =
  /^(?:--?|-[qsvx]+|-[0-9]+|--(?:run|ci|verbose|silent|quiet|bail|exitfirst|if-present|workspaces|passWithNoTests|(?:no-)?colors?|no-watch|no-coverage|(?:watch|watchAll|coverage)=false)|(?:-[tgk]|--(?:grep|maxfail|testNamePattern|test-name-pattern))(?:=.*)?|--reporter=(?:dot|spec|tap|basic|verbose|default))$/;

/**
 * An option may name a program to run or a file to write, and so may a setting such as `SHELL=./x`. Behind a wall that comes to
 * nothing; without one, the `*` of a rule covers only those that are known to be plain where the stage may not write.
 */
function optionFault(
  { argv, dynamic, readOnly }: CommandSubject,
  { text, command }: ToolPattern,
  walled: boolean,
): string | undefined {
  if (walled || readOnly || command?.open !== true) return undefined;
  if (dynamic.includes(true))
    return `${excerpt(argv.join(" "))} gets words that are only known when it runs: without a sandbox, ${text} covers none in a stage that may not write files`;
  const odd = argv.slice(command.words).find((word) => /^(?:-|\w+=)/.test(word) && !PLAIN_OPTION.test(word));
  if (odd === undefined) return undefined;
  return `${excerpt(odd)} may name a program to run or a file to write: without a sandbox, ${text} covers no such word in a stage that may not write files`;
}

const LONGEST_EXCERPT = 120;

function excerpt(text: string): string {
  return text.length <= LONGEST_EXCERPT ? text : `${text.slice(0, LONGEST_EXCERPT)}…`;
}
