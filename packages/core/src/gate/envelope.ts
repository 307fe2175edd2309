import { matchesArgv, matchesName, matchesPath, parsePattern, type ToolPattern } from "../definition/patterns.ts";
import type { AllowedTool } from "../definition/state-rules.ts";
import type { Subject, Workspace } from "./facts.ts";
import { insideRoot } from "./place.ts";

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
  const commands = subjects.filter((subject) => subject.kind === "command");
  const listed = commands.length > 0 && commands.every((command) => isListed(command, rules));
  const scene: Scene = { envelope, rules, plain: rules.some(isPlain), listed, root: workspace.root };
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
  /** Whether every command of the call is listed by a scope. */
  readonly listed: boolean;
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
      return subject.from === "operand" && readsFreely(scene) ? undefined : subject.reason;
    case "refused":
      return subject.reason;
  }
}

/** Where every command may run anyway and Read has no scope, a reader's operand that nobody can know yet opens nothing more. */
function readsFreely({ envelope, plain }: Scene): boolean {
  const readers = envelope.rulesFor("Read");
  return plain && envelope.mayWrite && (readers.length === 0 || readers.some(isPlain));
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
  if (from === "cd" || (from === "operand" && listed)) return undefined;
  if (access === "write") {
    const open = WRITERS.some((tool) => envelope.rulesFor(tool).some((rule) => matchesPath(rule, path)));
    return open ? undefined : `the command writes ${path}, where neither Edit nor Write is allowed`;
  }
  const readers = envelope.rulesFor("Read");
  const open = readers.length === 0 ? plain : readers.some((rule) => matchesPath(rule, path));
  return open ? undefined : `the command reads ${path}, where Read is not allowed`;
}

function isListed({ argv, dynamic }: CommandSubject, rules: readonly ToolPattern[]): boolean {
  return rules.some((rule) => !isPlain(rule) && matchesArgv(rule, argv, dynamic));
}

function commandFault(command: CommandSubject, { envelope, rules, plain }: Scene): string | undefined {
  const { argv, dynamic, assignments, readOnly } = command;
  const shown = excerpt(argv.join(" "));
  if (assignments.length > 0) return `${shown} runs with ${assignments.join(", ")} changed, which no rule covers`;
  if (dynamic[0] !== false) return `which command ${shown} is, is only known when it runs`;
  if (isListed(command, rules)) return undefined;
  if (!plain) return `${shown} does not match ${texts(rules)}`;
  if (envelope.mayWrite || readOnly) return undefined;
  return `${shown} is not known to only read, and the stage may not write files`;
}

const LONGEST_EXCERPT = 120;

function excerpt(text: string): string {
  return text.length <= LONGEST_EXCERPT ? text : `${text.slice(0, LONGEST_EXCERPT)}…`;
}
