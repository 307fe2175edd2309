// `npm run mutate`: mutates the folders below and reports the mutants that no test detects.
// `npm run mutate -- machine` does one folder, `npm run mutate -- packages/core/src/gate/decide.ts` some files of them, and
// `npm run mutate -- --read a.json b.json` evaluates existing reports. Other options, such as `--concurrency=1`, are Stryker's.
// The survivors and their explanations are in .reports/mutation.md.
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { environment, install, root, tool } from "./setup.mjs";

const SOURCES = "packages/core/src";
const FOLDERS = ["gate", "machine", "journal", "run/tool-calls"];
/** Parts whose tests need no host run without one, which is faster. */
const RECORDS = /\/journal\/(?:record|redaction|host\/recorded-steps|audit\/verify)\.ts/;

const TRIED = new Set(["Killed", "Timeout", "Survived", "NoCoverage"]);

const asked = process.argv.slice(2).filter((each) => !each.startsWith("--"));
const options = process.argv.slice(2).filter((each) => each.startsWith("--"));
const reports = options.includes("--read") ? asked : mutate(asked.length === 0 ? FOLDERS : asked);

/** Explained survivors: the location, the change, and why no verdict, route or record changes. */
const explained = JSON.parse(readFileSync(join(root, "test/mutation/explained.json"), "utf8"));
const sources = globSync("packages/*/src/**/*.ts", { cwd: root }).map((file) => readFileSync(join(root, file), "utf8"));
const mutants = merged(reports).map(({ file, source, mutant }) => describe(file, source, mutant));

const sections = FOLDERS.map((folder) => section(folder)).filter((one) => one !== undefined);
const unexplained = mutants.filter(({ fate }) => fate === "unexplained" || fate === "not run");
const gone = explained.filter(({ file, code }) => !read(file).includes(code));

for (const { summary } of sections) process.stdout.write(`${summary}\n`);
for (const mutant of unexplained) process.stdout.write(`\n${mutant.fate}: ${shown(mutant)}\n`);
for (const { file, code } of gone) process.stdout.write(`\nexplained, but gone: ${file}: ${code}\n`);
const report = join(root, ".reports/mutation.md");
writeFileSync(report, sections.map(({ text }) => text).join("\n"));
process.stdout.write(`\nSurvivors and explanations: ${relative(process.cwd(), report)}\n`);
process.exitCode = unexplained.length === 0 && gone.length === 0 ? 0 : 1;

/** Runs the mutations of each part with its tests, and returns the reports. */
function mutate(asked) {
  const node = install();
  const all = FOLDERS.flatMap((folder) =>
    asked.includes(folder)
      ? globSync(`${SOURCES}/${folder}/**/*.ts`, { cwd: root })
      : asked.flatMap((part) => part.split(",")).filter((file) => file.startsWith(`${SOURCES}/${folder}/`)),
  );
  const parts = Map.groupBy(all, (file) =>
    RECORDS.test(file) ? "records" : FOLDERS.find((folder) => file.startsWith(`${SOURCES}/${folder}/`)),
  );
  return [...parts].flatMap(([part, mine]) => {
    const first = stryker(node, part, mine, ["--ignoreStatic"], `${part}.json`);
    // Code that runs when a module is loaded was skipped: it runs with all tests of its part, in a separate process.
    const atLoad = merged([first]).filter(({ mutant }) => mutant.status === "Ignored");
    const places = atLoad.map(
      ({ file, mutant }) => `${file}:${mutant.location.start.line}-${mutant.location.end.line}`,
    );
    return places.length === 0 ? [first] : [first, stryker(node, part, [...new Set(places)], [], `${part}-load.json`)];
  });
}

function stryker(node, part, places, more, name) {
  const run = ["run", ...options, ...more, "--mutate", places.join(",")];
  const env = { ...environment(node), SLUICE_MUTATE: part };
  const { status } = spawnSync(node, [tool("@stryker-mutator/core/bin/stryker.js"), ...run], {
    cwd: root,
    stdio: "inherit",
    env,
  });
  if (status !== 0) process.exit(status ?? 1);
  const kept = join(root, `.reports/mutation-${name.replaceAll("/", "-")}`);
  copyFileSync(join(root, ".reports/mutation.json"), kept);
  return kept;
}

