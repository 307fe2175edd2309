import { matchesName, readPattern } from "@sluice/core/gate";

/**
 * Whether everything that a tool pattern allows is allowed by one of others. What their texts do not show counts as not
 * allowed: the same text is, and a narrower scope of paths or of commands.
 */
export function isCovered(pattern: string, allowed: readonly string[]): boolean {
  return allowed.some((other) => pattern === other || isNarrower(pattern, other));
}

/** The tool whose scope is a command. Without one, it allows other commands than with one. */
const COMMANDS = "Bash";

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

/** Whether a command has the words of another one, whatever follows them: `npm test unit *` is within `npm test *`. */
function isLongerCommand(scope: string, wide: string): boolean {
  const words = wide.endsWith(" *") ? wide.slice(0, -2) : undefined;
  const own = scope.endsWith(" *") ? scope.slice(0, -2) : scope;
  if (words === undefined || !PLAIN_WORDS.test(words) || !PLAIN_WORDS.test(own)) return false;
  return own === words || own.startsWith(`${words} `);
}

/** A folder, and everything in it. */
const FOLDER = /^(?<folder>[\w@+-][\w.@+/-]*)\/\*\*$/u;

/** Whether a scope of paths stays inside the folder of another one: `src/a/*.ts` is within `src/**`. */
function isInsideFolder(scope: string, wide: string): boolean {
  const folder = FOLDER.exec(wide)?.groups?.folder;
  if (folder === undefined || folder.includes("..") || !/^[\w.@+/*-]+$/u.test(scope)) return false;
  return !scope.includes("..") && scope.startsWith(`${folder}/`);
}
