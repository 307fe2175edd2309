// The options that a `*` of a rule covers in a stage that may not write, without a sandbox. An option is listed only if it neither
// runs a program, nor loads code or settings, nor names a file to write; of a program that is not listed, hardly any is known.

interface KnownCommand {
  /** How it begins; a `*` stands for the rest of a word. */
  readonly begins: string;
  /** `-x` and `--watch=false` are whole words, `-k:` takes a value, attached or as the next word, and `--tb:short|no` one of these. */
  readonly options: string;
  /** Whether letters are joined, a value right behind its letter: `-xvk name`, `-n4`. */
  readonly joins?: true;
  /** Whether its other words name tests and files, so that a `=` within them sets nothing: `a.py::adds[x=1]`. */
  readonly names?: true;
  /** A pattern of words that name another command, goal or task of its program, which may do more. */
  readonly commands?: string;
  /** Whether a word with `@` in front is like any other, and no file with more options. */
  readonly plainAt?: true;
}

const ANY_COMMAND =
  "-- --verbose --quiet --silent --help --version --color --colors --no-color --no-colors --color:auto|always|never|yes|no";

/** A module of tests, and its names. */
const TEST_MODULE = String.raw`(?:test_\w+|(?!test_)\w+_tests?)(?:\.[A-Z]\w*(?:\.test\w*)?)?`;

