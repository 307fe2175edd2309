import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { methods } from "@agentclientprotocol/sdk";
import { field, type Json, parseJson } from "@sluice/core";
import { expect, onTestFinished, test } from "vitest";
import { deskEnv, openEditor } from "../support/acp-client.ts";
import { call, type Desk, desk, finishes, PIPELINES, turn } from "../support/command.ts";

const BIN = join(import.meta.dirname, "../../packages/cli/bin/sluice.js");
const single = `${PIPELINES}#single`;
const writes = { work: [turn(call("Write", { file_path: "one.txt", content: "x" })), finishes()] };

/** Writes these lines to `sluice acp`, closes its stdin, and returns what it answered. */
async function answersTo(here: Desk, lines: readonly (string | Buffer)[]) {
  const child = spawn(process.execPath, [BIN, "acp", single, "--model", here.script(writes)], {
    cwd: here.folder,
    env: deskEnv(here),
    stdio: ["pipe", "pipe", "ignore"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stdin.on("error", () => undefined); // the agent may have refused the rest
  for (const line of lines) child.stdin.write(line);
  child.stdin.end();
  await once(child, "close");
  const answers = stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line): Json => {
      const json = parseJson(line);
      if (!json.ok) throw new Error(`no JSON: ${line.slice(0, 200)}`);
      return json.value;
    });
  return { code: child.exitCode, answers };
}

const request = (id: number, method: string, params: Json): string =>
  `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`;
const initialize = request(1, "initialize", { protocolVersion: 1, clientCapabilities: {} });

test("what is no request of the protocol is answered with an error, and the next request is served", async () => {
  const here = desk();
  const { code, answers } = await answersTo(here, [
    "not json\n",
    "{}\n",
    "[]\n",
    "null\n",
    '{"jsonrpc":"2.0","id":7}\n',
    Buffer.from([0xff, 0xfe, 0x0a]),
    `${"[".repeat(50_000)}\n`,
    request(20, "fs/read_text_file", { path: "/etc/passwd" }),
    request(21, "session/prompt", { sessionId: "none", prompt: [{ type: "text", text: "x" }] }),
    request(22, "session/prompt", { sessionId: 5, prompt: "x" }),
    request(23, "session/new", { cwd: "relative", mcpServers: [] }),
    request(24, "session/new", { cwd: "/no/such/folder", mcpServers: [] }),
    request(25, "session/load", { sessionId: "../../../etc/passwd", cwd: here.folder, mcpServers: [] }),
    request(26, "session/set_mode", { sessionId: "none", modeId: "yolo" }),
    request(27, "session/request_permission", { sessionId: "none", options: [] }),
    initialize,
  ]);
  const errors = answers.filter((answer) => field(answer, "error") !== undefined).map((answer) => field(answer, "id"));
  expect(errors).toEqual(expect.arrayContaining([20, 21, 22, 23, 24, 25, 26, 27]));
  const served = answers.find((answer) => field(answer, "id") === 1);
  expect(field(field(served, "result"), "protocolVersion")).toBe(1);
  expect(code).toBe(0);
  expect(existsSync(here.store)).toBe(false);
});

test("a line without end is refused: the agent ends", async () => {
  const here = desk();
  const { answers } = await answersTo(here, [initialize, "x".repeat(17 * 1024 * 1024)]);
  expect(field(answers[0], "id")).toBe(1);
});

test("an answer to a request that was never made approves nothing", async () => {
  const here = desk();
  const editor = await openEditor(here, [single, "--model", here.script(writes)], { choose: () => undefined });
  const sessionId = await editor.session();
  const prompted = editor.prompt(sessionId, "write");
  const result = { outcome: { outcome: "selected", optionId: "allow" } };
  for (const id of ["1x", 99, null]) editor.child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
  await editor.until(() => editor.permissions.length > 0);
  await editor.agent.notify(methods.agent.session.cancel, { sessionId });
  expect(await prompted).toBe("cancelled");
  expect(existsSync(join(here.folder, "one.txt"))).toBe(false);
});

test("sessions of two folders run at the same time, and neither answers for the other", async () => {
  const here = desk();
  const other = join(here.folder, "other");
  mkdirSync(other);
  const asked: string[] = [];
  const options = {
    choose: (permission: { readonly sessionId: string }) => {
      asked.push(permission.sessionId);
      return permission.sessionId === first ? "allow" : "deny";
    },
  };
  const editor = await openEditor(here, [single, "--model", here.script(writes)], options);
  const first = await editor.session();
  const { sessionId: second } = await editor.agent.request(methods.agent.session.new, { cwd: other, mcpServers: [] });
  expect(await Promise.all([editor.prompt(first, "a"), editor.prompt(second, "b")])).toEqual(["end_turn", "end_turn"]);
  expect(asked.toSorted()).toEqual([first, second].toSorted());
  expect([existsSync(join(here.folder, "one.txt")), existsSync(join(other, "one.txt"))]).toEqual([true, false]);
});

test("a signal suspends the run, and the command that the session names continues it", async () => {
  const here = desk();
  const editor = await openEditor(here, [single, "--model", here.script(writes)], { choose: () => undefined });
  const sessionId = await editor.session();
  const lost = editor.prompt(sessionId, "write").catch(() => "lost");
  await editor.until(() => editor.permissions.length > 0);
  editor.child.kill("SIGTERM");
  await once(editor.child, "close");
  expect([editor.child.exitCode, await lost]).toEqual([143, "lost"]);
  expect((await here.sluice(["runs"])).stdout).toContain("suspended");
});
