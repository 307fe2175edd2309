// What a `*` of a rule covers in a stage that may not write, without a sandbox: of a program that is not listed, hardly any option is
// known, and one whose other words may name a command, script or goal gets only names of files in any form that is not listed.

import { COMMANDS, FILE, type KnownCommand } from "./known-commands.ts";

const ANY_COMMAND =
  "-- --verbose --quiet --silent --help --version --color --colors --no-color --no-colors --color:auto|always|never|yes|no";

type Command = Omit<KnownCommand, "begins">;
const UNKNOWN: Command = { anyValue: true };
const NO_WORDS: Command = { only: "(?!)" };

/** What a program may stand behind: it then does the same. */
const LAUNCHERS =
  "npx, npx --no-install, npx --yes, npx -y, bunx, bun x, npm exec --, pnpm exec, pnpm dlx, yarn exec, yarn dlx, uv run, " +
  "poetry run, python -m, python3* -m";
/** These also run a script of that name. */
const MANAGERS = "pnpm, yarn";
/** Where systems keep programs that are usually named without it. */
export const SYSTEM_FOLDER = /^(?:\/usr(?:\/local)?)?\/bin\//;
const PROGRAM_FOLDER = /^(?:\.\/)?(?:node_modules\/\.bin|\.?venv\/bin)\//;
/** Programs whose own commands have the names of others. */
const OTHER_PROGRAMS: readonly (string | undefined)[] = [
  "apt",
  "apt-get",
  "brew",
  "cargo",
  "deno",
  "dnf",
  "pip",
  "pip3",
];

