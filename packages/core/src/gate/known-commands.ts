// The commands of which Sluice knows harmless options and words. An option is listed only if it neither runs a program, nor loads code
// or settings, nor names a file to write.

export interface KnownCommand {
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
  /** Whether values stand behind a `=` only: without it, a program may take the next word as another task. */
  readonly attached?: true;
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

const CODE = String.raw`\.(?:[cm]?[jt]sx?|py|rb|go|rs)`;
/** The name of a file, without a sign that a shell acts on: with a folder, or an ending of source code. Some folders are words, too. */
export const FILE = String.raw`src|tests?|(?!-)(?=[^/]*/|.*${CODE}$)[\w.+,%@/~^[\]-]*`;
/** The name of a file of tests. */
const TEST_FILE = String.raw`src|tests?|(?!-)(?=.*[._](?:test|spec)${CODE}$|(?:.*/)?test_[^/]*${CODE}$)[\w.+/[\]-]*`;
/** A value that sets nothing, without a sign that a shell acts on. */
const VALUE = String.raw`[^=;&|<>'"$\`\\\r\n]*`;
/** A goal or a task. With a folder, make may compile a file there by rules of its own, and others choose the file of tasks. */
const GOAL = String.raw`\w[\w.+%:,-]*`;
/** A module of tests, and its names. */
const TEST_MODULE = String.raw`(?:test_\w+|(?!test_)\w+_tests?)(?:\.[A-Z]\w*(?:\.test\w*)?)?`;

/** What names tests for unittest, which calls what any other dotted name stands for: `code.interact`, `test_a.sys.breakpointhook`. */
const TEST_NAME = String.raw`discover|[^.]*/.*|.*\.py|(?:\w+\.)*tests|(?:(?=(?:\w+\.)*?tests\.)(?:\w+\.)+)?${TEST_MODULE}`;

export const COMMANDS: readonly KnownCommand[] = [
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
    attached: true,
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
      "-W -Dw -w -D -E -O -P -S -g --legacy-peer-deps --force --prefer-offline --frozen-lockfile --production --dry-run --save " +
      "--save-dev --save-exact --save-optional --save-prod --no-save --dev --exact --ignore-scripts --no-audit --no-fund --json",
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
      "-v -h --all --noEmit --pretty:true|false --strict --skipLibCheck --noErrorTruncation --listFiles --listFilesOnly --explainFiles " +
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
  { begins: "just, rust-just, task, go-task, bmake, remake", only: GOAL },
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
