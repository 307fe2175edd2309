import { matchesArgv, matchesName, matchesPath, parsePattern, type ToolPattern } from "../definition/patterns.ts";
import type { AllowedTool } from "../definition/types.ts";
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
  const scopes = rules.map((rule) => rule.text).join(", ");
  const commands = subjects.filter((subject) => subject.kind === "command");
  const listed = commands.length > 0 && commands.every((command) => isListed(command, rules));
  let judged = rules.some(isPlain);
  for (const subject of subjects) {
    const why = ((): string | undefined => {
      switch (subject.kind) {
        case "path":
          return subject.from === undefined
            ? ownPathFault(subject, rules, scopes, workspace)
            : foundPathFault(subject, envelope, rules, listed, workspace);
        case "command":
          return commandFault(subject, envelope, rules, scopes);
        case "host":
          return rules.some(isPlain) ? undefined : `${scopes} says nothing about the host ${subject.host}`;
        case "opaque":
        case "refused":
          return subject.reason;
      }
    })();
    if (why !== undefined) return why;
    judged ||= subject.kind === "command" || (subject.kind === "path" && subject.from === undefined);
  }
  return judged ? undefined : `${scopes} limits ${tool} to a scope, and this call names nothing to compare with it`;
}

/** The tools that write files: what DESIGN calls a state that may write is decided by their names. */
const WRITERS = ["Edit", "Write"];

function isPlain(rule: ToolPattern): boolean {
  return rule.scope === undefined;
}

/** A path the tool itself names. */
function ownPathFault(
  { real }: PathSubject,
  rules: readonly ToolPattern[],
  scopes: string,
  { root }: Workspace,
): string | undefined {
  const path = insideRoot(root, real);
  if (path !== undefined && rules.some((rule) => matchesPath(rule, path))) return undefined;
  return `${path ?? real} is outside ${scopes}`;
}

/** A path found in a command: as free as Read, Edit and Write are there, since it must not be a way around them. */
function foundPathFault(
  { real, access, from }: PathSubject,
  envelope: Envelope,
  rules: readonly ToolPattern[],
  listed: boolean,
  { root }: Workspace,
): string | undefined {
  const path = insideRoot(root, real);
  if (path === undefined) return `the command leaves the workspace for ${real}`;
  // A listed command runs as listed, with the operands its author let it have.
  if (from === "cd" || (from === "operand" && listed)) return undefined;
  if (access === "write") {
    const open = WRITERS.some((tool) => envelope.rulesFor(tool).some((rule) => matchesPath(rule, path)));
    return open ? undefined : `the command writes ${path}, where neither Edit nor Write is allowed`;
  }
  const readers = envelope.rulesFor("Read");
  const open = readers.length === 0 ? rules.some(isPlain) : readers.some((rule) => matchesPath(rule, path));
  return open ? undefined : `the command reads ${path}, where Read is not allowed`;
}

function isListed({ argv, dynamic, assignments }: CommandSubject, rules: readonly ToolPattern[]): boolean {
  if (assignments.length > 0 || dynamic[0] !== false) return false;
  return rules.some((rule) => !isPlain(rule) && matchesArgv(rule, argv, dynamic));
}

function commandFault(
  command: CommandSubject,
  envelope: Envelope,
  rules: readonly ToolPattern[],
  scopes: string,
): string | undefined {
  const { argv, dynamic, assignments, readOnly } = command;
  const shown = excerpt(argv.join(" "));
  if (assignments.length > 0) return `${shown} runs with ${assignments.join(", ")} changed, which no rule covers`;
  if (dynamic[0] !== false) return `which command ${shown} is, is only known when it runs`;
  if (isListed(command, rules)) return undefined;
  if (!rules.some(isPlain)) return `${shown} does not match ${scopes}`;
  if (envelope.mayWrite || readOnly) return undefined;
  return `${shown} is not known to only read, and the stage may not write files`;
}

const LONGEST_EXCERPT = 120;

function excerpt(text: string): string {
  return text.length <= LONGEST_EXCERPT ? text : `${text.slice(0, LONGEST_EXCERPT)}…`;
}