/** Some versions of package managers put a word between double quotes into the command line of a shell. */
const MANAGER_SIGNS = /[$`\\"\r\n]/;
/** In a script, older versions of Bun put it there without quotes, so that it may also hold an option. */
const BUN_SIGNS = /[;&|<>'$`\\"\r\n*?{}~()#![\]]|\s-/;
/** A variable that a program takes from its words. */
const SETTING = /^\w[\w.-]*[^\w\s]?=/;

interface Word {
  readonly text: string;
  /** Whether a `*` of the rule covers it. */
  readonly isFree: boolean;
}

/**
 * The first word that a `*` covers and that may make the command run a program or write a file: an option that is not known to be
 * harmless, a setting such as `SHELL=./x`, or `@file`, a file that may hold both. If the command runs a `script`, the words that it
 * adds are those of the script's program.
 */
export function riskyWord(
  argv: readonly string[],
  isCovered: (at: number) => boolean,
  script?: readonly string[],
): string | undefined {
  const words = argv.map((text, at) => ({
    text: at === 0 ? text.replace(SYSTEM_FOLDER, "") : text,
    isFree: isCovered(at),
  }));
  return riskyIn(words, script === undefined ? [] : commandsOf(script))?.text;
}

/** A script, and those that it calls, are apart by line ends. */
function commandsOf(script: readonly string[]): readonly (readonly string[])[] {
  let command: string[] = [];
  const commands = [command];
  for (const word of script) {
    if (word === "\n") {
      command = [];
      commands.push(command);
    } else command.push(word);
  }
  return commands;
}

function riskyIn(all: readonly Word[], scripts: readonly (readonly string[])[]): Word | undefined {
  const { words, isElsewhere, risky } = withoutOwnOptions(all);
  if (risky !== undefined) return risky;
  const texts = textsOf(words);
  const launched = lengthOf(`${LAUNCHERS}, npm exec`, texts);
  // A program may stand behind any other, so the words of the rule count, and the one behind a launcher.
  const programs = words.map(({ text, isFree }, at) => (isFree && at !== launched ? "" : programName(text)));
  const end = scriptLength(texts, scripts.length > 0);
  const managed = end > 0 && texts[0] === "bun" ? BUN_SIGNS : MANAGER_SIGNS;
  const signs = programs.some((name) => MANAGER.test(name)) ? managed : undefined;
  const passed = words.find(({ text, isFree }) => isFree && signs?.test(text) === true);
  if (passed !== undefined) return passed;
  // The rule names no program: the model would.
  const launcher = words.slice(0, launched).find(({ text, isFree }) => isFree && text !== "--");
  if (launcher !== undefined) return launcher;
  if (end > 0) return riskyInScript(words, end, scripts.slice(isElsewhere === true ? scripts.length : 0));
  // Bun runs a script for `bun --filter web test`, and tests of its own for `bun test`.
  if (isElsewhere === true && /^bun test\b/.test(texts.join(" "))) return riskyOf(words, NO_WORDS, 2);
  const known = knownCommand(texts);
  if (known !== undefined) return riskyOf(words, known.command, known.from);
  const others = programs.slice(OTHER_PROGRAMS.includes(texts[0]) ? programs.length : launched);
  return riskyOf(words, otherForm(others), launched === 0 ? 0 : launched + 1);
}

/** Of a command in a form that is not listed, and of the programs in it. */
function otherForm(programs: readonly string[]): Command {
  // What the script of a package manager runs is not known.
  if (programs.some((name) => OWN_OPTIONS.has(name))) return NO_WORDS;
  const rows = COMMANDS.filter(({ begins, only }) =>
    begins.split(", ").some((beginning) => {
      const [program = "", ...more] = beginning.split(" ");
      return programs.includes(programName(program)) && (only !== undefined || more.length === 0);
    }),
  );
  const patterns = rows.flatMap(({ only }) => only ?? []);
  if (rows.length === 0) return UNKNOWN;
  const takesAll = rows.some((row) => row.takesAll === true) ? { takesAll: true as const } : {};
  if (patterns.length === 0) return takesAll;
  return { only: `${patterns.map((only) => `(?=(?:${only})$)`).join("")}(?:${FILE})`, ...takesAll };
}

/** Of a command that names a script of package.json with its first words, as many as `end`. */
function riskyInScript(
  words: readonly Word[],
  end: number,
  [script, ...called]: readonly (readonly string[])[],
): Word | undefined {
  const texts = textsOf(words);
  // Bun also runs a file of that name.
  const name = words[end - 1];
  if (texts[0] === "bun" && name?.isFree === true && (script === undefined || /[./]/.test(name.text))) return name;
  // npm does not pass it on; others do, which makes no difference here.
  const dash = texts.indexOf("--");
  const added = words.filter((_, at) => at >= end && at !== dash);
  // Behind `;`, they would be a command of their own.
  if (script?.length === 0) return added.find(({ isFree }) => isFree);
  if (script !== undefined && (isKnownScript(script) || scriptLength(script, true) > 0))
    return riskyIn([...script.map((text) => ({ text, isFree: false })), ...added], called);
  const { command = NO_WORDS } = knownCommand(texts) ?? {};
  const last = script?.at(-1);
  // The value of an option, such as `-c`, may be a file of settings.
  const isOpen = last?.startsWith("-") === true && takenBy(last, command) > 0;
  return riskyOf(words, isOpen ? NO_WORDS : command, end);
}

function isKnownScript(script: readonly string[]): boolean {
  const known = knownCommand(script);
  return known !== undefined && known.command.onlyByRule !== true;
}

function textsOf(words: readonly Word[]): readonly string[] {
  return words.map(({ text }) => text);
}

/** The number of words with which a command names a script of package.json; 0 if it names none. */
function scriptLength(words: readonly string[], isScript: boolean): number {
  if (words[0] === "node") {
    const run = words.findIndex((word) => /^--run(?:=|$)/.test(word));
    return words[run] === "--run" ? run + 2 : run + 1;
  }
  const [command, verb] = words;
  const called = `${command} ${verb}`;
  if (/^(?:npm|pnpm|yarn|bun) run(?:-script)?$/.test(called)) return 3;
  if (/^(?:npm|pnpm|yarn) (?:test|tst|t|start|stop|restart)$/.test(called)) return 2;
  // All but npm run a script by its name alone.
  return isScript && /^(?:pnpm|yarn|bun) /.test(called) ? 2 : 0;
}

const RUN = /^run(?:-script)?$/;
const MANAGER = /^(?:npm|npx|pnpm|pnpx|yarn|bunx?)$/;
/** The name of a package of the workspace. */
const PACKAGE = String.raw`@?[\w-]+(?:/[\w.-]+)?`;
/** The options of package managers that say where they work, and the values that a `*` covers. */
const OWN_OPTIONS: ReadonlyMap<string | undefined, string> = new Map([
  ["npm", `-w:${PACKAGE} -C:(?!) --workspace:${PACKAGE} --prefix:(?!)`],
  ["pnpm", `-r -F:${PACKAGE} -C:(?!) --recursive --filter:${PACKAGE} --dir:(?!)`],
  ["yarn", "--cwd:(?!)"],
  ["yarnpkg", "--cwd:(?!)"],
  ["bun", `-F:${PACKAGE} --filter:${PACKAGE} --cwd:(?!)`],
]);
const HARMLESS_OWN = /^-s$|^--(?:silent|if-present|verbose|quiet|help|version|(?:no-)?color)$/;

interface OwnOptions {
  /** The words without them. */
  readonly words: readonly Word[];
  /** Whether they may choose another package. */
  readonly isElsewhere?: boolean;
  /** One that a `*` covers. */
  readonly risky?: Word;
}

/** A command of a package manager without the options of its own; those of npm may stand anywhere in front of `--`. */
function withoutOwnOptions(all: readonly Word[]): OwnOptions {
  const manager = all[0]?.text;
  const text = OWN_OPTIONS.get(manager);
  if (text === undefined) return { words: all };
  const options = readOptions(text);
  const words: Word[] = [];
  let isElsewhere = false;
  let values: RegExp | undefined;
  for (const [at, word] of all.entries()) {
    const [, verb] = words;
    // The others pass on what stands behind the name of a script or program.
    const isPassedOn = manager !== "npm" && verb !== undefined && (words.length > 2 || !RUN.test(verb.text));
    if (values !== undefined) {
      if (word.isFree && !values.test(word.text)) return { words, risky: word };
      values = undefined;
    } else if (word.text === "--" || isPassedOn) {
      return { words: [...words, ...all.slice(at)], isElsewhere };
    } else if (word.text === "workspace" && manager === "yarn" && verb === undefined) {
      isElsewhere = true;
      values = new RegExp(`^${PACKAGE}$`);
    } else if (!word.text.startsWith("-")) {
      words.push(word);
    } else if (!HARMLESS_OWN.test(word.text)) {
      if (word.isFree) return { words, risky: word };
      isElsewhere = true;
      const [name] = word.text.split("=");
      values = options.get(`${word.text}:`)?.values;
      if (!options.has(`${name}:`) && !options.has(word.text)) words.push(word);
    }
  }
  return { words, isElsewhere };
}

/** `from` words name the program and its command. */
function riskyOf(words: readonly Word[], command: Command, from: number): Word | undefined {
  const only = new RegExp(`^(?:${command.only ?? ".*"})$`, "s");
  const options = readOptions(`${ANY_COMMAND} ${command.options ?? ""}`);
  let before: string | undefined;
  /** The values that the option in front may have. */
  let values: RegExp | undefined;
  /** How many words an option in front that the rule names may take as values. */
  let taken = 0;
  for (const [at, word] of words.entries()) {
    const { text, isFree } = word;
    if (text.startsWith("-")) {
      const option = readOption(text, options, command.joins === true);
      if (option === undefined && isFree) return word;
      values = command.attached === true ? undefined : option?.values;
      taken = option === undefined && at >= from ? takenBy(text, command) : 0;
    } else {
      const isName = only.test(text) && (command.names === true ? !SETTING.test(text) : !text.includes("="));
      // Of an option that may also stand alone.
      const isNumber = /^\d+$/.test(text) && options.has(`${before}:`);
      const isHarmless = values?.test(text) ?? (isNumber || (isName && !turnsOff(text, before)));
      const isFile = text.startsWith("@") && command.plainAt !== true;
      // A folder of compilers for cargo and its like.
      const isToolchain = at === 1 && /^\+.*[\\/]/s.test(text);
      if (isFree && at >= from && (!isHarmless || isFile || isToolchain || taken > 0)) return word;
      values = undefined;
      taken -= 1;
    }
    before = text;
  }
  return undefined;
}

/** How many words an option takes that the rule names, and that is not known to be harmless. */
function takenBy(option: string, { given, takesAll, anyValue, joins }: Command): number {
  if (anyValue === true) return 0;
  const known = given === undefined ? undefined : readOption(option, readOptions(given), joins === true);
  if (known !== undefined) return known.values === undefined ? 0 : 1;
  if (takesAll === true) return Infinity;
  return option.includes("=") ? 0 : 1;
}

/** Whether a word may turn off the option in front of it, as many programs read `--dry-run false`. */
function turnsOff(word: string, before: string | undefined): boolean {
  if (before === undefined || !before.startsWith("-") || before === "--") return false;
  return /^(?:|\+?(?:0x0+|0[0.]*|\.0+)(?:e\d+)?|false|true|null|nil|none|no?|off|f)$/i.test(word);
}

/** Without its folder, version and ending: `./node_modules/mocha/bin/_mocha.js`, `mocha@10`, `-munittest`, `unittest.__main__`. */
function programName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1).replace(/^(?:_|-m)|[.@].*/gs, "");
}

