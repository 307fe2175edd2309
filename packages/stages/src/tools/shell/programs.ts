import { unwrapAwk, unwrapSed } from "./scripts.ts";
import { type Inner, joined, type Unwrapped } from "./shells.ts";
import { type ShellWord, tail } from "./word.ts";

/** Options whose value is a command, by program. Long names may be cut short, as getopt allows. */
const RUNS: Readonly<Record<string, readonly string[]>> = {
  tar: [
    "-I",
    "-F",
    "--use-compress-program",
    "--to-command",
    "--info-script",
    "--new-volume-script",
    "--rsh-command",
    "--rmt-command",
    "--checkpoint-action",
  ],
  rsync: ["-e", "--rsh", "--rsync-path"],
  sort: ["--compress-program"],
  split: ["--filter"],
  rg: ["--pre", "--hostname-bin"],
  scp: ["-S", "-o"],
  sftp: ["-S", "-o"],
  ssh: ["-o"],
  man: ["-P", "-H", "--pager", "--html"],
};

/** Commands in the options of programs that otherwise work on files. */
export function unwrapProgram(name: string, words: readonly ShellWord[]): Unwrapped | undefined {
  if (name === "sed" || name === "gsed") return unwrapSed(words);
  if (/^[gmn]?awk$/.test(name)) return unwrapAwk(words);
  const runs = Object.hasOwn(RUNS, name) ? RUNS[name] : undefined;
  if (runs === undefined) return undefined;
  const inner: Inner[] = [];
  for (const [at, word] of words.entries()) {
    if (at === 0) continue;
    for (const option of runs) {
      const value = optionValue(option, word, words[at + 1]);
      const run = value === undefined ? undefined : commandIn(option, value);
      if (run !== undefined) inner.push(joined([run], "posix", `${name} ${option}`));
    }
  }
  return inner.length === 0 ? undefined : { transparent: false, inner };
}

function optionValue(option: string, word: ShellWord, next: ShellWord | undefined): ShellWord | undefined {
  if (option.startsWith("--")) {
    const equals = word.text.indexOf("=");
    const written = equals === -1 ? word.text : word.text.slice(0, equals);
    if (written.length < 5 && written !== option) return undefined;
    if (!option.startsWith(written)) return undefined;
    if (equals === -1) return next;
    return word.head.length > equals ? tail(word, equals + 1) : word;
  }
  if (word.text === option) return next;
  const letter = option.slice(1);
  const cluster = /^-[A-Za-z]+/.exec(word.text)?.[0] ?? "";
  if (!cluster.includes(letter)) return undefined;
  const after = cluster.indexOf(letter) + 1;
  if (after === word.text.length) return next;
  return word.head.length >= after ? tail(word, after) : word;
}

/** Where a setting has several meanings: which of them run something, and how it is introduced. */
const KEYS: Readonly<Record<string, RegExp>> = {
  "--checkpoint-action": /^exec=/,
  "-o": /^\w*command(?:\s*=|\s)\s*/i,
};

/** The command in the value of an option; undefined when the value means something else. */
function commandIn(option: string, value: ShellWord): ShellWord | undefined {
  const key = KEYS[option];
  if (key === undefined) return value;
  const found = key.exec(value.head)?.[0];
  if (found !== undefined) return tail(value, found.length);
  return value.dynamic ? value : undefined;
}