/** Each mutant once: the later report wins, unless it skipped the mutant or could not run it. */
function merged(paths) {
  const found = new Map();
  for (const path of paths) {
    const { files } = JSON.parse(readFileSync(path, "utf8"));
    for (const [file, { source, mutants: all }] of Object.entries(files)) {
      for (const mutant of all) {
        const { start, end } = mutant.location;
        const line = source.split("\n")[start.line - 1];
        const where = [start.line, start.column, end.line, end.column, mutant.mutatorName, mutant.replacement];
        const key = JSON.stringify([file, line, ...where]);
        if (!found.has(key) || TRIED.has(mutant.status)) found.set(key, { file, source, mutant });
      }
    }
  }
  return [...found.values()];
}

function describe(file, source, { location, mutatorName: mutator, replacement, status, statusReason = "" }) {
  const { start } = location;
  const mutant = {
    file,
    line: start.line,
    code: source.split("\n")[start.line - 1].trim(),
    mutator,
    replacement,
    changed: cut(source, location),
  };
  // A test file that cannot be loaded detects the mutant, and so does a process that ends again and again, each time a new one. Any
  // other error may stem from another mutant.
  const isDetected = status === "RuntimeError" && /\.test\.ts: |^Test runner crashed\. Tried twice/.test(statusReason);
  if (status === "Killed" || status === "Timeout" || isDetected) return { ...mutant, fate: "killed" };
  if (!TRIED.has(status)) return { ...mutant, fate: "not run" };
  const why = explained.find((one) => explains(one, mutant))?.why;
  if (why !== undefined) return { ...mutant, fate: "explained", why };
  return { ...mutant, fate: isText(mutant) ? "text" : "unexplained" };
}

/** Identifies a mutant by its code, not by its line, which moves, and by the changed part and its replacement. */
function explains({ file, code, changed, mutator, replacement }, mutant) {
  return (
    mutant.file === file &&
    mutant.code.includes(code) &&
    (changed === undefined || mutant.changed === changed) &&
    (mutator === undefined || mutant.mutator === mutator) &&
    (replacement === undefined || mutant.replacement === replacement)
  );
}

/**
 * Whether only a sentence for people or models changed. It contains spaces, unlike any code, kind, cause, key, id or event type,
 * and occurs only once in the sources, so no code compares with it.
 */
function isText({ mutator, changed }) {
  if (mutator !== "StringLiteral") return false;
  const words = changed.slice(1, -1).replaceAll(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, "");
  if (!/\p{L}[,;:]? | \p{L}/u.test(words)) return false;
  return changed.startsWith("`") || sources.reduce((times, text) => times + text.split(changed).length - 1, 0) === 1;
}

function cut(source, { start, end }) {
  const lines = source.split("\n").slice(start.line - 1, end.line);
  lines[lines.length - 1] = lines[lines.length - 1].slice(0, end.column - 1);
  lines[0] = lines[0].slice(start.column - 1);
  return lines.join("\n");
}

function section(folder) {
  const own = mutants.filter(({ file }) => file.startsWith(`${SOURCES}/${folder}/`));
  if (own.length === 0) return undefined;
  const of = (fate) => own.filter((mutant) => mutant.fate === fate);
  const counts = ["killed", "explained", "text", "unexplained", "not run"].map((fate) => `${of(fate).length} ${fate}`);
  const summary = `${folder}: ${own.length} changes: ${counts.join(", ")}`;
  const list = (fate, title) => {
    const each = of(fate).map((mutant) => `- ${shown(mutant)}${mutant.why === undefined ? "" : `\n  ${mutant.why}`}`);
    return each.length === 0 ? [] : [`### ${title}`, "", ...each, ""];
  };
  const done = new Set(own.map(({ file }) => basename(file)));
  const text = [
    `## ${summary}`,
    "",
    `Files: ${[...done].join(", ")}`,
    "",
    ...list("unexplained", "Survived, unexplained"),
    ...list("not run", "Not run"),
    ...list("explained", "Survived, explained"),
    ...list("text", "Survived: only a sentence for people or models changed"),
  ].join("\n");
  return { summary, text };
}

function shown({ file, line, code, mutator, replacement }) {
  return `${file}:${line} ${mutator}\n  ${code}\n  became … ${replacement} …`;
}

function read(file) {
  const path = join(root, file);
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}
