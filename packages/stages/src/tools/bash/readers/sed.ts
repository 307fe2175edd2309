/** The position in a script, and the depth of braces. */
interface Cursor {
  readonly text: string;
  at: number;
  depth: number;
}

function take(cursor: Cursor, pattern: RegExp): string | undefined {
  pattern.lastIndex = cursor.at;
  const found = pattern.exec(cursor.text)?.[0];
  if (found !== undefined) cursor.at += found.length;
  return found;
}

/**
 * Whether a script consists only of addresses, printing, deleting, hold space, jumps, inserted text, and `s` without `e` and `w`:
 * others may run commands or write files. Syntax that seds read differently is refused too.
 */
export function isPlainSed(script: string): boolean {
  const cursor: Cursor = { text: script, at: 0, depth: 0 };
  if (script.trim() === "" || script.includes("\r")) return false;
  while (cursor.at < script.length) {
    if (take(cursor, /[ \t\n;]+/y) !== undefined || take(cursor, /#[^\n]*/y) !== undefined) continue;
    if (!readAddresses(cursor) || !readFunction(cursor)) return false;
  }
  return cursor.depth === 0;
}

function readAddresses(cursor: Cursor): boolean {
  const first = readAddress(cursor);
  if (first === undefined) return false;
  if (first && take(cursor, /[ \t]*,[ \t]*/y) !== undefined) {
    const second = take(cursor, /[+~][0-9]+/y) === undefined ? readAddress(cursor) : true;
    if (second !== true) return false;
  }
  take(cursor, /[ \t]*(?:![ \t]*)?/y);
  return true;
}

/** Whether there is an address; undefined if it is not plain. */
function readAddress(cursor: Cursor): boolean | undefined {
  if (take(cursor, /[0-9]+(?:~[0-9]+)?|\$/y) !== undefined) return true;
  if (cursor.text[cursor.at] !== "/") return cursor.text[cursor.at] === "\\" ? undefined : false;
  cursor.at += 1;
  if (!readDelimited(cursor, "/", true)) return undefined;
  take(cursor, /[IM]*/y);
  return true;
}

/** The end of a function; a closing brace is left to be read next. */
const END = String.raw`[ \t]*(?:[;\n]|(?=[}#])|$)`;
/** Functions other than `s` and `y`. A label may contain `#`. */
const FUNCTION = new RegExp(
  [
    String.raw`\{`,
    `[}=dDgGhHnNpPxzF]${END}`,
    String.raw`[lLqQ][ \t]*[0-9]*${END}`,
    String.raw`[btT][ \t]*[A-Za-z0-9_]*[ \t]*(?:[;\n]|(?=\})|$)`,
    String.raw`:[ \t]*[A-Za-z0-9_]+[ \t]*(?:[;\n]|$)`,
    String.raw`[aic](?:\\\n|[ \t]*\\?(?=[^\n\\]))(?:[^\n\\]|\\[^\n])+(?:\n|$)`,
  ].join("|"),
  "y",
);

function readFunction(cursor: Cursor): boolean {
  const name = take(cursor, /[sy]/y);
  if (name !== undefined) return readReplacement(cursor, name === "s");
  const found = take(cursor, FUNCTION);
  if (found?.startsWith("{") === true) cursor.depth += 1;
  if (found?.startsWith("}") === true) cursor.depth -= 1;
  return found !== undefined && cursor.depth >= 0;
}

const REPLACED = new RegExp(END, "y");

function readReplacement(cursor: Cursor, isPattern: boolean): boolean {
  const delimiter = take(cursor, /[/|#,:@!%_~+=]/y);
  if (delimiter === undefined) return false;
  const isRead = isPattern
    ? readDelimited(cursor, delimiter, true, failsIfEnded)
    : readDelimited(cursor, delimiter, false);
  if (!isRead || !readDelimited(cursor, delimiter, false)) return false;
  if (isPattern) take(cursor, /[gpiImM0-9]*/y);
  return take(cursor, REPLACED) !== undefined;
}

/**
 * Reads past the delimiter. Within brackets seds disagree on its meaning, so it is refused there, unless a sed that ends there
 * fails for certain.
 */
function readDelimited(
  cursor: Cursor,
  delimiter: string,
  isPattern: boolean,
  fails: (rest: string, delimiter: string) => boolean = () => false,
): boolean {
  const { text } = cursor;
  while (cursor.at < text.length) {
    const sign = text[cursor.at] ?? "";
    cursor.at += 1;
    if (sign === delimiter) return true;
    if (sign === "\n") return false;
    if (sign === "\\") {
      if (cursor.at >= text.length || text[cursor.at] === "\n") return false;
      cursor.at += 1;
    } else if (sign === "[" && isPattern) {
      const from = cursor.at;
      const set = take(cursor, /\^?\]?(?:\[:[a-z]+:\]|\\[^\][\n]|[^\][\\\n])*\]/y);
      if (set === undefined) return false;
      if (!set.includes(delimiter) || isEscaped(set, delimiter)) continue;
      const isPlainSet = /^\^?[^[\]\\]+\]$/.test(set);
      if (!isPlainSet || !fails(text.slice(from + set.indexOf(delimiter) + 1), delimiter)) return false;
    }
  }
  return false;
}

/**
 * Whether a sed that ends the pattern in a bracket only reports that: behind the replacement stands no flag that writes or runs, and
 * no end of the command.
 */
function failsIfEnded(rest: string, delimiter: string): boolean {
  const cursor: Cursor = { text: rest, at: 0, depth: 0 };
  if (!readDelimited(cursor, delimiter, false)) return false;
  const behind = rest.slice(cursor.at);
  return behind !== "" && !/^(?:\w*[ew]|[\s;}#])/i.test(behind);
}

/** Whether a backslash precedes each delimiter in the set, so that no sed ends there. */
function isEscaped(set: string, delimiter: string): boolean {
  return !set.replaceAll(/\\./g, "").includes(delimiter);
}