interface KnownForm {
  readonly command: KnownCommand;
  /** The number of words that name the program and its command. */
  readonly from: number;
}

function knownCommand(argv: readonly string[]): KnownForm | undefined {
  const [program = "", ...more] = argv;
  // Its version is none of the words that it gets.
  const words = [program.replace(PROGRAM_FOLDER, "").replace(/(?<=\w)@[\w.^~-]+/, ""), ...more];
  for (const command of COMMANDS) {
    const from = lengthOf(command.begins, words);
    if (from > 0) return { command, from };
  }
  const launched = lengthOf(LAUNCHERS, words) || lengthOf(MANAGERS, words);
  const known = launched === 0 ? undefined : knownCommand(words.slice(launched));
  return known?.command.onlyByRule === true
    ? undefined
    : known && { command: known.command, from: launched + known.from };
}

/** The number of words that the longest of these beginnings has in common with a command; 0 if it begins with none. */
function lengthOf(beginnings: string, argv: readonly string[]): number {
  const lengths = beginnings.split(", ").map((beginning) => {
    const words = beginning.split(" ");
    const isSame = words.every((word, at) =>
      word.endsWith("*") ? argv[at]?.startsWith(word.slice(0, -1)) === true : argv[at] === word,
    );
    return isSame ? words.length : 0;
  });
  return Math.max(...lengths);
}

