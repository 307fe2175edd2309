import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { BARE_ENV, until } from "../support/mcp.ts";
import { isAlive } from "../support/survivors.ts";
import { tempFolder } from "../support/tools.ts";

const fixtures = join(import.meta.dirname, "../fixtures/mcp");

test.each(["exits", "throws", "closes"])(
  "of a program that %s nothing of a server is left, and it does not hang",
  async (how) => {
    const folder = tempFolder();
    const log = folder.put("log", "");
    const flags = ["--conditions=@sluice/source", "--disable-warning=ExperimentalWarning"];
    const program = [join(fixtures, "exits.ts"), how, join(fixtures, "server.ts"), log];
    const { stdout, status } = spawnSync(process.execPath, [...flags, ...program], {
      cwd: folder.root,
      env: BARE_ENV,
      encoding: "utf8",
      timeout: 20_000,
    });
    expect({ stdout, status }).toEqual({ stdout: "completed\n", status: how === "throws" ? 1 : 0 });
    const pids = [...readFileSync(log, "utf8").matchAll(/^pid (\d+)$/gm)].map(([, pid]) => Number(pid));
    expect(pids).toHaveLength(3);
    await until(() => !pids.some(isAlive), "the end of all of them");
  },
);
