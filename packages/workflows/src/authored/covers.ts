import type { Subject, ToolPattern } from "@sluice/core";
import { compileEnvelope, decide, matchesName, readPattern } from "@sluice/core/gate";

/**
 * Whether every call that a tool pattern allows is allowed by one of others, whatever the stage may write. What their texts do
 * not show counts as not allowed: the same text is, and a narrower scope of paths or of commands.
 */
export function isCovered(pattern: string, allowed: readonly string[]): boolean {
  return allowed.some((other) => pattern === other || isNarrower(pattern, other));
}

/** The tool whose scope is a command. Without one, it allows other commands than with one. */
const COMMANDS = "Bash";

/**
 * Whether tools may read by commands what the allowed ones do not: Bash without a scope reads what Read covers, and everything if
 * no rule is for Read.
 */
export function readsBeyond(tools: readonly string[], allowed: readonly string[]): boolean {
  const rules = rulesOf(tools);
  if (!rules.some((rule) => rule.scope === undefined && matchesName(rule, COMMANDS))) return false;
  const readers = rulesOf(allowed).filter((rule) => matchesName(rule, "Read"));
  if (readers.length === 0 || readers.some(({ scope }) => scope === undefined)) return false;
  return !rules.some((rule) => matchesName(rule, "Read"));
}

function rulesOf(patterns: readonly string[]): readonly ToolPattern[] {
  return patterns.map((pattern) => readPattern(pattern)).flatMap((reading) => (reading.ok ? [reading.value] : []));
}

function isNarrower(pattern: string, other: string): boolean {
  const [inner, outer] = [readPattern(pattern), readPattern(other)];
  if (!inner.ok || !outer.ok || !inner.value.literal) return false;
  const [name] = inner.value.text.split("(", 1);
  if (name === undefined || !matchesName(outer.value, name)) return false;
  const [scope, wide] = [inner.value.scope, outer.value.scope];
  if (name === COMMANDS) return scope !== undefined && wide !== undefined && isLongerCommand(scope, wide);
  if (wide === undefined) return true;
  return scope !== undefined && isInsideFolder(scope, wide);
}

/** Words that no shell and no pattern reads in another way. */
const PLAIN_WORDS = /^[\w./:@=+-]+(?: [\w./:@=+-]+)*$/u;

/**
 * Programs that run a project's code. Of others, the gate may take words only for reading under a rule with a `*`, and for anything
 * under one without, even if it has the same words.
 */
const RUNNERS: ReadonlySet<string> = new Set(
  "bun cargo deno dotnet go gradle jest just make mvn node npm npx pnpm pytest python python3 uv vitest yarn".split(
    " ",
  ),
);

/**
 * Whether a command has the words of another one and more: `pytest unit *` is within `pytest *`. In a stage that may not
 * write, the gate takes words for a rule that it does not take for a `*`, such as options, settings and `mvn test deploy`. So no word
 * may be one.
 */
function isLongerCommand(scope: string, wide: string): boolean {
  const words = wide.endsWith(" *") ? wide.slice(0, -2) : undefined;
  const own = scope.endsWith(" *") ? scope.slice(0, -2) : scope;
  if (words === undefined || !PLAIN_WORDS.test(words) || !PLAIN_WORDS.test(own)) return false;
  const [program = "", ...more] = own.split(" ");
  if (own === words) return own !== scope || RUNNERS.has(program);
  if (!RUNNERS.has(program) || !own.startsWith(`${words} `)) return false;
  // What a script of package.json does with further words is known only in the workspace.
  if (PACKAGE_MANAGER.test(program) && !(more.length === 2 && more[0] === "run")) return false;
  return !more.some((word) => /^[-@]|=/.test(word)) && takesForStar(own.split(" "), wide);
}

const PACKAGE_MANAGER = /^(?:npm|pnpm|yarn|bun)$/;

/** Whether a stage that may not write runs this command under a rule, without a sandbox. */
function takesForStar(argv: readonly string[], rule: string): boolean {
  const dynamic = argv.map(() => false);
  const command: Subject = { kind: "command", argv, dynamic, readOnly: false, assignments: [], via: [] };
  const { kind } = decide({ tool: COMMANDS }, compileEnvelope([`${COMMANDS}(${rule})`]), {
    mode: "ask",
    allow: compileEnvelope([]),
    workspace: { root: "/" },
    tool: { effect: "write", builtin: true, bound: { ok: true, subjects: [command] } },
  });
  return kind === "allow";
}

/** A folder, and everything in it. */
const FOLDER = /^(?<folder>[\w@+-][\w.@+/-]*)\/\*\*$/u;

/** Whether a scope of paths stays inside the folder of another one: `src/a/*.ts` is within `src/**`. */
function isInsideFolder(scope: string, wide: string): boolean {
  const folder = FOLDER.exec(wide)?.groups?.folder;
  if (folder === undefined || folder.includes("..") || !/^[\w.@+/*-]+$/u.test(scope)) return false;
  return !scope.includes("..") && scope.startsWith(`${folder}/`);
}
