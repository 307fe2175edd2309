import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { BARE_ENV, until } from "../support/mcp.ts";
import { isAlive } from "../support/survivors.ts";
import { tempFolder } from "../support/tools.ts";

const fixtures = join(import.meta.dirname, "../fixtures/mcp");

function run(how: string, flags: readonly string[] = []) {
  const folder = tempFolder();
  const log = folder.put("log", "");
  const always = ["--conditions=@sluice/source", "--disable-warning=ExperimentalWarning"];
  const program = [join(fixtures, "exits.ts"), how, join(fixtures, "server.ts"), log];
  const { stdout, stderr, status } = spawnSync(process.execPath, [...always, ...flags, ...program], {
    cwd: folder.root,
    env: BARE_ENV,
    encoding: "utf8",
    timeout: 90_000,
  });
  return { stdout, stderr, status, noted: readFileSync(log, "utf8") };
}

test.each(["exits", "throws", "closes"])(
  "of a program that %s nothing of a server is left, and it does not hang",
  async (how) => {
    const { stdout, status, noted } = run(how);
    expect({ stdout, status }).toEqual({ stdout: "completed\n", status: how === "throws" ? 1 : 0 });
    const pids = [...noted.matchAll(/^pid (\d+)$/gm)].map(([, pid]) => Number(pid));
    expect(pids).toHaveLength(3);
    await until(() => !pids.some(isAlive), "the end of all of them");
  },
);

test("without the package that speaks to servers, a run that needs one says what to install, and nothing starts", () => {
  const { stdout, stderr, status, noted } = run("closes", ["--import", join(fixtures, "without-package.mjs")]);
  expect({ stdout, status, noted }).toEqual({ stdout: "", status: 1, noted: "" });
  expect(stderr).toContain(
    "MCP servers need the package @ai-sdk/mcp, which is not installed; run: npm install @ai-sdk/mcp",
  );
  expect(stderr).toContain("mcp_not_installed");
});
