import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { call, desk, finishes, turn } from "../support/command.ts";
import { lookAt } from "../support/look-at.ts";
import { hasWall } from "../support/walls.ts";

const PIPELINE = `import { done, pipeline, stage } from "@sluice/core";
import { kit } from "kit";
import { z } from "zod";
const work = stage({ prompt: kit, allowedTools: ["Write", "Bash"], completionTool: "finish", completionSchema: z.object({ text: z.string() }), turnCap: 5 });
export default pipeline({ id: "p", input: z.object({ task: z.string() }), stages: { work }, initial: "work", next: { work: ({ output }) => done(output.text) } });
`;
const PACKAGE = '{ "name": "kit", "version": "1.0.0", "type": "module", "exports": "./index.js" }';
const MODULE = 'export const kit = "Work.";\n';

test.skipIf(!hasWall())(
  "what a command leaves that was running when Sluice was killed is moved away before a resume loads code (skipped where no wall can be built)",
  async () => {
    const here = desk();
    here.write("node_modules/kit/package.json", PACKAGE);
    here.write("node_modules/kit/index.js", MODULE);
    here.write("flows/p.ts", PIPELINE);
    here.write("planted/package.json", PACKAGE);
    here.write("planted/index.js", `console.error("planted code was loaded"); ${MODULE}`);
    const plants =
      "mkdir flows/node_modules; cp -r planted flows/node_modules/kit; touch made; until [ -e never ]; do sleep 0.1; done";
    const model = here.script({ work: [turn(call("Bash", { command: plants })), finishes()] });
    const run = here.start(["run", "./flows/p.ts", "task", "--trust", "--sandbox", "require", "--model", model]);
    await expect.poll(() => existsSync(join(here.folder, "made"))).toBe(true);
    run.child.kill("SIGKILL");
    await run.ended;
    const [begun] = await lookAt(here.store, (host) => host.list());
    const resumed = await here.sluice(["resume", begun?.runId ?? "", "--headless"]);
    expect(resumed.code).toBe(0);
    expect(resumed.stderr).not.toContain("planted code");
    expect(resumed.stderr).toMatch(
      /^sluice: a command whose process was killed left \S+\/flows\/node_modules; it was moved to /m,
    );
    expect(readdirSync(join(here.folder, "flows"))).toEqual(["p.ts"]);
  },
);
