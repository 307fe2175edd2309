import { execFile } from "node:child_process";
import { sqliteHost } from "@sluice/sqlite";
import { createSession } from "@sluice/stages";
import { expect, onTestFinished, test } from "vitest";
import { spender, spending } from "../support/spender.ts";
import { nodeArguments } from "../support/sqlite-process.ts";
import { scratch } from "../support/sqlite-store.ts";

test("what a kind of state spent, and what it had reserved when its process was killed, counts in the next process", async () => {
  const folder = scratch();
  const signal = await new Promise((resolve) => {
    execFile(process.execPath, nodeArguments("spender.ts", folder), (error) => resolve(error?.signal));
  });
  expect(signal).toBe("SIGKILL");
  const called: string[] = [];
  const host = sqliteHost(folder);
  const session = createSession({ host, executors: [spender((id) => called.push(id))], sandbox: "off" });
  onTestFinished(async () => {
    await session.close();
    await host.close();
  });
  const [{ runId } = { runId: "" }] = await host.list();
  const result = await session.resume(spending, runId);
  const refused = "the run may use 100 tokens: 80 used, and calls in flight and the next one may use 40 more";
  expect(result).toMatchObject({ status: "completed", output: ["spent", "lost", refused] });
  expect(called).toEqual([]);
});