const COMMANDS: readonly KnownCommand[] = [
  {
    // What the script runs is not known, so these are harmless for every usual test runner. A letter alone is not: -t writes with
    // make, and -s with tap. With node, --run takes the name of a script.
    begins: "npm test, npm t, npm run test*, pnpm test, pnpm run test*, yarn test, yarn run test*, bun run test*",
    options:
      "--run:\\S+[/.][cm]?[jt]sx? --grep: --testNamePattern: --testPathPattern: --test-name-pattern: --bail --bail: --maxfail: --ci --if-present " +
      "--passWithNoTests --runInBand --no-watch --no-coverage --watch=false --watchAll=false --coverage=false --timeout: " +
      "--testTimeout: --reporter:dot|spec|tap|verbose|default --test-reporter:dot|spec|tap",
    commands: "init|inspect|debug",
  },
  {
    begins: "vitest",
    options:
      "-t: -v -h --testNamePattern: --bail --bail: --run --passWithNoTests --no-watch --no-coverage --watch=false " +
      "--coverage=false --coverage.enabled=false --reporter:default|dot|tap|tap-flat|verbose --project: --exclude: " +
      "--retry: --testTimeout: --hookTimeout: --maxWorkers: --minWorkers: --no-file-parallelism --fileParallelism=false " +
      "--shard: --pool:forks|threads --sequence.seed: --sequence.shuffle --allowOnly --hideSkippedTests --logHeapUsage",
    commands: "init",
    names: true,
    plainAt: true,
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
  },
  {
    begins: "mocha",
    options:
      "-g: -f: -i -b -t: -s: -j: -h --grep: --fgrep: --invert --bail --timeout: --no-timeouts --slow: --jobs: --parallel " +
      "--retries: --recursive --sort --exit --forbid-only --forbid-pending --full-trace --no-diff --inline-diffs " +
      "--check-leaks --dry-run --reporter:dot|json|landing|list|min|nyan|progress|spec|tap",
    // The debugger reads its commands from standard input.
    commands: "init|inspect|debug",
    names: true,
    plainAt: true,
  },
  {
    begins: "playwright test",
    options:
      "-g: -x -j: -h --grep: --grep-invert: --project: --workers: --retries: --timeout: --max-failures: --repeat-each: " +
      "--shard: --list --last-failed --forbid-only --fully-parallel --pass-with-no-tests --reporter:dot|line|list",
    names: true,
    plainAt: true,
  },
  {
    begins: "node --test",
    options:
      "--test-name-pattern: --test-skip-pattern: --test-only --test-concurrency: --test-timeout: --test-force-exit " +
      "--test-reporter:dot|spec|tap",
    names: true,
    plainAt: true,
  },
  {
    begins: "bun test",
    options: "-t: --test-name-pattern: --bail --bail: --timeout: --rerun-each: --only --todo",
    names: true,
    plainAt: true,
  },
  {
    begins: "pytest",
    options:
      "-q -v -x -s -l -h -V -k:([^(]|(?<=^|\\(|(?<![^\\s()])(and|or|not)\\s*)\\()* -m:([^(]|(?<=^|\\(|(?<![^\\s()])(and|or|not)\\s*)\\()* -n: -r: -p:no\\x3a[a-z_]+ --tb:auto|long|short|line|native|no --lf --last-failed --ff --failed-first --nf " +
      "--new-first --sw --stepwise --stepwise-skip --co --collect-only --exitfirst --maxfail: --durations: --durations-min: " +
      "--no-header --no-summary --showlocals --no-showlocals --capture:fd|sys|no|tee-sys --show-capture: --full-trace " +
      "--disable-warnings --disable-pytest-warnings --strict-markers --strict-config --runxfail --markers --fixtures " +
      "--setup-show --ignore: --ignore-glob: --deselect: --verbosity: --log-level: --log-cli-level: --no-cov --timeout:",
    joins: true,
    names: true,
  },
  {
    // A folder to start in is run like one that is an operand.
    begins: "unittest",
    options:
      "-q -v -f -b -c -h -k: -s: -p: --failfast --buffer --catch --locals --start-directory: --pattern: --durations:",
    // It calls what a dotted name stands for, such as `code.interact` or `test_a.sys.breakpointhook`: only names of tests are covered.
    commands: String.raw`(?!(?:discover|unittest|.*/.*|.*\.py|tests|(?:tests(?:\.\w+)*\.)?${TEST_MODULE})$).*`,
    joins: true,
    names: true,
  },
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
  },
  {
    begins: "tsc",
    options:
      "-v -h --all --noEmit --pretty: --strict --skipLibCheck --noErrorTruncation --listFiles --listFilesOnly --explainFiles " +
      "--showConfig --traceResolution --diagnostics --extendedDiagnostics --noUnusedLocals --noUnusedParameters " +
      "--noImplicitAny --strictNullChecks --esModuleInterop --allowJs --checkJs --isolatedModules --target: --module: " +
      "--moduleResolution: --lib: --jsx:",
  },
  {
    begins: "eslint",
    options:
      "-v -h -f:json|stylish --format:json|stylish --ext: --max-warnings: --ignore-pattern: --no-ignore --no-inline-config " +
      "--no-warn-ignored --no-error-on-unmatched-pattern --pass-on-no-patterns --report-unused-disable-directives --stats " +
      "--debug",
    plainAt: true,
  },
  {
    begins: "prettier",
    options:
      "-c -l -u -h --check --list-different --ignore-unknown --no-error-on-unmatched-pattern --no-config --no-editorconfig " +
      "--log-level:",
    plainAt: true,
  },
  {
    begins: "ruff check",
    options:
      "-q -v -s -n -e -h --no-cache --exit-zero --no-fix --diff --statistics --preview --show-files --select: --ignore: " +
      "--extend-select: --exclude: --line-length: --target-version: --output-format:",
    joins: true,
  },
  { begins: "ruff format", options: "-q -v -s -n -h --no-cache --check --diff --preview --exclude:", joins: true },
  {
    begins: "mypy",
    options:
      "-v -h -V -m: -p: --module: --package: --strict --pretty --no-error-summary --show-error-codes --show-error-context " +
      "--show-column-numbers --ignore-missing-imports --check-untyped-defs --disallow-untyped-defs --warn-unused-ignores " +
      "--warn-unreachable --no-incremental --follow-imports: --python-version: --exclude:",
    joins: true,
  },
  {
    // Not -t, with which it writes files that pass for the results of a check. Its settings may have any name.
    begins: "make, gmake",
    options:
      "-k -s -n -B -h -v -j -j:[0-9]+ --keep-going --dry-run --always-make --no-print-directory --jobs --jobs:[0-9]+",
    joins: true,
  },
  {
    begins:
      "mvn test, mvn verify, mvn -q test, mvn -q verify, mvn -B test, mvn -B verify, ./mvnw test, ./mvnw verify, ./mvnw -q test",
    options: "-q -B -e -X -o -ntp -ff -fae -fn --batch-mode --offline --errors --no-transfer-progress --fail-at-end",
    commands: String.raw`(?!(?:mvn|\./mvnw|clean|validate|compile|test-compile|test|package|verify)$).*`,
  },
  {
    begins: "gradle test, gradle check, ./gradlew test, ./gradlew check",
    options:
      "-q -i -s -m -h --info --stacktrace --offline --no-daemon --console:auto|plain|rich|verbose --tests: --rerun-tasks " +
      "--continue --parallel --no-parallel --dry-run",
    commands: String.raw`(?!(?:gradle|\./gradlew|(?:[\w:.-]*:)?(?:clean|classes|testClasses|test|check|assemble|build))$).*`,
  },
  {
    begins: "git add",
    options: "-A -u -v -n -N -h --all --update --dry-run --intent-to-add --ignore-errors",
    joins: true,
    names: true,
  },
  {
    begins: "git commit",
    options: "-m: -a -q -v -s -h --message: --all --no-edit --signoff --allow-empty",
    joins: true,
    names: true,
  },
];

