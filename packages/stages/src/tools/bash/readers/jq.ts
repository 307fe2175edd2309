import { words } from "./reading.ts";

/** Functions and keywords that read other files, or show the environment or what was called. */
const REACHES = words("import include env ENV input_filename modulemeta get_search_list");

/** A comment with a backslash ends elsewhere in newer versions. */
const TOKEN =
  /[ \t\r\n]+|#[^\\\r\n]*(?=\n|$)|(?<field>\.[A-Za-z_][A-Za-z0-9_]*)|(?<name>(?:[A-Za-z_][A-Za-z0-9_]*::)*[A-Za-z_][A-Za-z0-9_]*)|(?<other>\.\.|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|@[A-Za-z0-9_]+|[.$[\](){}|,:;=<>!+\-*/%?"])/y;
/** The rest of a string, up to its end or a program in it. */
const STRING = /(?:[^"\\]|\\[^(])*(?:"|\\\()/y;
const KEY_ENDS = /[ \t\r\n]*[,:}]/y;
/** A comma between if and end is none of the object around it. */
const CLOSES = new Map([
  [")", "("],
  ["]", "["],
  ["}", "{"],
  ["end", "if"],
]);
const OPENS = new Set(CLOSES.values());

/**
 * Whether a filter uses nothing but its input: names after a dot, keys of objects and texts may be called like what reaches further,
 * but a text may hold a program: `"\(env)"`. False for what jq itself could read differently.
 */
export function isPlainJq(filter: string): boolean {
  const open: string[] = [];
  let before = "";
  let at = 0;

  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(filter);
    at += found?.[0].length ?? 0;
    return found;
  };
  /** Reads on in a string; false if it does not end. */
  const readString = (): boolean => {
    const text = take(STRING)?.[0];
    if (text?.endsWith("\\(") === true) open.push("\\(");
    before = text?.endsWith("\\(") === true ? "(" : "a text";
    return text !== undefined;
  };

  while (at < filter.length) {
    const found = take(TOKEN);
    if (found === null) return false;
    const { field, name, other } = found.groups ?? {};
    if (other === '"') {
      if (!readString()) return false;
      continue;
    }
    const last = before;
    before = field ?? name ?? other ?? before;
    let word = other ?? "";
    if (name !== undefined) {
      KEY_ENDS.lastIndex = at;
      const isKey = (last === "{" || last === ",") && open.at(-1) === "{" && KEY_ENDS.test(filter);
      const isVariable = last === "$" && name !== "ENV";
      if (name.startsWith("__prog") || (REACHES.has(name) && !isKey && !isVariable)) return false;
      if (!isKey && !isVariable) word = name;
    }
    if (OPENS.has(word)) open.push(word);
    const opening = CLOSES.get(word);
    if (opening === undefined) continue;
    const opened = open.pop();
    if (word === ")" && opened === "\\(") {
      if (!readString()) return false;
    } else if (opened !== opening) return false;
  }
  return open.length === 0;
}
