// `npm run torture [-- --seed n | --bugs [name…]]`: kills runs at every location, or checks that seeded bugs are detected.
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { become, environment, install, root } from "./setup.mjs";

/** The files that the killed processes load. */
const packages = ["core", "stages", "sqlite"];
/** The time limit with a bug; a timeout counts as not detected. */
const bugTimeoutMs = 5 * 60_000;

const node = install();
const options = process.argv.slice(2);
const nodeOptions = ["--conditions=@sluice/source", "--disable-warning=ExperimentalWarning"];
if (options[0] === "--bugs") await tortureWithBugs(options.slice(1));
else become(node, [...nodeOptions, join(root, "test/torture/main.ts"), ...options]);

/** Inserts each bug into a copy of the sources: the location must fail with the bug, and pass without it. */
async function tortureWithBugs(names) {
  const { BUGS } = await import("../test/torture/bugs.ts");
  const chosen = names.length === 0 ? BUGS : BUGS.filter(({ name }) => names.includes(name));
  if (chosen.length === 0) throw new Error(`unknown bug; use one of ${BUGS.map(({ name }) => name).join(", ")}`);
  const copy = copySources();
  const passed = new Set();
  let missed = 0;
  try {
    for (const bug of chosen) {
      const options = locationOf(bug);
      const place = options.join(" ");
      if (!passed.has(place) && report("none", place, tortureIn(copy, options), 0)) passed.add(place);
      const file = join(copy, "packages", bug.file);
      const sound = readFileSync(file, "utf8");
      writeFileSync(file, withBug(sound, bug));
      const found = report(`rule ${bug.rule} ${bug.name}`, place, tortureIn(copy, options), 1);
      if (!found || !passed.has(place)) missed += 1;
      writeFileSync(file, sound);
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
  process.stdout.write(`${chosen.length} bugs, ${missed === 0 ? "each found" : `${missed} FAILED`}\n`);
  process.exitCode = missed === 0 ? 0 : 1;
}

function locationOf({ shows }) {
  if (shows === "zombie") return ["--zombie"];
  return ["--at", shows.at, ...(shows.changed ? ["--changed"] : [])];
}

function withBug(source, { name, file, changes }) {
  return changes.reduce((text, [from, to]) => {
    const pieces = text.split(from);
    if (pieces.length !== 2)
      throw new Error(`bug ${name}: its text occurs ${pieces.length - 1} times in ${file}: ${from}`);
    return pieces.join(to);
  }, source);
}

/** Copies the packages and the torture, and links the installed packages. */
function copySources() {
  const copy = mkdtempSync(join(tmpdir(), "sluice-bugs-"));
  const link = (from, to) => symlinkSync(from, to, "junction");
  const linkAll = (from, to) => {
    mkdirSync(to, { recursive: true });
    for (const name of readdirSync(from)) if (name !== "@sluice") link(join(from, name), join(to, name));
    mkdirSync(join(to, "@sluice"));
    for (const name of packages) link(join(copy, "packages", name), join(to, "@sluice", name));
  };
  for (const name of packages) {
    const from = join(root, "packages", name);
    for (const part of ["src", "package.json"])
      cpSync(join(from, part), join(copy, "packages", name, part), { recursive: true });
    linkAll(join(from, "node_modules"), join(copy, "packages", name, "node_modules"));
  }
  linkAll(join(root, "node_modules"), join(copy, "node_modules"));
  for (const tests of ["test/torture", "test/support"])
    cpSync(join(root, tests), join(copy, tests), { recursive: true });
  writeFileSync(join(copy, "package.json"), '{ "type": "module" }');
  return copy;
}

function tortureIn(copy, options) {
  const env = { ...environment(node), NODE_COMPILE_CACHE: join(copy, "compiled") };
  const args = [...nodeOptions, join(copy, "test/torture/main.ts"), ...options];
  return spawnSync(node, args, { encoding: "utf8", env, timeout: bugTimeoutMs, killSignal: "SIGKILL" });
}

/** Prints the outcome; returns whether it is the expected one. */
function report(what, place, { status, stdout, stderr }, expected) {
  const lines = [...stdout.split("\n"), ...stderr.split("\n")];
  const failure = lines.find((line) => /^FAILED |^\w*Error\b/.test(line))?.replace(/^FAILED /, "") ?? "it did not end";
  const came = status === 0 ? "passed" : failure.slice(0, 300);
  process.stdout.write(`${status === expected ? "ok  " : "FAIL"} ${what}: ${place}: ${came}\n`);
  return status === expected;
}
