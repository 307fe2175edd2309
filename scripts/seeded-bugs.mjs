// `npm run bugs [name…]`: inserts each seeded bug into a copy of the sources, and checks that a test fails that passed without it.
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { environment, install, root, secondsSince, tool } from "./setup.mjs";

const node = install();
const { SEEDED_BUGS } = await import("../test/support/seeded-bugs.ts");
const names = process.argv.slice(2);
const areas = Object.entries(SEEDED_BUGS)
  .map(([area, bugs]) => ({ area, bugs: bugs.filter(({ name }) => names.length === 0 || names.includes(name)) }))
  .filter(({ bugs }) => bugs.length > 0);
const unknown = names.filter((name) => !areas.some(({ bugs }) => bugs.some((bug) => bug.name === name)));
if (unknown.length > 0) throw new Error(`there is no bug ${unknown.join(", ")}`);

const copy = copySources();
/** By the tests of a bug: the names of those that pass without it. */
const sound = new Map();
let missed = 0;
try {
  checkTypes(areas.flatMap(({ bugs }) => bugs));
  for (const { area, bugs } of areas) tryBugs(area, bugs);
} finally {
  rmSync(copy, { recursive: true });
}
process.exitCode = missed === 0 ? 0 : 1;

function tryBugs(area, bugs) {
  const started = Date.now();
  let found = 0;
  for (const bug of bugs) {
    const passed = passedWithout(bug.tests);
    const restore = insert(bug);
    const { failed, why } = runTests(bug.tests);
    restore();
    const first = failed.find((one) => passed.has(one.name));
    if (first !== undefined) found += 1;
    const [verdict, text] = first === undefined ? ["MISSED", why] : ["found ", `${first.name} (${first.message})`];
    process.stdout.write(`${verdict} ${bug.name}: ${text}\n`);
  }
  missed += bugs.length - found;
  process.stdout.write(`${area}: ${found} of ${bugs.length} bugs found in ${secondsSince(started)}\n`);
}

function passedWithout(tests) {
  const key = tests.join(" ");
  if (!sound.has(key)) {
    const { failed, passed, why } = runTests(tests);
    if (failed.length > 0 || passed.size === 0)
      throw new Error(`these tests fail without a bug: ${failed[0]?.name ?? why}`);
    sound.set(key, passed);
  }
  return sound.get(key);
}

/** Inserts a bug; the returned function removes it. */
function insert({ name, file, find, replace }) {
  const path = join(copy, "packages", file);
  const text = readFileSync(path, "utf8");
  if (text.split(find).length !== 2) throw new Error(`${name}: its text does not occur exactly once in ${file}`);
  writeFileSync(
    path,
    text.replace(find, () => replace),
  );
  return () => writeFileSync(path, text);
}

/** A bug with a type error, such as an unknown name, would be found whatever the tests check. */
function checkTypes(bugs) {
  const variants = bugs.map((bug) => {
    const path = join(copy, "packages", bug.file.replace(/\.ts$/, `.bug-${bug.name}.ts`));
    const restore = insert(bug);
    cpSync(join(copy, "packages", bug.file), path);
    restore();
    return path;
  });
  const compilerOptions = {
    noEmit: true,
    composite: false,
    declaration: false,
    declarationMap: false,
    rewriteRelativeImportExtensions: false,
    allowImportingTsExtensions: true,
    noUnusedLocals: false,
    noUnusedParameters: false,
  };
  const config = join(copy, "tsconfig.json");
  writeFileSync(config, JSON.stringify({ extends: "./tsconfig.base.json", compilerOptions, files: variants }));
  const { status, stdout } = spawnSync(node, [tool("typescript/bin/tsc"), "-p", config], {
    cwd: copy,
    env: environment(node),
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`these bugs are type errors:\n${stdout}`);
  for (const path of [config, ...variants]) rmSync(path);
}

/** Only a test can fail: a file that cannot be loaded, a hook and the runner itself do not count. */
function runTests(tests) {
  const report = join(copy, "report.json");
  rmSync(report, { force: true });
  const args = ["run", "--bail=1", "--maxWorkers=2", "--reporter=json", `--outputFile=${report}`, ...tests];
  const { error } = spawnSync(node, [tool("vitest/vitest.mjs"), ...args], {
    cwd: copy,
    env: environment(node),
    stdio: "ignore",
    timeout: 10 * 60_000,
  });
  if (!existsSync(report)) return { failed: [], passed: new Set(), why: error?.message ?? "the test runner failed" };
  const { testResults: files } = JSON.parse(readFileSync(report, "utf8"));
  const cases = files.flatMap(({ name: file, assertionResults }) =>
    assertionResults.map(({ fullName, status, failureMessages: [message = ""] }) => ({
      name: `${relative(copy, file)}: ${fullName}`,
      status,
      message: message.split("\n", 1)[0],
    })),
  );
  const broken = files.find(({ status, assertionResults }) => status === "failed" && assertionResults.length === 0);
  return {
    failed: cases.filter(({ status }) => status === "failed"),
    passed: new Set(cases.filter(({ status }) => status === "passed").map(({ name }) => name)),
    why: broken === undefined ? "no test failed" : `${relative(copy, broken.name)} cannot be loaded: ${broken.message}`,
  };
}

/** Everything that tests load, with the installed packages. */
function copySources() {
  const folder = mkdtempSync(join(tmpdir(), "sluice-bugs-"));
  // Some tests start programs as another user.
  chmodSync(folder, 0o755);
  const left = new Set(["node_modules", ".git", "dist"]);
  const filter = (path) => !left.has(path.split("/").at(-1));
  for (const name of ["packages", "test", "scripts", "examples", "docs"])
    cpSync(join(root, name), join(folder, name), { recursive: true, filter });
  for (const name of ["package.json", "tsconfig.base.json", "vitest.config.ts"])
    cpSync(join(root, name), join(folder, name));
  // These tests run the sources: nothing has to be bundled again for each bug.
  writeFileSync(join(folder, "test/support/current-bundles.ts"), "export function setup() {}\n");
  for (const place of [".", ...readdirSync(join(root, "packages")).map((name) => join("packages", name))])
    linkModules(join(root, place, "node_modules"), join(folder, place, "node_modules"), folder);
  return folder;
}

/** The installed modules; our own packages are those of the copy, by whatever name a test loads them. */
function linkModules(from, to, copy) {
  if (!existsSync(from)) return;
  mkdirSync(join(to, "@sluice"), { recursive: true });
  for (const name of readdirSync(from)) if (name !== "@sluice") symlinkSync(join(from, name), join(to, name));
  for (const name of readdirSync(join(copy, "packages")))
    symlinkSync(join(copy, "packages", name), join(to, "@sluice", name));
}
