import { spawnSync } from "node:child_process";
import { readdirSync, symlinkSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { expect, test } from "vitest";
import { type Desk, desk, textAt } from "../support/command.ts";

const root = join(import.meta.dirname, "../..");
const LAUNCHER = join(root, "bin/sluice");
const START = join(root, "scripts/start.mjs");
const RUN = ["run", "where", "x", "--trust", "--sandbox", "off", "--output-format", "json"];

/** A pipeline whose output is the PATH of its command, and the programs of this clone that it finds. */
const PIPELINE = `import { done, pipeline } from "@sluice/core";
import { script } from "@sluice/stages";
export const where = pipeline({
  id: "where",
  input: { type: "object" },
  stages: { look: script({ command: { shell: 'echo "$PATH"; command -v tsc vitest || true' } }) },
  initial: "look",
  next: { look: { completed: ({ output }) => done(output.stdout), failed: ({ message }) => done(message) } },
});
`;

/** A PATH with a Node and nothing of this clone. */
function plainPath(here: Desk): string {
  const folder = join(here.folder, "../programs");
  here.write("../programs/README", "");
  symlinkSync(process.execPath, join(folder, "node"));
  return [folder, "/usr/bin", "/bin"].join(delimiter);
}

function runs(here: Desk, command: string, args: readonly string[], path: string): unknown {
  const { stdout, stderr } = spawnSync(command, [...args, ...RUN, "--cwd", here.folder], {
    encoding: "utf8",
    cwd: here.folder,
    env: { PATH: path, HOME: join(here.folder, "../home"), XDG_STATE_HOME: join(here.folder, "../state") },
  });
  if (stdout === "") throw new Error(stderr);
  return textAt(JSON.parse(stdout), "output");
}

test("the launcher's folder holds the launcher alone", () => {
  expect(readdirSync(dirname(LAUNCHER))).toEqual(["sluice"]);
});

test("with the launcher's folder on PATH, commands of stages see no program of the clone", () => {
  const here = desk();
  here.write(".sluice/pipelines/where.ts", PIPELINE);
  const path = `${dirname(LAUNCHER)}${delimiter}${plainPath(here)}`;
  expect(runs(here, "sluice", [], path)).toBe(path);
});

test("the launcher works through links", () => {
  const here = desk();
  here.write(".sluice/pipelines/where.ts", PIPELINE);
  here.write("../links/README", "");
  const first = join(here.folder, "../links/first");
  symlinkSync(LAUNCHER, first);
  symlinkSync("first", join(here.folder, "../links/sluice"));
  const path = plainPath(here);
  expect(runs(here, join(here.folder, "../links/sluice"), [], path)).toBe(path);
});

test("npm start puts no program of the clone on the PATH of commands", () => {
  const here = desk();
  here.write(".sluice/pipelines/where.ts", PIPELINE);
  const path = plainPath(here);
  const ofNpm = [join(root, "node_modules/.bin"), join(dirname(root), "node_modules/.bin")];
  expect(runs(here, process.execPath, [START], [...ofNpm, path].join(delimiter))).toBe(path);
});
