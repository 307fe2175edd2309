// One walk of a real host through a workflow of three phases: a denied call, a limit, an interrupt and a granted call.
import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { HEADLESS, ownServerName, startScriptedModel } from "@sluice/gateway";

const BIN = join(import.meta.dirname, "../../packages/cli/bin/sluice.js");
const LIMIT_MS = 150_000;

/** Walks one host in one class. Returns the checks: what should hold, and whether it does. */
export async function walk(host, mode, bin) {
  const base = folderOf(host);
  const desk = deskOf(base, bin);
  const model = await startScriptedModel({ main: steps(host, mode, desk) });
  try {
    const headless = HEADLESS[host];
    for (const [path, content] of Object.entries(headless.settings?.(model.url) ?? {}))
      put(join(desk.home, path), content);
    const args = headless.args("main", model.url);
    const run = desk.start(
      [
        "gateway",
        "run",
        host,
        "--class",
        mode,
        "--workflow",
        "three-phases",
        "--trust",
        "--sandbox",
        "off",
        "--task",
        "walk",
        "--",
      ].concat(headless.command === undefined ? args : [headless.command, ...args]),
      headless.env(model.url, desk.home),
    );
    const answered = await answerRequests(desk, run);
    const ended = await run.ended;
    const runs = await desk.json(["runs", "--output-format", "json"]);
    const runId = runs.runs?.[0]?.runId;
    const shown = runId === undefined ? {} : await desk.json(["show", runId, "--output-format", "json"]);
    const audit = runId === undefined ? { code: 1 } : await desk.sluice(["audit", runId, "--verify"]);
    const said = (model.requests.at(-1)?.messages ?? []).flatMap((one) => (one.role === "result" ? [one.text] : []));
    const has = (path) => existsSync(join(desk.workspace, path));
    const checks = [
      ["the host starts in the class", new RegExp(`in class ${mode}`).test(ended.stderr)],
      ["the model of the host was asked", model.requests.length > 0],
      ["a denied call does not run", answered.denied > 0 && !has("denied.txt")],
      ["a call over a limit does not run", !has("long.txt") && said.some((text) => /limit|lines/i.test(text))],
      [
        "a changed file interrupts the phase",
        has("db/a.sql") && said.some((text) => /Review the schema|started the interrupt/.test(text)),
      ],
      ["a granted call runs", answered.granted > 0 && has("granted.txt")],
      ["the run is completed", runs.runs?.[0]?.status === "completed"],
      ["the journal is unchanged", audit.code === 0],
      ["the record names the host", JSON.stringify(shown).includes(host)],
    ];
    return { checks, log: { ended, said, answered, offered: model.requests[0]?.tools, runs } };
  } finally {
    await model.close();
    rmSync(base, { recursive: true, force: true });
  }
}

/** What the model does. In class hard it uses the gateway's tools, else the host's own. */
function steps(host, mode, { workspace, state }) {
  const { calls, gatewayTool } = HEADLESS[host];
  const server = ownServerName(state, workspace);
  const ours = (tool, input) => ({ calls: [{ name: gatewayTool(server, tool), input }] });
  const write = (path, content) =>
    mode === "hard"
      ? ours("Write", { file_path: path, content })
      : { calls: [calls.write(join(workspace, path), content)] };
  const leave = (event) => ours("transition", { event });
  return [
    ours("get_state", {}),
    write("denied.txt", "x\n"),
    leave("READY"),
    write("long.txt", "1\n2\n3\n4\n5\n"),
    write("db/a.sql", "select 1;\n"),
    leave("OK"),
    leave("EDITED"),
    write("granted.txt", "x\n"),
    leave("GOOD"),
    { text: "done" },
  ];
}

/** Answers as a person would, in another process: what names denied.txt is denied, the rest is granted. */
async function answerRequests(desk, run) {
  const answered = { denied: 0, granted: 0 };
  while (!run.isOver()) {
    await pause(400);
    const { runs = [] } = await desk.json(["runs", "--output-format", "json"]);
    for (const { runId } of runs) {
      const { requests = [] } = await desk.json(["show", runId, "--output-format", "json"]);
      for (const request of requests) {
        const isDenied = JSON.stringify(request).includes("denied.txt");
        const answer = isDenied ? ["deny", "--reason", "look first"] : ["approve"];
        const { code } = await desk.sluice(["answer", runId, request.requestId, "--digest", request.digest, ...answer]);
        if (code === 0) answered[isDenied ? "denied" : "granted"] += 1;
      }
    }
  }
  return answered;
}

function folderOf(host) {
  const parent = join(process.env.XDG_STATE_HOME ?? join(homedir(), ".local", "state"), "sluice-hosts-lab");
  mkdirSync(parent, { recursive: true });
  return realpathSync(mkdtempSync(join(parent, `${host}-`)));
}

/** A workspace, a home and a state of their own. */
function deskOf(base, bin) {
  const [workspace, home] = ["work", "home"].map((name) => join(base, name));
  for (const folder of [workspace, home]) mkdirSync(folder);
  put(join(workspace, "a.txt"), "one\n");
  // Copilot makes no folders.
  mkdirSync(join(workspace, "db"));
  mkdirSync(join(workspace, ".sluice", "workflows"), { recursive: true });
  cpSync(join(import.meta.dirname, "three-phases.json"), join(workspace, ".sluice", "workflows", "three-phases.json"));
  const env = {
    PATH: `${bin}:${dirname(process.execPath)}:${process.env.PATH}`,
    HOME: home,
    XDG_STATE_HOME: join(base, "state"),
    XDG_CACHE_HOME: process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"),
    TERM: "dumb",
  };
  const start = (args, more = {}) => {
    const child = spawn(process.execPath, [BIN, ...args], {
      cwd: workspace,
      env: { ...env, ...more },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    const texts = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"]) child[name].on("data", (chunk) => (texts[name] += chunk));
    let over = false;
    const timer = setTimeout(() => process.kill(-child.pid, "SIGKILL"), LIMIT_MS);
    const ended = new Promise((resolve) => {
      child.once("close", (code) => {
        over = true;
        clearTimeout(timer);
        resolve({ code, ...texts });
      });
    });
    return { ended, isOver: () => over };
  };
  const sluice = (args) => start(args).ended;
  return {
    workspace,
    home,
    state: join(base, "state", "sluice"),
    start,
    sluice,
    json: async (args) => {
      const { stdout } = await sluice(args);
      return stdout.trim() === "" ? {} : JSON.parse(stdout);
    },
  };
}

function put(path, content) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
}
