// What a `*` of a rule covers in a stage that may not write, without a sandbox. An option is listed only if it neither runs a program,
// nor loads code or settings, nor names a file to write; of a program that is not listed, hardly any is known. A program whose other
// words may name a command, script or goal gets only names of files in any form that is not listed.

interface KnownCommand {
  /** How it begins; a `*` stands for the rest of a word. */
  readonly begins: string;
  /** `-x` and `--watch=false` are whole words, `-k:` takes a value, attached or as the next word, and `--tb:short|no` one of these. */
  readonly options?: string;
  /**
   * Options that a rule or script may name and a `*` does not cover, in the same form: they take no value, or with a colon just one. A
   * word behind any other may be its value, which may do harm.
   */
  readonly given?: string;
  /** Whether any other option takes all words up to the next one. */
  readonly takesAll?: true;
  /** Whether the values of options that the rule names are left to the rule. */
  readonly anyValue?: true;
  /** Whether only a rule names it: what a script of package.json adds to it may be more than a name. */
  readonly onlyByRule?: true;
  /** Whether letters are joined, a value right behind its letter: `-xvk name`, `-n4`. */
  readonly joins?: true;
  /** Whether its other words name tests and files, so that a `=` within them sets nothing: `a.py::adds[x=1]`. */
  readonly names?: true;
  /** A pattern of its other words, if some may do more than name something: run another command, script, goal or task. */
  readonly only?: string;
  /** Whether a word with `@` in front is like any other, and no file with more options. */
  readonly plainAt?: true;
}

const ANY_COMMAND =
  "-- --verbose --quiet --silent --help --version --color --colors --no-color --no-colors --color:auto|always|never|yes|no";

const CODE = String.raw`\.(?:[cm]?[jt]sx?|py|rb|go|rs)`;
/** The name of a file, without a sign that a shell acts on: with a folder, or an ending of source code. Some folders are words, too. */
const FILE = String.raw`src|tests?|(?!-)(?=[^/]*/|.*${CODE}$)[\w.+,%@/~^[\]-]*`;
/** The name of a file of tests. */
const TEST_FILE = String.raw`src|tests?|(?!-)(?=.*[._](?:test|spec)${CODE}$|(?:.*/)?test_[^/]*${CODE}$)[\w.+/[\]-]*`;
/** A value that sets nothing, without a sign that a shell acts on. */
const VALUE = String.raw`[^=;&|<>'"$\`\\\r\n]*`;
/** A goal or an argument of a task. */
const GOAL = String.raw`[\w./+%:,@-]*`;
/** A module of tests, and its names. */
const TEST_MODULE = String.raw`(?:test_\w+|(?!test_)\w+_tests?)(?:\.[A-Z]\w*(?:\.test\w*)?)?`;

/** What names tests for unittest, which calls what any other dotted name stands for: `code.interact`, `test_a.sys.breakpointhook`. */
const TEST_NAME = String.raw`discover|[^.]*/.*|.*\.py|(?:\w+\.)*tests|(?:(?=(?:\w+\.)*?tests\.)(?:\w+\.)+)?${TEST_MODULE}`;

