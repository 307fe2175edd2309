import { words } from "./reading.ts";

/** Names with which an awk runs, reads, writes or shows more than its input. */
const RESERVED = words(
  "getline system close fflush function func ENVIRON PROCINFO ARGV ARGC ARGIND FUNCTAB SYMTAB extension include load namespace " +
    "BINMODE LINT TEXTDOMAIN switch case default",
);
const CALLS = words(
  "length substr index split sub gsub match sprintf tolower toupper int sqrt exp log sin cos atan2 rand srand strftime systime " +
    "mktime gensub asort asorti patsplit strtonum and or xor lshift rshift compl print printf if while for return in switch exit else do",
);
/** After these tokens a `/` begins a pattern in every awk. */
const BEFORE_PATTERN: ReadonlySet<string> = new Set(["", "\n", ";", "{", "}", "(", ",", "~", "!~", "!", "&&", "||"]);
/** After these tokens a line continues. */
const CONTINUES: ReadonlySet<string> = new Set([",", "&&", "||", "?", ":", "{", "else", "do"]);

const TOKEN =
  /[ \t]+|#[^\n]*|(?<name>[A-Za-z_][A-Za-z0-9_]*)|(?<number>[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9]+)|(?<string>"(?:[^"\\\n]|\\[^\n])*")|(?<sign>&&|\|\||!~|[-+*/%^=!<>]=|\+\+|--|\n|[-{}()[\];,+*%^!<>?:~$=/])/y;
/** Excludes a slash in brackets: some awks end the pattern there, others do not. */
const PATTERN = /\/(?!=)(?:[^/\\[\n]|\\[^\n]|\[\^?\]?(?:\[:[a-z]+:\]|\\[^\][\n]|[^\][\\/\n])*\])*\//y;

export function isReservedAwkName(name: string): boolean {
  return RESERVED.has(name) || CALLS.has(name);
}

/**
 * Whether a program consists of conditions, arithmetic, fields, arrays, loops, functions on text and numbers, and print to
 * stdout. Excludes pipes, files, own functions, and everything that awks interpret differently.
 */
export function isPlainAwk(program: string): boolean {
  let at = 0;
  let before = "";
  let printing = false;
  // For each open parenthesis, whether it belongs to if, while or for: after it a pattern may begin.
  const parentheses: boolean[] = [];
  let headEnded = false;
  if (program.trim() === "") return false;
  while (at < program.length) {
    if (program[at] === "/" && BEFORE_PATTERN.has(before)) {
      PATTERN.lastIndex = at;
      const pattern = PATTERN.exec(program)?.[0];
      if (pattern === undefined) return false;
      at += pattern.length;
      before = "a pattern";
      headEnded = false;
      continue;
    }
    TOKEN.lastIndex = at;
    const found = TOKEN.exec(program);
    if (found === null) return false;
    const [text] = found;
    const { name, sign } = found.groups ?? {};
    at += text.length;
    if (/^(?:[ \t]|#)/.test(text)) continue;
    if (name !== undefined) {
      if (RESERVED.has(name) || (program[at] === "(" && !CALLS.has(name))) return false;
      if (name === "print" || name === "printf") {
        // In the head of a loop, `>` could still mean a file.
        if (parentheses.length > 0) return false;
        printing = true;
      }
    }
    if (sign === "/" || sign === "/=") {
      const divides = /^(?:\w+$|[0-9.]|\)|\]|")/.test(before) && !CALLS.has(before) && !headEnded;
      if (!divides) return false;
    }
    // After print, `>` writes a file.
    if (sign?.startsWith(">") === true && ((printing && parentheses.length === 0) || program[at] === ">")) return false;
    if ((sign === "{" || sign === "}") && parentheses.length > 0) return false;
    headEnded = false;
    if (sign === "(") parentheses.push(before === "if" || before === "while" || before === "for");
    else if (sign === ")") {
      if (parentheses.length === 0) return false;
      headEnded = parentheses.pop() === true;
    } else if (sign === "{" || sign === "}" || sign === ";" || (sign === "\n" && !CONTINUES.has(before)))
      printing &&= parentheses.length > 0;
    before = sign === "\n" && CONTINUES.has(before) ? before : text;
  }
  return parentheses.length === 0;
}
