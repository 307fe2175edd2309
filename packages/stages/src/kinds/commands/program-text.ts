// Which elements of a command another program executes as code: a value of a run must not be part of one.

/** How a program finds the code, or the further program, that it executes. */
interface Executing {
  /** How many operands are code; all of them if infinite. Default: 1, a script file. */
  readonly operands?: number;
  /** Options whose value is code. No operand is code then. */
  readonly code?: RegExp;
  /** Other options with a value, which decides how the code runs. */
  readonly valued?: RegExp;
  /** Options with a value that is data. */
  readonly data?: RegExp;
  /** Whether its last operand is a program, with its own arguments. */
  readonly starts?: true;
  /** Whether it executes standard input if it is given nothing else. */
  readonly readsInput?: true;
}

const SHELL: Executing = { valued: /^(?:[-+][A-Za-z]*[oO]|--rcfile|--init-file)$/, readsInput: true };
const NODE: Executing = {
  code: /^(?:-[a-z]*[ep][a-z]*|--eval|--print)$/,
  valued: /^(?:-[rC]|--require|--import|--(?:experimental-)?loader|--conditions|--env-file|--input-type)$/,
  readsInput: true,
};
const PYTHON: Executing = { code: /^-[A-Za-z]*[cm]$/, valued: /^-[WX]$/, readsInput: true };
const BY_E: Executing = { code: /^(?:-[A-Za-z0-9]*[eE]|--eval|--print)$/, valued: /^-[IrCl]$/, readsInput: true };
const ANYTHING: Executing = { operands: Number.POSITIVE_INFINITY };

const PROGRAMS: readonly (readonly [name: RegExp, how: Executing])[] = [
  [/^(?:sh|bash|rbash|dash|ash|zsh|ksh|mksh|fish|csh|tcsh)$/, SHELL],
  [/^(?:node|nodejs|bun|tsx|ts-node)$/, NODE],
  [/^deno$/, { operands: 2 }],
  [/^(?:python|pypy)[\d.]*$/, PYTHON],
  [/^(?:perl|ruby|lua|luajit|Rscript|julia|osascript|groovy)[\d.]*$/, BY_E],
  [/^php[\d.]*$/, { code: /^(?:-[rBREFf]|--run|--file)$/, valued: /^-[dcz]$/, readsInput: true }],
  [/^[gmn]?awk$/, { code: /^(?:-[feE]|--file|--source|--exec)$/, data: /^(?:-[vF]|--assign|--field-separator)$/ }],
  [/^g?sed$/, { code: /^(?:-[A-Za-z]*[ef]|--expression|--file)$/, valued: /^-l$/ }],
  [/^env$/, { starts: true, code: /^(?:-S|--split-string)$/, valued: /^(?:-[uC]|--unset|--chdir)$/ }],
  [/^(?:nice|nohup|setsid|stdbuf|time)$/, { starts: true, valued: /^(?:-[nofe]|--adjustment|--output|--format)$/ }],
  [/^timeout$/, { starts: true, operands: 2, valued: /^(?:-[ks]|--signal|--kill-after)$/ }],
  [/^xargs$/, { starts: true, valued: /^-[InPdaLsE]$/ }],
  [/^(?:sudo|doas)$/, { starts: true, valued: /^(?:-[ughpCDrtTU]|--user|--group)$/ }],
  [/^(?:npx|pnpx|bunx|uvx)$/, { code: /^(?:-c|--call)$/, valued: /^(?:-p|--package|--from)$/ }],
  // An operand may be a setting, whose value may run a command: NAME=$(shell …).
  [/^(?:[bdgn]|mingw32-)?make$/, ANYTHING],
  // They join their arguments to a line for a shell.
  [/^(?:ssh|watch|su|runuser|pwsh|powershell|cmd)$/, ANYTHING],
];
const ASSIGNMENT = /^[A-Za-z_]\w*=/;

/** What is executed: an element of the command by its index, or its standard input. */
export type ProgramText =
  | { readonly kind: "element"; readonly index: number; readonly program: string }
  | { readonly kind: "input"; readonly program: string };

/** What of a command is code for a program in it, as far as `varies` says that its value is not fixed. */
export function varyingCode(
  words: readonly string[],
  varies: (index: number) => boolean,
  inputVaries: boolean,
): ProgramText | undefined {
  for (const [at, word] of words.entries()) {
    const program = word.slice(word.lastIndexOf("/") + 1);
    const how = PROGRAMS.find(([name]) => name.test(program))?.[1];
    if (how === undefined || varies(at)) continue;
    const { fixed, readsInput } = codeOf(how, words, at);
    const index = fixed.find(varies);
    if (index !== undefined) return { kind: "element", index, program };
    if (readsInput && inputVaries) return { kind: "input", program };
    // What follows are arguments, whatever they look like.
    if (how.starts !== true) return undefined;
  }
  return undefined;
}

/** The elements behind the program at this index that it, or a program that it starts, would execute. */
function codeOf(
  { operands = 1, code, valued, data, readsInput }: Executing,
  words: readonly string[],
  program: number,
): { readonly fixed: readonly number[]; readonly readsInput: boolean } {
  const fixed: number[] = [];
  let left = operands;
  let hasCode = false;
  let areOptions = true;
  for (let at = program + 1; at < words.length; at += 1) {
    const word = words[at] ?? "";
    if (areOptions && word === "--") {
      areOptions = false;
    } else if (areOptions && /^[-+]./.test(word)) {
      if (data?.test(word) === true) {
        at += 1;
        continue;
      }
      fixed.push(at);
      const isCode = code?.test(word) === true;
      if (!isCode && valued?.test(word) !== true) continue;
      at += 1;
      fixed.push(at);
      if (!isCode) continue;
      hasCode = true;
      if (left === 1) left = 0;
    } else if (left > 0) {
      fixed.push(at);
      // In front of a program that `env` starts.
      if (areOptions && ASSIGNMENT.test(word)) continue;
      left -= 1;
      hasCode ||= word !== "-";
      // What follows are the options of another program.
      if (Number.isFinite(left)) areOptions = left > 0;
    } else {
      break;
    }
    if (left === 0 && !areOptions) break;
  }
  return { fixed, readsInput: readsInput === true && !hasCode };
}