interface KnownOption {
  /** The values it may have, if it takes one. */
  readonly values?: RegExp;
}

/** The options by their names, of those with a value with a colon: one may have a form with a value and one without. */
function readOptions(text: string): ReadonlyMap<string, KnownOption> {
  return new Map(
    text.split(" ").map((option): [string, KnownOption] => {
      const end = option.indexOf(":") + 1;
      if (end === 0) return [option, {}];
      return [option.slice(0, end), { values: end === option.length ? /^/ : new RegExp(`^(?:${option.slice(end)})$`) }];
    }),
  );
}

/** What is known of an option; undefined if it may do harm. Its `values` are those of the next word. */
function readOption(word: string, options: ReadonlyMap<string, KnownOption>, joins: boolean): KnownOption | undefined {
  const alone = word.endsWith(":") ? undefined : (options.get(word) ?? options.get(`${word}:`));
  if (alone !== undefined) return alone;
  const equals = word.indexOf("=");
  const named = equals === -1 ? undefined : options.get(`${word.slice(0, equals)}:`);
  if (named?.values?.test(word.slice(equals + 1)) === true) return {};
  if (!joins || !/^-[^-]/.test(word)) return undefined;
  for (let at = 1; at < word.length; at++) {
    const letter = `-${word.charAt(at)}`;
    const option = options.get(`${letter}:`);
    const attached = word.slice(at + 1);
    if (attached !== "" && option?.values?.test(attached) === true) return {};
    if (!options.has(letter)) return attached === "" ? option : undefined;
  }
  return {};
}