/** What a program may stand behind: it then does the same. */
const LAUNCHERS =
  "npx, npx --no-install, npx --yes, npx -y, bunx, pnpm exec, pnpm, yarn, uv run, poetry run, python -m, python3 -m";
const PROGRAM_FOLDER = /^(?:\.\/)?(?:node_modules\/\.bin|\.?venv\/bin)\//;

/** Some versions of package managers put a word between double quotes into the command line of a shell. */
const MANAGER_SIGNS = /[$`\\"\r\n]/;
/** A script may do the same without quotes. */
const UNKNOWN_SIGNS = /[;&|<>'$`\\"\r\n]/;
/** In a script, older versions of Bun also expand a word, and split it at its blanks, so that it may hold an option. */
const BUN_SIGNS = /[;&|<>'$`\\"\r\n*?{}~()#![\]]|\s-/;
/** What no goal or argument of a task has: a recipe may use its words as they are. */
const NO_GOAL = /[^\w./+%:,=@-]/;
/** A variable that a program takes from its words. */
const SETTING = /^\w[\w.-]*[^\w\s]?=/;

/** A script that is not known may run any test runner. */
const ANY_SCRIPT: Pick<KnownCommand, "options" | "commands"> = { options: "", commands: "init|inspect|debug" };

/** Commands that run a script of package.json. */
const SCRIPT_RUNNERS = "npm test, npm t, npm run *, pnpm test, pnpm run *, yarn test, yarn run *, bun run *";
/** What npm itself takes in front of `--`. */
const OF_NPM: Pick<KnownCommand, "options"> = { options: "--if-present" };
const OWN_OF_NPM: readonly string[] = ["--", "--silent", "--if-present"];
const NAMES_PACKAGE = /^(?:-w|-F|--workspace|--filter)$/;

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
  const runs = lengthOf(SCRIPT_RUNNERS, argv) || (script === undefined ? 0 : 2);
  if (runs > 0 && argv[runs - 1]?.startsWith("-") === false) return riskyWordOfScript(argv, isCovered, runs, script);
  // A program may stand behind any other, so the words of the rule count, and the one behind a launcher.
  const programs = argv.filter((_, at) => !isCovered(at) || at === lengthOf(LAUNCHERS, argv)).map(programName);
  const signs = programs.flatMap((program) => signsOf(program) ?? []);
  const passed = argv.find((word, at) => isCovered(at) && signs.some((sign) => sign.test(word)));
  const known = knownCommand(argv);
  const from = known === undefined ? scriptWordsFrom(argv) : Infinity;
  const named = argv.find((word, at) => at >= from && isCovered(at) && !NAMES_FILE.test(word));
  return passed ?? named ?? riskyWordIn(argv, isCovered, known ?? otherForm(programs));
}

/** Where the words begin that a command in another form than `SCRIPT_RUNNERS` passes to a script of package.json: `npm -w a run b …`. */
function scriptWordsFrom(argv: readonly string[]): number {
  const [program = "", first = ""] = argv;
  const verb = argv.findIndex((word) => /^(?:run|run-script|test|tst|t|--run)$/.test(word));
  if (program === "node") return argv[verb] === "--run" ? verb + 2 : Infinity;
  if (!/^(?:npm|pnpm|yarn|bun)$/.test(program) || lengthOf("bun test", argv) > 0) return Infinity;
  if (verb !== -1) return argv[verb]?.startsWith("run") === true ? verb + 2 : verb + 1;
  // Except npm, they run a script by its name alone.
  return program === "npm" || first.startsWith("-") || OWN_COMMAND.test(first) ? Infinity : 2;
}

const NAMES_FILE = /^-|\/|\.(?:[cm]?[jt]sx?|py|rb|go|rs)$/;
const OWN_COMMAND =
  /^(?:add|audit|bin|build|cache|ci|config|create|dedupe|dlx|exec|fetch|help|i|info|init|install|link|list|ls|outdated|pack|pm|prune|publish|rebuild|remove|rm|root|set|store|uninstall|up|update|upgrade|version|view|why|workspaces?|x)$/;

/** Of programs in a form that is not known, no option is known to be harmless, but which words name other commands of them. */
function otherForm(programs: readonly string[]): Omit<KnownCommand, "begins"> | undefined {
  const isNamed = (beginning: string): boolean => {
    const [program = "", ...more] = beginning.split(" ").map(programName);
    // A package manager does much else.
    const isWhole = signsOf(program) === undefined || more.every((word) => programs.includes(word));
    return isWhole && programs.includes(program);
  };
  const found = COMMANDS.filter(({ begins, commands }) => commands !== undefined && begins.split(", ").some(isNamed));
  if (found.length === 0) return undefined;
  const commands = found.map((one) => one.commands).join("|");
  return { options: "", commands, ...(found.every(({ names }) => names === true) ? { names: true } : {}) };
}

/** `runs` words name the script. */
function riskyWordOfScript(
  argv: readonly string[],
  isCovered: (at: number) => boolean,
  runs: number,
  script: readonly string[] | undefined,
): string | undefined {
  // npm takes the options in front of `--`, and passes on the other words.
  const dash = argv.indexOf("--");
  const end = argv[0] !== "npm" ? runs : dash === -1 ? argv.length : dash + 1;
  const own = argv.slice(0, end);
  const risky = riskyWordIn(own, isCovered, OF_NPM);
  if (risky !== undefined) return risky;
  const added = [...argv.keys()].filter(
    (at) => at >= end || (at >= runs && !argv[at]?.startsWith("-") && !NAMES_PACKAGE.test(argv[at - 1] ?? "")),
  );
  // Behind `;`, they would be a command of their own.
  if (script?.length === 0) return added.map((at) => argv[at]).find((_, at) => isCovered(added[at] ?? -1));
  const calls = script?.indexOf("\n") ?? -1;
  const [first, called] = calls === -1 ? [script] : [script?.slice(0, calls), script?.slice(calls + 1)];
  // An option that the rule names may choose the script of another package.
  const isElsewhere = own.some((word) => word.startsWith("-") && !OWN_OF_NPM.includes(word));
  const isKnown =
    first !== undefined && !isElsewhere && (knownCommand(first) !== undefined || lengthOf(SCRIPT_RUNNERS, first) > 0);
  const words = isKnown ? first : [...own.slice(0, runs), "--"];
  const line = [...words, ...added.map((at) => argv[at] ?? "")];
  const isAdded = (at: number): boolean => isCovered(added[at - words.length] ?? -1);
  const programs = [...line.filter((_, at) => !isAdded(at)), ...(script ?? [])].map(programName);
  const signs = [argv[0] === "bun" ? BUN_SIGNS : MANAGER_SIGNS, ...(isKnown ? [] : [UNKNOWN_SIGNS])];
  signs.push(...programs.flatMap((program) => signsOf(program) ?? []));
  const passed = line.find((word, at) => isAdded(at) && signs.some((sign) => sign.test(word)));
  // The program may be a package manager again.
  if (passed !== undefined || isKnown) return passed ?? riskyWord(line, isAdded, called);
  return riskyWordIn(line, isAdded, knownCommand(line) ?? otherForm(programs) ?? ANY_SCRIPT);
}

function riskyWordIn(
  argv: readonly string[],
  isCovered: (at: number) => boolean,
  command: Omit<KnownCommand, "begins"> | undefined,
): string | undefined {
  const others = command?.commands === undefined ? undefined : new RegExp(`^(?:${command.commands})$`, "s");
  const options = readOptions(`${ANY_COMMAND} ${command?.options ?? ""}`);
  /** The values that the option in front may have. */
  let values: RegExp | undefined;
  for (const [at, word] of argv.entries()) {
    if (word.startsWith("-")) {
      const option = readOption(word, options, command?.joins === true);
      if (option === undefined && isCovered(at)) return word;
      values = option?.values;
      continue;
    }
    if (values === undefined && others?.test(word) === true && isCovered(at)) return word;
    const isHarmless =
      (values?.test(word) ?? !turnsOff(word, argv[at - 1], options)) &&
      (!word.startsWith("@") || isPlainAt(argv, at, command)) &&
      (!word.includes("=") || (command?.names === true && (values !== undefined || !SETTING.test(word))));
    if (!isHarmless && isCovered(at)) return word;
    values = undefined;
  }
  return undefined;
}

/** Whether a word may turn off the option in front of it, as many programs read `--dry-run false`. A number may be its value. */
function turnsOff(word: string, before = "", options: ReadonlyMap<string, KnownOption>): boolean {
  if (!before.startsWith("-") || before === "--") return false;
  if (/^\d+$/.test(word) && options.has(`${before}:`)) return false;
  return /^(?:|[-+]?(?:0x0+|0[0.]*|\.0+)(?:e\d+)?|false|true|null|nil|none|no?|off|f)$/i.test(word);
}

/** What no word may hold that a program puts into the command line of a shell. */
function signsOf(program: string): RegExp | undefined {
  if (/^(?:npm|npx|pnpm|pnpx|yarn|bunx?)$/.test(program)) return MANAGER_SIGNS;
  return /^(?:(?:[bgp]|re)?make|just|(?:go-)?task)$/.test(program) ? NO_GOAL : undefined;
}

/** Without its folder, version and ending: `./node_modules/mocha/bin/_mocha.js`, `mocha@10`, `-munittest`. */
function programName(path = ""): string {
  const name = path.slice(path.lastIndexOf("/") + 1).replace(/(?<=.)@.*|\.[cm]?js$/g, "");
  return name.replace(/^(?:_|-m)(?=\w)|(?<=^unittest)\.(?:__)?main(?:__)?$|(?<=^mvn)d$/g, "");
}

function knownCommand(argv: readonly string[]): KnownCommand | undefined {
  const [program = "", ...more] = argv;
  const words = [program.replace(PROGRAM_FOLDER, ""), ...more];
  const known = COMMANDS.find(({ begins }) => lengthOf(begins, words) > 0);
  if (known !== undefined) return known;
  const launcher = lengthOf(LAUNCHERS, words);
  return launcher === 0 ? undefined : knownCommand(words.slice(launcher));
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
      const [name, values] = option.split(/(?<=:)/);
      if (!option.includes(":")) return [option, {}];
      return [name ?? "", { values: values === undefined ? /^/ : new RegExp(`^(?:${values})$`) }];
    }),
  );
}