const COMMANDS: readonly KnownCommand[] = [
  {
    // What the script runs is not known, so these are harmless for every usual test runner. A letter alone is not: -t writes with
    // make, and -s with tap. With node, --run takes the name of a script.
    begins:
      "npm test, npm t, npm tst, npm run test*, pnpm test, pnpm run test*, yarn test, yarn run test*, bun run test*",
    options:
      `--run:${FILE} --grep:${VALUE} --testNamePattern:${VALUE} --testPathPattern:${VALUE} --test-name-pattern:${VALUE} ` +
      "--bail --bail:\\d+ --maxfail:\\d+ --timeout:\\d+ --testTimeout:\\d+ --ci --passWithNoTests --runInBand --no-watch " +
      "--no-coverage --watch=false --watchAll=false --coverage=false --reporter:dot|spec|tap|verbose|default " +
      "--test-reporter:dot|spec|tap",
    only: TEST_FILE,
    given:
      "--test --bail --ci --coverage --exit --passWithNoTests --run --runInBand --silent --verbose --no-watch --watch",
  },
  {
    // Their other words name packages.
    begins:
      "npm i, npm ci, npm install, npm add, npm remove, npm update, npm ls, npm list, npm view, npm info, npm why, npm outdated, " +
      "pnpm i, pnpm install, pnpm add, pnpm remove, pnpm update, pnpm ls, pnpm list, pnpm view, pnpm info, pnpm why, pnpm outdated, " +
      "yarn install, yarn add, yarn remove, yarn list, yarn info, yarn why, yarn outdated, " +
      "bun i, bun install, bun add, bun remove, bun update, bun outdated",
    onlyByRule: true,
    plainAt: true,
    given:
      "-W -Dw -w --legacy-peer-deps --force --prefer-offline --frozen-lockfile --production --dry-run -D -E -O -P -S -g --save --save-dev --save-exact --save-optional --save-prod --no-save --dev --exact --ignore-scripts --no-audit --no-fund --json",
  },
  {
    begins: "vitest",
    options:
      "-t: -v -h --testNamePattern: --bail --bail: --run --passWithNoTests --no-watch --no-coverage --watch=false " +
      "--coverage=false --coverage.enabled=false --reporter:default|dot|tap|tap-flat|verbose --project: --exclude: " +
      "--retry: --testTimeout: --hookTimeout: --maxWorkers: --minWorkers: --no-file-parallelism --fileParallelism=false " +
      "--shard: --pool:forks|threads --sequence.seed: --sequence.shuffle --allowOnly --hideSkippedTests --logHeapUsage",
    only: "(?!init$).*",
    names: true,
    plainAt: true,
    given: "-u --coverage --globals --silent --typecheck --ui --update --watch",
  },
  {
    begins: "jest",
    options:
      "-t: -i -b -e -v -h -w: --testNamePattern: --runInBand --bail --bail: --ci --expand --passWithNoTests --no-watch " +
      "--no-coverage --no-cache --watch=false --watchAll=false --coverage=false --testPathPattern: --testPathPatterns: " +
      "--testPathIgnorePatterns: --runTestsByPath --findRelatedTests --selectProjects: --listTests --testTimeout: " +
      "--maxWorkers: --shard: --randomize --seed: --forceExit --detectOpenHandles --logHeapUsage",
    names: true,
    plainAt: true,
    given:
      "-c: -u --config: --rootDir: --env: --testEnvironment: --coverageDirectory: --outputFile: --coverage --json --silent --updateSnapshot --watch --watchAll",
    takesAll: true,
  },
  {
    begins: "mocha",
    options:
      "-g: -f: -i -b -t: -s: -j: -h --grep: --fgrep: --invert --bail --timeout: --no-timeouts --slow: --jobs: --parallel " +
      "--retries: --recursive --sort --exit --forbid-only --forbid-pending --full-trace --no-diff --inline-diffs " +
      "--check-leaks --dry-run --reporter:dot|json|landing|list|min|nyan|progress|spec|tap",
    // The debugger reads its commands from standard input.
    only: "(?!(?:init|inspect|debug)$).*",
    names: true,
    plainAt: true,
    given: "-w -p --watch",
  },
  {
    begins: "playwright test",
    options:
      "-g: -x -j: -h --grep: --grep-invert: --project: --workers: --retries: --timeout: --max-failures: --repeat-each: " +
      "--shard: --list --last-failed --forbid-only --fully-parallel --pass-with-no-tests --reporter:dot|line|list",
    names: true,
    plainAt: true,
    given: "-u --headed --ui --update-snapshots",
  },
  {
    begins: "node --test, node --import tsx --test, node --import=tsx --test, tsx --test",
    options:
      "--test-name-pattern: --test-skip-pattern: --test-only --test-concurrency: --test-timeout: --test-force-exit " +
      "--test-reporter:dot|spec|tap",
    names: true,
    plainAt: true,
    given: "--experimental-test-coverage --experimental-strip-types --watch",
  },
  {
    begins: "bun test",
    options: "-t: --test-name-pattern: --bail --bail: --timeout: --rerun-each: --only --todo",
    names: true,
    plainAt: true,
    given: "--coverage --watch -u --update-snapshots",
  },
  {
    begins: "pytest",
    options:
      "-q -v -x -s -l -h -V -k:([^(]|(?<=^|\\(|(?<![^\\s()])(and|or|not)\\s*)\\()* -m:([^(]|(?<=^|\\(|(?<![^\\s()])(and|or|not)\\s*)\\()* -n: -r: -p:no:[a-z_]+ --tb:auto|long|short|line|native|no --lf --last-failed --ff --failed-first --nf " +
      "--new-first --sw --stepwise --stepwise-skip --co --collect-only --exitfirst --maxfail: --durations: --durations-min: " +
      "--no-header --no-summary --showlocals --no-showlocals --capture:fd|sys|no|tee-sys --show-capture: --full-trace " +
      "--disable-warnings --disable-pytest-warnings --strict-markers --strict-config --runxfail --markers --fixtures " +
      "--setup-show --ignore: --ignore-glob: --deselect: --verbosity: --log-level: --log-cli-level: --no-cov --timeout:",
    joins: true,
    names: true,
    given: "--pdb --reuse-db --create-db --doctest-modules",
  },
  {
    // A folder to start in is run like one that is an operand.
    begins:
      "unittest, django test, django-admin test, manage.py test, ./manage.py test, python manage.py test, python3 manage.py test",
    options:
      "-q -v -f -b -c -h -k: -s: -p: --failfast --buffer --catch --locals --start-directory: --pattern: --durations:",
    only: TEST_NAME,
    joins: true,
    names: true,
  },
  { begins: "nose2, trial", only: TEST_NAME, names: true },
  {
    begins: "go test",
    options:
      "-v -race -short -failfast -json -benchmem -cover -fullpath -run: -skip: -list: -count: -timeout: -parallel: -cpu: -p: " +
      "-bench: -benchtime: -shuffle: -covermode: -tags: -vet:off|all",
    names: true,
  },
  {
    begins: "cargo test, cargo check, cargo clippy, cargo build",
    options:
      "-q -v -r -h -p: -F: -j: -A: -D: -W: --package: --exclude: --workspace --all --lib --bins --bin: --tests --test: --examples " +
      "--example: --benches --bench: --doc --all-targets --all-features --no-default-features --features: --release --jobs: " +
      "--no-run --no-fail-fast --keep-going --locked --offline --frozen --message-format:human|short|json --nocapture " +
      "--no-capture --show-output --test-threads: --ignored --include-ignored --exact --skip: --list",
    joins: true,
    names: true,
    given: "--fix",
  },
  {
    // Of a file it would write the compiled one, and of a project what its settings say.
    begins: "tsc, vue-tsc, tsgo",
    options:
      "-v -h --all --noEmit --pretty: --strict --skipLibCheck --noErrorTruncation --listFiles --listFilesOnly --explainFiles " +
      "--showConfig --traceResolution --diagnostics --extendedDiagnostics --noUnusedLocals --noUnusedParameters " +
      "--noImplicitAny --strictNullChecks --esModuleInterop --allowJs --checkJs --isolatedModules --target: --module: " +
      "--moduleResolution: --lib: --jsx:",
    only: "(?!)",
  },
  {
    begins: "eslint",
    options:
      "-v -h -f:json|stylish --format:json|stylish --ext: --max-warnings: --ignore-pattern: --no-ignore --no-inline-config " +
      "--no-warn-ignored --no-error-on-unmatched-pattern --pass-on-no-patterns --report-unused-disable-directives --stats " +
      "--debug",
    plainAt: true,
    given: "--fix --fix-dry-run --cache",
  },
  {
    begins: "prettier",
    options:
      "-c -l -u -h --check --list-different --ignore-unknown --no-error-on-unmatched-pattern --no-config --no-editorconfig " +
      "--log-level:",
    plainAt: true,
    given: "-w --write --cache",
  },
  {
    begins: "biome check, biome ci, biome format, biome lint, oxlint",
    given: "--fix --write --type-aware --deny-warnings --error-on-warnings",
  },
  {
    begins: "ruff check",
    options:
      "-q -v -s -n -e -h --no-cache --exit-zero --no-fix --diff --statistics --preview --show-files --select: --ignore: " +
      "--extend-select: --exclude: --line-length: --target-version: --output-format:",
    joins: true,
    given: "--fix --unsafe-fixes --watch",
  },
  {
    begins: "ruff format",
    options: "-q -v -s -n -h --no-cache --check --diff --preview --exclude:",
    joins: true,
  },
  {
    begins: "mypy",
    options:
      "-v -h -V -m: -p: --module: --package: --strict --pretty --no-error-summary --show-error-codes --show-error-context " +
      "--show-column-numbers --ignore-missing-imports --check-untyped-defs --disallow-untyped-defs --warn-unused-ignores " +
      "--warn-unreachable --no-incremental --follow-imports: --python-version: --exclude:",
    joins: true,
    given: "--install-types --non-interactive --namespace-packages --explicit-package-bases",
  },
  {
    // Not -t, with which it writes files that pass for the results of a check. Its settings may have any name, and a recipe may use
    // a goal as it is.
    begins: "make, gmake",
    options:
      "-k -s -n -B -h -v -j -j:[0-9]+ --keep-going --dry-run --always-make --no-print-directory --jobs --jobs:[0-9]+",
    joins: true,
    only: GOAL,
    given: "-w",
  },
  // A path before the name of a task chooses the file of tasks.
  { begins: "just, rust-just, task, go-task, bmake, remake", only: "\\w[\\w.+%:,-]*" },
  {
    begins: "mvn, mvnd, ./mvnw",
    options: "-q -B -e -X -o -ntp -ff -fae -fn --batch-mode --offline --errors --no-transfer-progress --fail-at-end",
    only: "clean|validate|compile|test-compile|test|package|verify",
    given: "-U -am -DskipTests --update-snapshots",
  },
  {
    begins: "gradle, ./gradlew",
    options:
      "-q -i -s -m -h --info --stacktrace --offline --no-daemon --console:auto|plain|rich|verbose --tests: --rerun-tasks " +
      "--continue --parallel --no-parallel --dry-run",
    only: String.raw`(?:[\w:.-]*:)?(?:clean|classes|testClasses|test|check|assemble|build)`,
    given: "-S --build-cache --configuration-cache --scan",
  },
  {
    begins: "git add",
    options: "-A -u -v -n -N -h --all --update --dry-run --intent-to-add --ignore-errors",
    joins: true,
    names: true,
    plainAt: true,
    given: "-f --force -p -i",
  },
  {
    begins: "git commit",
    options: "-m: -a -q -v -s -h --message: --all --no-edit --signoff --allow-empty",
    joins: true,
    names: true,
    plainAt: true,
    given: "--amend --no-verify -n",
  },
  // Where others read a file, `@` stands for a revision.
  { begins: "git", plainAt: true, anyValue: true, onlyByRule: true },
];

