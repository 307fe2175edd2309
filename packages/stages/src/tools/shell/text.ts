import { excerpt, ShellRefusal, unsupported } from "./refusal.ts";

/** Bytes of UTF-8; longer command lines belong in a script file, where they can be reviewed. */
const MAX_BYTES = 16 * 1024;

/** Bash treats these as ordinary letters of a word, people do not see them: what is read would not be what runs. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zs}\p{Zl}\p{Zp}\p{Co}\u115f\u1160\u3164\uffa0]|\u034f|\u17b4|\u17b5/gu;
const PLAIN = new Set([" ", "\t", "\n"]);

/** Refuses text that bash and a reader could understand differently, before any parsing. */
export function checkText(command: string): void {
  if (command.length > MAX_BYTES || Buffer.byteLength(command) > MAX_BYTES) {
    throw new ShellRefusal("too_long", `the command is longer than ${MAX_BYTES} bytes; put it into a script file`);
  }
  if (command.includes("\0")) throw new ShellRefusal("nul_byte", "the command holds a NUL byte");
  if (!command.isWellFormed()) throw unsupported("a lone surrogate");
  for (const [character] of command.matchAll(INVISIBLE)) {
    if (PLAIN.has(character)) continue;
    const point = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
    throw unsupported(`the invisible character U+${point}`);
  }
  // `bash -c` would take it for an option of its own.
  if (/^[-+]/.test(command)) throw unsupported(`a command line that begins with ${excerpt(command)}`);
}

/** A backslash at the end of a line joins it with the next, in the middle of an operator too. */
const JOINED_LINES = /(?<![\s\\])(?:\\\\)*\\\n/;

/** Refuses what the parser is known to read otherwise than bash does. */
export function checkSource(source: string): void {
  if (JOINED_LINES.test(source)) throw unsupported("a line that ends in a backslash without a blank before it");
}

/**
 * What the POSIX shells read differently from bash: where one of these stands in a text for sh, dash or ksh, its
 * commands cannot be told by parsing it as bash.
 */
const NOT_PORTABLE =
  /\$['"[{]|\(\(|\[\[|<<|[<>]\(|&>|[<>]&(?![0-9-])|;&|\|&|\+=|=\(|(?:\}|[0-9]{2})[<>]|\b(?:function|select|coproc|time|alias|trap|eval|set)\b/;

export function isPortable(text: string): boolean {
  return !NOT_PORTABLE.test(text);
}
