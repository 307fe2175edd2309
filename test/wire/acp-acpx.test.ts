import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { deskEnv } from "../support/acp-client.ts";
import { call, type Desk, desk, finishes, PIPELINES, printed, turn } from "../support/command.ts";

const root = join(import.meta.dirname, "../..");
const ACPX = join(root, "node_modules/acpx/dist/cli.js");
const SLUICE = join(root, "packages/cli/bin/sluice.js");

/** A real client that other projects use, in a process of its own. */
async function acpx(here: Desk, script: string, args: readonly string[]) {
  const agent = [process.execPath, SLUICE, "acp", `${PIPELINES}#single`, "--model", script].join(" ");
  const child = spawn(process.execPath, [ACPX, "--agent", agent, "--cwd", here.folder, ...args], {
    cwd: here.folder,
    env: deskEnv(here),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  await once(child, "close");
  return { code: child.exitCode, output };
}

const writes = {
  work: [
    { text: "I write.", calls: [call("Write", { file_path: "one.txt", content: "granted\n" })] },
    turn(call("Edit", { file_path: "one.txt", old_string: "granted", new_string: "changed" })),
    finishes("all done"),
  ],
};

test("acpx --approve-all runs a pipeline to its end, with each call approved for itself", async () => {
  const here = desk();
  const { code, output } = await acpx(here, here.script(writes), ["--approve-all", "exec", "write it"]);
  expect(code).toBe(0);
  expect(readFileSync(join(here.folder, "one.txt"), "utf8")).toBe("changed\n");
  expect(output).toContain("I write.");
  expect(output).toContain("[tool] Write one.txt (completed)");
  expect(output).toContain("[completed] work");
  expect(output).toContain("[done] end_turn");
  const [, runId = ""] = /Run (r\w+) completed/.exec(output) ?? [];
  expect((await here.sluice(["audit", runId, "--verify"])).code).toBe(0);
});

test("acpx --deny-all sees every call denied, and the run goes on", async () => {
  const here = desk();
  const { code, output } = await acpx(here, here.script(writes), ["--deny-all", "exec", "write it"]);
  // The code with which acpx reports denied permissions.
  expect(code).toBe(5);
  expect(existsSync(join(here.folder, "one.txt"))).toBe(false);
  expect(output).toContain("[tool] Write one.txt (failed)");
  const [, runId = ""] = /Run (r\w+) completed/.exec(output) ?? [];
  expect(printed(await here.sluice(["show", runId, "--output-format", "json"])).status).toBe("completed");
});

test("acpx shows why a prompt is refused", async () => {
  const here = desk();
  const { code, output } = await acpx(here, here.script(writes), ["--approve-all", "exec", "/nothing here"]);
  expect(code).not.toBe(0);
  expect(output).toContain("there is no pipeline nothing");
});
