import { type OptionSpec, parseOptions } from "./options.ts";
import { type Inner, joined, type Unwrapped } from "./shells.ts";
import { literalWord, type ShellWord, unknownWord } from "./word.ts";

/** A program that runs the command standing after its options. */
interface Prefix extends OptionSpec {
  /** Operands before the command: a duration, a folder, a host. */
  readonly skip?: number;
  readonly transparent?: boolean;
  readonly foreign?: boolean;
  readonly elsewhere?: boolean;
  /** `NAME=value` may stand before the command. */
  readonly assigns?: boolean;
  /** Options whose value is a text for a shell. */
  readonly texts?: readonly string[];
  /** Options after which the rest is joined to a text for a shell. */
  readonly joins?: readonly string[];
  /** Always joined to a text. */
  readonly joined?: boolean;
  readonly inShell?: boolean;
}

const PREFIXES: Readonly<Record<string, Prefix>> = {
  timeout: {
    short: "k:s:vfp",
    long: "kill-after: signal: foreground preserve-status verbose",
    skip: 1,
    transparent: true,
  },
  nice: { short: "n:", long: "adjustment:", numeric: true, transparent: true },
  stdbuf: { short: "i:o:e:", long: "input: output: error:", transparent: true },
  ionice: { short: "c:n:t", long: "class: classdata: ignore", transparent: true },
  time: { short: "pv", transparent: true },
  builtin: { transparent: true, inShell: true },
  nohup: {},
  setsid: { short: "cfw", long: "ctty fork wait" },
  chrt: { short: "abdfimoprRvT:P:D:", skip: 1 },
  taskset: { short: "apc", skip: 1 },
  prlimit: {},
  setarch: { skip: 1 },
  unshare: { foreign: true, elsewhere: true },
  nsenter: { foreign: true, elsewhere: true },
  setpriv: { foreign: true },
  chroot: { long: "userspec: groups: skip-chdir", skip: 1, foreign: true, elsewhere: true },
  sudo: {
    short: "ABbEeHhiKklNnPSsVvC:D:g:p:R:r:T:t:U:u:",
    long: "askpass background preserve-env? edit set-home login non-interactive stdin shell user: group: prompt: chdir:",
    assigns: true,
    foreign: true,
    elsewhere: true,
    joins: ["s", "i", "shell", "login"],
  },
  doas: { short: "Lnsu:C:", foreign: true, joins: ["s"] },
  pkexec: { long: "user:", foreign: true, elsewhere: true },
  su: {
    short: "lmpc:s:g:G:",
    long: "command: login shell:",
    skip: 99,
    foreign: true,
    elsewhere: true,
    texts: ["c", "command"],
  },
  runuser: { short: "lmpc:s:g:G:u:", long: "command: user:", foreign: true, elsewhere: true, texts: ["c", "command"] },
  script: { short: "aefqc:", long: "command: quiet", skip: 99, texts: ["c", "command"] },
  flock: { short: "xsunoFw:E:c:", long: "command: nonblock shared unlock timeout:", skip: 1, texts: ["c", "command"] },
  watch: { short: "bcdegtpwn:q:", long: "interval: no-title differences? errexit chgexit", joined: true },
  ssh: {
    short: "46AaCfGgKkMNnqsTtVvXxYyB:b:c:D:E:e:F:I:i:J:L:l:m:O:o:p:Q:R:S:W:w:",
    skip: 1,
    foreign: true,
    joined: true,
  },
  strace: { short: "fqtTvyo:e:p:s:" },
  ltrace: {},
  busybox: {},
  toybox: {},
  unbuffer: {},
  fakeroot: {},
  caffeinate: {},
  "systemd-run": { foreign: true, elsewhere: true },
  "xvfb-run": {},
  proot: { foreign: true, elsewhere: true },
  bwrap: { foreign: true, elsewhere: true },
  firejail: { foreign: true },
};

const ASSIGNMENT = /^([A-Za-z_][^=]*)=/;

/** The commands that words run besides being one, when the program is known to run others. */
export function unwrapPrefix(name: string, words: readonly ShellWord[]): Unwrapped | undefined {
  const spec = Object.hasOwn(PREFIXES, name) ? PREFIXES[name] : undefined;
  if (spec === undefined) return undefined;
  const options = parseOptions(words.slice(1), { ...spec, stopsAtOperand: true });
  const inner: Inner[] = [];
  if (!options.known || options.unsure) inner.push(unseen(words, name));
  for (const option of spec.texts ?? []) {
    for (const value of options.seen.get(option) ?? [])
      inner.push(joined([value], "posix", `${name} -c`, spec.foreign));
  }
  let rest = options.operands.slice(spec.skip ?? 0);
  const assignments: string[] = [];
  while (spec.assigns === true && rest[0] !== undefined) {
    const assigned = ASSIGNMENT.exec(rest[0].head)?.[1];
    if (assigned === undefined) break;
    assignments.push(assigned);
    rest = rest.slice(1);
  }
  const joins = spec.joined === true || (spec.joins ?? []).some((option) => options.seen.has(option));
  if (rest.length > 0 && joins) inner.push(joined(rest, "posix", name, spec.foreign));
  else if (rest.length > 0) inner.push(command(rest, name, spec, assignments));
  return { transparent: spec.transparent === true && options.known, inner };
}

function command(words: readonly ShellWord[], via: string, spec: Prefix, assignments: readonly string[]): Inner {
  const { foreign = false, elsewhere = false, inShell = false } = spec;
  return { kind: "words", words, via, assignments, foreign, elsewhere, inShell };
}

