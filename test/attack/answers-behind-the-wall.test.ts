import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineTool, done, pipeline, stage } from "@sluice/core";
import { sqliteHost } from "@sluice/sqlite";
import { createSession, scriptedModel } from "@sluice/stages";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { createSandbox } from "../../packages/stages/src/sandbox/sandbox.ts";
import { ANSWERS } from "../fixtures/shell/answers.ts";
import { hasWall } from "../support/walls.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** A run of this process that waits for a grant, in a workspace that holds its store. */
async function waitingRun() {
  const top = realpathSync(mkdtempSync(join(tmpdir(), "sluice-answers-")));
  onTestFinished(() => rmSync(top, { recursive: true, force: true }));
  const root = join(top, "work");
  mkdirSync(root);
  const store = join(root, ".sluice/store");
  let ran = 0;
  const deploy = defineTool({
    name: "Deploy",
    description: "Deploys.",
    input: z.object({}),
    effect: "write",
    subjects: () => [],
    execute: async () => {
      ran += 1;
      return { ok: true, output: "deployed" };
    },
  });
  const work = stage({
    prompt: "Deploy it.",
    allowedTools: ["Bash", "Edit"],
    completionTool: "finish",
    completionSchema: z.object({}),
    turnCap: 3,
  });
  const asks = pipeline({
    id: "asks",
    input: z.object({}),
    stages: { work },
    initial: "work",
    next: { work: () => done(null) },
  });
  const turns = [{ calls: [{ tool: "Deploy", input: {} }] }, { calls: [{ tool: "finish", input: {} }] }];
  const session = createSession({
    model: scriptedModel({ stages: { work: turns } }),
    host: () => sqliteHost(store),
    tools: [deploy],
    cwd: root,
    wait: true,
  });
  onTestFinished(() => session.close());
  const run = session.start(asks, {});
  run.then(
    () => undefined,
    () => undefined,
  );
  const asked = async () => (await session.host.requests())[0];
  await expect.poll(asked).toBeDefined();
  return { top, root, store, session, run, asked, deployed: () => ran };
}

test.skipIf(!hasWall())(
  `of ${ANSWERS.length} ways in which a process may answer, cancel or fork its own run, none does anything behind the wall`,
  async () => {
    const { top, root, store, session, run, asked, deployed } = await waitingRun();
    const request = await asked();
    if (request === undefined) throw new Error("nothing is asked");
    const sandbox = createSandbox({ mode: "require", root, absent: () => [store] });
    await sandbox.prove();
    // Sluice itself is there to be called, as where it is installed.
    const reads = ["", join(ROOT, "packages"), join(ROOT, "node_modules")];
    const writes = { root, reads, writes: [""], scratch: [], network: false, absent: [store], readOnly: [] };
    const env = { PATH: process.env.PATH ?? "", HOME: top, SLUICE_RUN: run.runId };
    const before = (await session.host.get(run.runId))?.head;
    const stored = readFileSync(join(store, "journal.db"));
    for (const { name, line } of ANSWERS) {
      const filled = line
        .replaceAll("@CLI@", join(ROOT, "packages/cli/bin/sluice.js"))
        .replaceAll("@NODE@", process.execPath)
        .replaceAll("@MODULES@", join(ROOT, "node_modules"))
        .replaceAll("@RUN@", run.runId)
        .replaceAll("@REQ@", request.requestId)
        .replaceAll("@DIGEST@", request.digest)
        .replaceAll("@OWNER@", String(process.pid))
        .replaceAll("@@/", `${top}/`)
        // What it waits for is over with its call.
        .replaceAll(/\bsleep [0-9.]+/g, "sleep 0.1");
      await sandbox.run(
        {
          file: "/bin/bash",
          args: ["--noprofile", "--norc", "-c", "--", filled],
          cwd: root,
          env,
          signal: AbortSignal.timeout(60_000),
          timeoutMs: 5_000,
          stdout: () => true,
          stderr: () => true,
        },
        writes,
      );
      expect([name, deployed(), (await asked())?.requestId]).toEqual([name, 0, request.requestId]);
    }
    expect((await session.host.get(run.runId))?.head).toBe(before);
    expect(await session.host.list()).toHaveLength(1);
    expect(readFileSync(join(store, "journal.db"))).toEqual(stored);
  },
);