type Command = Omit<KnownCommand, "begins">;
const UNKNOWN: Command = { anyValue: true };
const NO_WORDS: Command = { only: "(?!)" };

/** What a program may stand behind: it then does the same. */
const LAUNCHERS =
  "npx, npx --no-install, npx --yes, npx -y, bunx, bun x, npm exec --, pnpm exec, pnpm dlx, yarn exec, yarn dlx, uv run, " +
  "poetry run, python -m, python3* -m";
/** These also run a script of that name. */
const MANAGERS = "pnpm, yarn";
const PROGRAM_FOLDER = /^(?:(?:\.\/)?(?:node_modules\/\.bin|\.?venv\/bin)|(?:\/usr(?:\/local)?)?\/bin)\//;
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
  const words = argv.map((text, at) => ({ text, isFree: isCovered(at) }));
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
  const known = knownCommand(texts);
  // Bun runs a script for `bun --filter web test`, and tests of its own for `bun test`.
  if (isElsewhere === true && /^bun test\b/.test(texts.join(" "))) return riskyOf(words, NO_WORDS, 2);
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
  // npm takes the options in front of `--`, and passes on the other words.
  const texts = textsOf(words);
  // Bun also runs a file of that name.
  const name = words[end - 1];
  if (texts[0] === "bun" && name?.isFree === true && (script === undefined || /[./]/.test(name.text))) return name;
  const dash = texts.indexOf("--");
  const passedOn = texts[0] !== "npm" ? end : dash === -1 ? words.length : dash + 1;
  const added = words.filter(({ text }, at) => at >= passedOn || (at >= end && !text.startsWith("-")));
  // Behind `;`, they would be a command of their own.
  if (script?.length === 0) return added.find(({ isFree }) => isFree);
  if (script !== undefined && (isKnownScript(script) || scriptLength(script, true) > 0))
    return riskyIn([...script.map((text) => ({ text, isFree: false })), ...added], called);
  const line = words.filter((word, at) => at < end || added.includes(word));
  const { command = NO_WORDS } = knownCommand(textsOf(line)) ?? {};
  const last = script?.at(-1);
  // The value of an option, such as `-c`, may be a file of settings.
  const isOpen = last?.startsWith("-") === true && takenBy(last, command) > 0;
  return riskyOf(line, isOpen ? NO_WORDS : command, end);
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
      values = option?.values;
      taken = option === undefined && at >= from ? takenBy(text, command) : 0;
    } else {
      const isName = only.test(text) && (command.names === true ? !SETTING.test(text) : !text.includes("="));
      // Of an option that may also stand alone.
      const isNumber = /^\d+$/.test(text) && options.has(`${before}:`);
      const isHarmless = values?.test(text) ?? (isNumber || (isName && !turnsOff(text, before)));
      const isFile = text.startsWith("@") && command.plainAt !== true;
      if (isFree && at >= from && (!isHarmless || isFile || taken > 0)) return word;
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
