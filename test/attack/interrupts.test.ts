import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Json } from "@sluice/core";
import type { ScriptedTurn } from "@sluice/stages";
import { expect, test } from "vitest";
import { mayHoldPaths, readPathScope } from "../../packages/core/src/definition/patterns/path-scope.ts";
import { sendJson, startHttpServer } from "../support/mcp-http.ts";
import { dataOf, eventsOf, session, type TestSessionOptions } from "../support/run-kit.ts";
import { talker } from "../support/talker.ts";
import { tempFolder } from "../support/tools.ts";
import { loadDocument } from "../support/workflows.ts";

// A watched file that changes without its interrupt.

const call = (tool: string, input: Json): ScriptedTurn => ({ calls: [{ tool, input }] });
const bash = (command: string): ScriptedTurn => call("Bash", { command });
const sends = (event: string): ScriptedTurn => call("transition", { event });
/** Writes as a program does, so that no word of the line names the file as one that is written. */
const script = (file: string): string => `node -e 'require("fs").writeFileSync("${file}", "x")'`;

const BUILT_IN = ["Read", "Write", "Edit", "Bash"];
const workflow = (tools: readonly string[]) => ({
  id: "watched",
  initial: "working",
  states: {
    working: { allowed_tools: tools, on: { DONE: "complete", FORK: parting() } },
    checking: { allowed_tools: [], on: { OK: "$return" } },
    one: { allowed_tools: BUILT_IN, on: { DONE: "complete" } },
    two: { allowed_tools: BUILT_IN, on: { DONE: "complete" } },
    complete: { type: "final" },
  },
  interrupts: { schema: { trigger: { file_pattern: "db/**/*.sql" }, target: "checking" } },
});

function parting() {
  const branches = { one: { initial: "one", terminal: "complete" }, two: { initial: "two", terminal: "complete" } };
  return { fork: { branches, on_complete: "complete" } };
}

/** The files of each interrupt that was started while a workflow was walked. */
async function interruptsOf(
  turns: Readonly<Record<string, readonly ScriptedTurn[]>>,
  tools = BUILT_IN,
  options: (root: string) => TestSessionOptions = () => ({}),
) {
  const { pipeline, diagnostics } = await loadDocument(workflow(tools));
  if (pipeline === undefined) throw new Error(JSON.stringify(diagnostics));
  const { root } = tempFolder();
  mkdirSync(join(root, "db"));
  const next = new Map<string, number>();
  const model = talker(({ stage }) => {
    const at = next.get(stage) ?? 0;
    next.set(stage, at + 1);
    return stage === "checking" ? sends("OK") : (turns[stage]?.[at] ?? {});
  });
  const env = { PATH: process.env.PATH ?? "/usr/bin:/bin" };
  const live = session({ model, cwd: root, env, sandbox: "off", maxParallel: 2, ...options(root) });
  const result = await live.run(pipeline, { task: "t" });
  expect(result).toMatchObject({ status: "completed" });
  return dataOf(await eventsOf(live.host, result.runId), "interrupt.started").map(({ files }) => files);
}

test("a file that git ignores starts its interrupt, also if the agent had git ignore it", async () => {
  const turns = [bash("echo 'db/' > .gitignore"), bash(script("db/new.sql")), bash("rm db/new.sql"), sends("DONE")];
  expect(await interruptsOf({ working: turns })).toEqual([["db/new.sql"], ["db/new.sql"]]);
});

test("a command of one branch that changes a file while the other branch works starts its interrupt", async () => {
  const waits = "until [ -e db/new.sql ]; do sleep 0.05; done";
  expect(
    await interruptsOf({
      working: [sends("FORK")],
      one: [bash(waits), sends("DONE")],
      two: [bash(script("db/new.sql")), sends("DONE")],
    }),
  ).toContainEqual(["db/new.sql"]);
});

test("a file that an MCP server changes during a call starts its interrupt", async () => {
  let folder = "";
  const server = await startHttpServer(({ message: { id = null, method } }, response) => {
    const tool = { name: "act", description: "Acts.", inputSchema: { type: "object" } };
    if (method === "tools/list") return sendJson(response, { jsonrpc: "2.0", id, result: { tools: [tool] } });
    if (method !== "tools/call") return false;
    writeFileSync(join(folder, "db", "new.sql"), "x");
    return sendJson(response, { jsonrpc: "2.0", id, result: { content: [{ type: "text", text: "done" }] } });
  });
  const fired = await interruptsOf({ working: [call("mcp__s__act", {}), sends("DONE")] }, ["mcp__s__act"], (root) => {
    folder = root;
    return { mcpServers: { s: { url: server.url } } };
  });
  expect(fired).toEqual([["db/new.sql"]]);
});

test.each([
  ["db/**/*.sql", ["db/a.sql", "db/deep/er/a.sql"], ["src", "d"]],
  ["**/*.sql", ["a.sql", "x/y/z/a.sql"], []],
  ["db/*/up.sql", ["db/one/up.sql"], ["db/one/more", "src"]],
  ["{db,sql}/**", ["db/a", "sql/b/c"], ["src"]],
  ["a.sql", ["a.sql"], ["a.sql", "db"]],
])("the folders in which %s is looked for are all around its files, and no others", (pattern, files, others) => {
  const scope = readPathScope(pattern);
  if (!scope.ok) throw new Error(scope.message);
  const mayHold = mayHoldPaths(pattern);
  for (const file of files) {
    expect([file, scope.value(file)]).toEqual([file, true]);
    const names = file.split("/");
    const around = names.map((_, depth) => names.slice(0, depth).join("/"));
    expect(around.filter((folder) => !mayHold(folder))).toEqual([]);
  }
  expect(others.filter(mayHold)).toEqual([]);
});

test("a file that is named after a secret starts its interrupt without it", async () => {
  const key = "K3y-0f-the-c4stle-Zq81";
  const write = "require('fs').writeFileSync('db/' + require('fs').readFileSync('name', 'utf8') + '.sql', 'x')";
  const files = await interruptsOf({ working: [bash(`node -e "${write}"`), sends("DONE")] }, BUILT_IN, (root) => {
    writeFileSync(join(root, "name"), key);
    return { env: { PATH: process.env.PATH ?? "/usr/bin:/bin", CASTLE_TOKEN: key } };
  });
  expect(files).toEqual([["db/[redacted:CASTLE_TOKEN].sql"]]);
});
