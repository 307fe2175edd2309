// Installs and builds what is missing or outdated. Must run on Node 20, since it installs a newer Node.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** The command's exit code for a missing requirement. */
const environmentExit = 4;
const modules = join(root, "node_modules");
const stampFile = join(modules, ".sluice-installed");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const neededNode = manifest.engines.node.replace(">=", "");
/** The package with a newer Node if the host's is too old; exists only for Linux. */
const carriedNode = `node-${process.platform}-${process.arch}`;

/** Installs if needed; returns the Node binary for everything else. */
export function install() {
  if (isTooOld(process.versions.node) && manifest.optionalDependencies[carriedNode] === undefined) stopForOldNode();
  const stamp = stampOfManifests();
  if (readStamp() !== stamp || findNode() === undefined) runInstall(stamp);
  return findNode() ?? stopForOldNode();
}

/** Makes what the packages run. Without changes it takes a tenth of a second. */
export function bundle(node) {
  const first = !existsSync(join(root, "packages/cli/dist/main.js"));
  const started = Date.now();
  buildWith(node, [join(root, "scripts/bundle.mjs")]);
  if (first) say(`built in ${secondsSince(started)}`);
}

/** Makes what the packages run, and their declarations. */
export function build(node) {
  bundle(node);
  buildWith(node, [tool("typescript/bin/tsc"), "-b", "tsconfig.build.json"]);
}

function buildWith(node, args) {
  const result = runQuietly(node, args, environment(node));
  if (!result.ok) stop("the build failed", 1, result.output);
}

/** Runs a program on this terminal and exits with its exit code or signal. */
export function become(node, args, env = environment(node)) {
  const child = spawn(node, args, { stdio: "inherit", env });
  const onTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
  for (const name of ["SIGINT", "SIGHUP", "SIGTERM"]) {
    process.on(name, () => {
      // The terminal signals the child itself; forwarding would look like a second Ctrl-C.
      if (name === "SIGTERM" || !onTerminal) child.kill(name);
    });
  }
  if (process.env.npm_lifecycle_event !== undefined) endWithParent(child);
  child.on("error", (error) => stop(error.message, 1));
  child.on("exit", (code, signal) => {
    process.exitCode = code ?? 128 + constants.signals[signal];
  });
}

/** A signal to npm ends its shell but does not reach this process: a changed parent process shows it. */
function endWithParent(child) {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    child.kill("SIGTERM");
  }, 250);
  timer.unref();
}

/** The environment of child processes: the tools and the chosen Node come first on PATH. */
export function environment(node) {
  const path = [dirname(node), join(modules, ".bin"), process.env.PATH ?? ""].join(delimiter);
  return { ...process.env, PATH: path };
}

/** The environment of the user: npm puts this folder's tools on PATH, which stages would run instead of the project's own. */
export function usersEnvironment() {
  const added = new Set(foldersAbove(root).map((folder) => join(folder, "node_modules", ".bin")));
  const isAdded = (path) => added.has(path) || path.endsWith(join("@npmcli", "run-script", "lib", "node-gyp-bin"));
  const path = (process.env.PATH ?? "").split(delimiter).filter((folder) => !isAdded(folder));
  return { ...process.env, PATH: path.join(delimiter) };
}

function foldersAbove(folder) {
  return folder === dirname(folder) ? [folder] : [folder, ...foldersAbove(dirname(folder))];
}

/** The JavaScript file of an installed tool, to run with the chosen Node. */
export function tool(path) {
  return join(modules, path);
}

export function secondsSince(started) {
  return `${((Date.now() - started) / 1000).toFixed(1)} s`;
}

export function isTooOld(version) {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
  const [needMajor = 0, needMinor = 0, needPatch = 0] = neededNode.split(".").map(Number);
  if (major !== needMajor) return major < needMajor;
  if (minor !== needMinor) return minor < needMinor;
  return patch < needPatch;
}

function findNode() {
  if (!isTooOld(process.versions.node)) return process.execPath;
  const carried = join(modules, carriedNode, "bin", "node");
  return existsSync(carried) ? carried : undefined;
}

/** Identifies the state of node_modules. Includes the platform, since a folder can be mounted on another machine. */
function stampOfManifests() {
  const packages = readdirSync(join(root, "packages")).sort();
  const files = [
    "package.json",
    "pnpm-lock.yaml",
    "pnpm-workspace.yaml",
    ".pnpmfile.mjs",
    ...packages.map((name) => join("packages", name, "package.json")),
  ];
  const hash = createHash("sha256").update(`${process.platform} ${process.arch}`);
  for (const file of files) {
    const path = join(root, file);
    if (existsSync(path)) hash.update(`\0${file}\0`).update(readFileSync(path));
  }
  return hash.digest("hex");
}

function readStamp() {
  return existsSync(stampFile) ? readFileSync(stampFile, "utf8") : undefined;
}

function runInstall(stamp) {
  const started = Date.now();
  say("installing the dependencies (a minute at most, once) …");
  // An interrupted installation must not leave a valid stamp; and pnpm keeps skipping the Node package in a folder that it
  // once filled under a newer Node.
  rmSync(findNode() === undefined ? modules : stampFile, { recursive: true, force: true });
  pnpm(["install", "--frozen-lockfile", "--config.confirmModulesPurge=false"]);
  writeFileSync(stampFile, stamp);
  say(`installed in ${secondsSince(started)}`);
}

/** Runs pnpm in the repository. */
export function pnpm(args) {
  const result = runQuietly("npx", ["--yes", manifest.packageManager, ...args], process.env);
  if (!result.ok) stop(`this failed: npx ${manifest.packageManager} ${args.join(" ")}`, environmentExit, result.output);
}

function runQuietly(command, args, env) {
  const result = spawnSync(command, args, {
    cwd: root,
    env,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    stdio: ["ignore", "pipe", "pipe"],
    // On Windows npx is a script, which needs a shell; these arguments need no quoting.
    shell: process.platform === "win32" && command === "npx",
  });
  const output = [result.stdout, result.stderr, result.error?.message].filter(Boolean).join("\n");
  return { ok: result.status === 0, output };
}

function stopForOldNode() {
  const need = `Sluice needs ${neededNode} or newer: install it from https://nodejs.org`;
  stop(`this is Node ${process.versions.node}, ${need}`, environmentExit);
}

/** Writes to stderr: stdout belongs to the command. */
function say(line) {
  process.stderr.write(`sluice: ${line}\n`);
}

function stop(line, exitCode, log = "") {
  if (log !== "") process.stderr.write(`${log.trimEnd()}\n`);
  say(line);
  process.exit(exitCode);
}
