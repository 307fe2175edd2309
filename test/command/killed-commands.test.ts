import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { call, type Desk, desk, finishes, turn } from "../support/command.ts";
import { putRecordText } from "../support/left-records.ts";
import { lookAt } from "../support/look-at.ts";
import { hasWall } from "../support/walls.ts";

/** Its run is due again as soon as its process is gone, since it has slept. */
const PIPELINE = `import { done, pipeline, stage, to } from "@sluice/core";
import { timer } from "@sluice/stages";
import { kit } from "kit";
import { z } from "zod";
const work = stage({ prompt: kit, allowedTools: ["Write", "Bash"], completionTool: "finish", completionSchema: z.object({ text: z.string() }), turnCap: 5 });
export default pipeline({ id: "p", input: z.object({ task: z.string() }), stages: { wait: timer({ for: "1ms" }), work }, initial: "wait", next: { wait: () => to("work"), work: ({ output }) => done(output.text) } });
`;
const TIMER = `import { done, pipeline } from "@sluice/core";
import { timer } from "@sluice/stages";
import { z } from "zod";
export default pipeline({ id: "q", input: z.object({ task: z.string() }), stages: { wait: timer({ for: "1s" }) }, initial: "wait", next: { wait: () => done("ok") } });
`;
const PACKAGE = '{ "name": "kit", "version": "1.0.0", "type": "module", "exports": "./index.js" }';
const MODULE = 'export const kit = "Work.";\n';

/** Leaves another package where the pipeline looks for one. */
const PLANTS = "mkdir flows/node_modules; cp -r planted flows/node_modules/kit";

/** A workspace whose code imports a package, and another package of this name that nothing imports. */
function deskWithPackage(): Desk {
  const here = desk();
  here.write("node_modules/kit/package.json", PACKAGE);
  here.write("node_modules/kit/index.js", MODULE);
  here.write("flows/p.ts", PIPELINE);
  here.write("planted/package.json", PACKAGE);
  here.write("planted/index.js", `console.error("planted code was loaded"); ${MODULE}`);
  return here;
}

/** Starts a run and kills its process while a command works that has left something. Returns the run's id. */
async function killedRun(here: Desk, leave: string, store = here.store): Promise<string> {
  const command = `${leave}; touch made; until [ -e never ]; do sleep 0.1; done`;
  const model = here.script({ work: [turn(call("Bash", { command })), finishes()] });
  const flags = ["--trust", "--sandbox", "require", "--model", model, "--store", store];
  const run = here.start(["run", "./flows/p.ts", "task", ...flags]);
  await expect.poll(() => existsSync(join(here.folder, "made"))).toBe(true);
  run.child.kill("SIGKILL");
  await run.ended;
  const runs = await lookAt(store, (host) => host.list());
  return runs.find(({ end }) => end === undefined)?.runId ?? "";
}

test.skipIf(!hasWall())(
  "what a command leaves that was running when Sluice was killed is moved away before a resume loads code (skipped where no wall can be built)",
  async () => {
    const here = deskWithPackage();
    const runId = await killedRun(here, PLANTS);
    const resumed = await here.sluice(["resume", runId, "--headless"]);
    expect(resumed.code).toBe(0);
    expect(resumed.stderr).not.toContain("planted code");
    expect(resumed.stderr).toMatch(
      /^sluice: a command whose process was killed left \S+\/flows\/node_modules; it was moved to /m,
    );
    expect(readdirSync(join(here.folder, "flows"))).toEqual(["p.ts"]);
  },
);

test.skipIf(!hasWall())(
  "what a killed command leaves is moved away before sluice doctor loads a config, which imports it, and starts a server from it (skipped where no wall can be built)",
  async () => {
    const here = deskWithPackage();
    const servers = { built: { command: process.execPath, args: ["dist/server.cjs"] } };
    here.write("lib/own.mjs", 'export { kit } from "kit";\n');
    here.write(
      "sluice.config.mjs",
      `import "./lib/own.mjs";\nexport default { mcpServers: ${JSON.stringify(servers)} };\n`,
    );
    await killedRun(
      here,
      "mkdir dist lib/node_modules; cp -r planted lib/node_modules/kit; cp planted/index.js dist/server.cjs",
    );
    const { stdout, stderr } = await here.sluice(["doctor"]);
    expect(stdout).toMatch(/^config +ok /m);
    expect(stdout).toMatch(/^mcp built +missing .*Cannot find module \S+dist\/server\.cjs/ms);
    expect(stdout + stderr).not.toContain("planted code");
    for (const left of ["dist/server.cjs", "lib/node_modules"])
      expect(stderr).toContain(`a command whose process was killed left ${join(here.folder, left)}; it was moved to `);
  },
);

test.skipIf(!hasWall())(
  "sluice wake moves away what a killed command left before it loads the run's pipeline, also in another folder by --store (skipped where no wall can be built)",
  async () => {
    const here = deskWithPackage();
    const store = ["--store", join(here.folder, "../runs")];
    const runId = await killedRun(here, PLANTS, store[1]);
    const woken = await here.sluice(["wake", ...store], { cwd: join(here.folder, "..") });
    expect(woken.stdout).toContain(`${runId}  completed`);
    expect(woken.stderr).toContain("a command whose process was killed left ");
    expect(woken.stderr).not.toContain("planted code");
  },
);

test.skipIf(!hasWall())(
  "sluice serve moves away what a killed command left before it loads another pipeline of a folder that it knows (skipped where no wall can be built)",
  async () => {
    const here = deskWithPackage();
    here.write("flows/q.ts", TIMER);
    const worker = here.start(["serve", "--no-metrics", "--json", "--poll", "1s"]);
    await worker.said("stdout", /"started"/);
    await here.sluice(["run", "./flows/q.ts", "task", "--trust", "--suspend-sleeps"]);
    await worker.said("stdout", /"ended"/);
    const runId = await killedRun(here, PLANTS);
    await worker.said("stdout", new RegExp(`"ended","at":\\d+,"runId":"${runId}"`));
    worker.child.kill("SIGTERM");
    const { stdout, stderr } = await worker.ended;
    expect(stdout + stderr).toContain("a command whose process was killed left ");
    expect(stdout + stderr).not.toContain("planted code");
  },
);

test("sluice doctor loads and starts nothing of a project while what a killed command left cannot be moved away", async () => {
  const here = desk();
  const servers = { started: { command: "touch", args: ["started"], sandbox: false } };
  here.write(
    "sluice.config.mjs",
    `console.error("loaded");\nexport default { mcpServers: ${JSON.stringify(servers)} };\n`,
  );
  await here.sluice(["run", "codeReview", "x", "--trust", "--model", "nobody/x"]);
  putRecordText(here.store, "{}");
  const { code, stdout, stderr } = await here.sluice(["doctor"]);
  expect(code).toBe(4);
  expect(stdout).toMatch(/^workspace +missing .* is no record of a command that this version can read/m);
  expect(stdout).toMatch(/\nNo run can start here\. Fix .*workspace/);
  expect(stderr).not.toContain("loaded");
  expect(existsSync(join(here.folder, "started"))).toBe(false);
});
