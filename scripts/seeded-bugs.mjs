// `npm run bugs [name…]`: inserts each seeded bug into a copy of the sources, and checks that a test fails that passed without it.
import { spawnSync } from "node:child_process";
import {
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
import { join } from "node:path";
import { environment, install, root, tool } from "./setup.mjs";

const node = install();
const { LINE_BUGS } = await import("../test/support/line-bugs.ts");
const { MACHINE_BUGS } = await import("../test/support/machine-bugs.ts");
const { WALL_BUGS, WALL_TESTS } = await import("../test/support/wall-bugs.ts");
const walls = WALL_BUGS.map((bug) => ({ ...bug, file: `stages/src/${bug.file}`, tests: WALL_TESTS }));
const names = process.argv.slice(2);
const bugs = [...LINE_BUGS, ...MACHINE_BUGS, ...walls].filter(({ name }) => names.length === 0 || names.includes(name));

const copy = copySources();
let missed = 0;
try {
  for (const tests of new Map(bugs.map((bug) => [bug.tests.join(" "), bug.tests])).values())
    if (!passes(tests)) throw new Error(`these tests fail without a bug: ${tests.join(" ")}`);
  for (const bug of bugs) {
    const file = join(copy, "packages", bug.file);
    const sound = readFileSync(file, "utf8");
    if (sound.split(bug.find).length !== 2)
      throw new Error(`${bug.name}: its text does not occur exactly once in ${bug.file}`);
    writeFileSync(
      file,
      sound.replace(bug.find, () => bug.replace),
    );
    const found = !passes(bug.tests);
    writeFileSync(file, sound);
    if (!found) missed += 1;
    process.stdout.write(`${found ? "found " : "MISSED"} ${bug.name}\n`);
  }
} finally {
  rmSync(copy, { recursive: true });
}
process.stdout.write(`${bugs.length - missed} of ${bugs.length} bugs found\n`);
process.exitCode = missed === 0 ? 0 : 1;

function passes(tests) {
  const { status } = spawnSync(node, [tool("vitest/vitest.mjs"), "run", "--bail=1", ...tests], {
    cwd: copy,
    env: environment(node),
    stdio: "ignore",
    timeout: 10 * 60_000,
  });
  return status === 0;
}

/** Everything that tests load, with the installed packages. */
function copySources() {
  const folder = mkdtempSync(join(tmpdir(), "sluice-bugs-"));
  const left = new Set(["node_modules", ".git", "dist"]);
  const filter = (path) => !left.has(path.split("/").at(-1));
  for (const name of ["packages", "test", "scripts", "examples", "docs"])
    cpSync(join(root, name), join(folder, name), { recursive: true, filter });
  for (const name of ["package.json", "tsconfig.base.json", "vitest.config.ts"])
    cpSync(join(root, name), join(folder, name));
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