function unseen(words: readonly ShellWord[], via: string): Inner {
  return { kind: "unseen", text: words.map((word) => word.text).join(" "), via };
}

const ENV_OPTIONS: OptionSpec = {
  short: "i0vu:C:S:a:",
  long: "ignore-environment null debug unset: chdir: split-string: argv0:",
  stopsAtOperand: true,
};

export function unwrapEnv(words: readonly ShellWord[]): Unwrapped {
  const options = parseOptions(words.slice(1), ENV_OPTIONS);
  const inner: Inner[] = [];
  if (!options.known || options.unsure) inner.push(unseen(words, "env"));
  const values = (...names: readonly string[]): readonly ShellWord[] =>
    names.flatMap((name) => options.seen.get(name) ?? []);
  for (const text of values("S", "split-string")) inner.push(unseen([text], "env"), joined([text], "posix", "env"));
  const assignments = values("u", "unset").map((name) => name.text);
  if (options.seen.has("i") || options.seen.has("ignore-environment")) assignments.push("*");
  let rest = options.operands;
  for (let first = rest[0]; first !== undefined; first = rest[0]) {
    const assigned = first.text === "-" ? "*" : ASSIGNMENT.exec(first.head)?.[1];
    if (assigned === undefined) break;
    assignments.push(assigned);
    rest = rest.slice(1);
  }
  const folders = values("C", "chdir");
  const plain =
    options.known && assignments.length === 0 && !options.seen.has("S") && !options.seen.has("split-string");
  if (rest.length > 0) {
    inner.push({ kind: "words", words: rest, via: "env", assignments, elsewhere: folders.length > 0 });
  }
  // Alone it prints the environment, which is nobody's to read.
  return { transparent: plain && rest.length > 0, inner, files: folders };
}

const XARGS_OPTIONS: OptionSpec = {
  short: "0rtxa@d:E:e?I:i?L:l?n:P:s:",
  long: "null no-run-if-empty verbose exit arg-file@ delimiter: eof? replace? max-lines? max-args: max-procs: max-chars:",
  stopsAtOperand: true,
};

export function unwrapXargs(words: readonly ShellWord[]): Unwrapped {
  const options = parseOptions(words.slice(1), XARGS_OPTIONS);
  const inner: Inner[] = [];
  const replacing = ["I", "i", "replace"].filter((option) => options.seen.has(option));
  const chosen = replacing.map((option) => options.seen.get(option)?.at(-1) ?? literalWord("{}"));
  const markers = chosen.map((marker) => marker.text);
  // `-n` and `-L` take `-I` back, or the other way round: the last one counts.
  const contradicts =
    replacing.length > 0 && ["n", "L", "l", "max-args", "max-lines"].some((option) => options.seen.has(option));
  const certain = options.known && !options.unsure && !contradicts && chosen.every((marker) => !marker.dynamic);
  if (!certain) inner.push(unseen(words, "xargs"));
  const given = options.operands.length > 0 ? options.operands : [literalWord("echo")];
  const run = markers.length > 0 ? given.map((word) => markers.reduce(fill, word)) : [...given, unknownWord("{…}")];
  inner.push({ kind: "words", words: run, via: "xargs" });
  return { transparent: options.known, inner, files: options.files };
}

/** A word in which a marker stands for something only known at run time: still one word. */
function fill(word: ShellWord, marker: string): ShellWord {
  const at = word.text.indexOf(marker);
  if (at === -1) return word;
  return { text: word.text, dynamic: true, head: word.head.slice(0, at), single: word.single, pipe: false };
}

const FIND_RUNS = new Set(["-exec", "-execdir", "-ok", "-okdir"]);

export function unwrapFind(words: readonly ShellWord[]): Unwrapped | undefined {
  const inner: Inner[] = [];
  if (words.some((word) => word.dynamic && word.head === "" && !word.single && word.within === undefined)) {
    inner.push(unseen(words, "find"));
  }
  for (let at = 1; at < words.length; at++) {
    const word = words[at];
    if (word === undefined || word.dynamic || !FIND_RUNS.has(word.text)) continue;
    const ends = words.findIndex((end, index) => index > at && isEnd(end, words[index - 1]));
    const run = words.slice(at + 1, ends === -1 ? words.length : ends);
    if (ends === -1) inner.push(unseen(run, `find ${word.text}`));
    if (run.length > 0) {
      const filled = run.map((part) => (part.text === "{}" ? unknownWord("{}") : fill(part, "{}")));
      inner.push({ kind: "words", words: filled, via: `find ${word.text}`, elsewhere: word.text.endsWith("dir") });
    }
    if (ends === -1) break;
    at = ends;
  }
  return inner.length === 0 ? undefined : { transparent: false, inner };
}

function isEnd(word: ShellWord, before: ShellWord | undefined): boolean {
  return !word.dynamic && (word.text === ";" || (word.text === "+" && before?.text === "{}"));
}

export function unwrapParallel(words: readonly ShellWord[]): Unwrapped {
  const first = words.findIndex((word, index) => index > 0 && !word.text.startsWith("-"));
  const rest = first === -1 ? [] : words.slice(first);
  const stop = rest.findIndex((word) => /^::::?\+?$/.test(word.text));
  const run = (stop === -1 ? rest : rest.slice(0, stop)).map((word) => fill(word, "{"));
  const inner: Inner[] = [unseen(words, "parallel")];
  if (run.length > 0) inner.push({ kind: "words", words: [...run, unknownWord("{…}")], via: "parallel" });
  return { transparent: false, inner };
}