/** What is known of an option; undefined if it may do harm. Its `values` are those of the next word. */
function readOption(word: string, options: ReadonlyMap<string, KnownOption>, joins: boolean): KnownOption | undefined {
  const alone = options.get(word) ?? options.get(`${word}:`);
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

const PACKAGE_MANAGER = /^(?:npm|npx|pnpm|yarn|bun|bunx)$/;
/** Commands of package managers whose words name packages. */
const OF_PACKAGES = /^(?:add|dedupe|i|info|install|list|ls|outdated|remove|rm|uninstall|update|upgrade|view|why)$/;

/** Whether a word with `@` in front is a revision of git, a package (`@scope/name`), or a plain word of a known command. */
function isPlainAt(argv: readonly string[], at: number, command: Pick<KnownCommand, "plainAt"> | undefined): boolean {
  const [program = "", subcommand = ""] = argv;
  if (program === "git" || command?.plainAt === true) return true;
  if (!PACKAGE_MANAGER.test(program)) return false;
  // Any other word may be one of the program or script that the package manager runs.
  const before = argv.slice(1, at - 1);
  const isItsOwn = program === "npm" ? !before.includes("--") : before.every((word) => word.startsWith("-"));
  if (isItsOwn && NAMES_PACKAGE.test(argv[at - 1] ?? "")) return true;
  if (program === "npx" || program === "bunx") return at === lengthOf(LAUNCHERS, argv);
  return OF_PACKAGES.test(subcommand) || (at === 2 && /^(?:workspace|exec|dlx|x)$/.test(subcommand));
}
