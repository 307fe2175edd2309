import { spawnSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { field } from "@sluice/core";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Desk, desk, printed } from "../support/command.ts";
import { type DeskHere, deskHere, sluiceHere } from "../support/command-here.ts";

const ROOT = join(import.meta.dirname, "../..");
const SCRIPTED = ["--trust", "--headless", "--model", "scripted:.sluice/scripts/first.json", "--output-format", "json"];

function inRepository<Here extends DeskHere | Desk>(here: Here): Here {
  mkdirSync(join(here.folder, ".git"));
  return here;
}

function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((path) => !path.startsWith(".git/") && !path.startsWith(".sluice/store/"))
    .sort();
}

/** Checks and runs the pipeline that was written, as the printed lines say. */
async function expectFinishedRun(here: Desk): Promise<void> {
  const checked = await here.sluice(["check", "first", "--trust"]);
  expect([checked.code, checked.stdout]).toEqual([0, "1 pipeline: 0 errors, 0 warnings\n"]);
  const ended = await here.sluice(["run", "first", "write a note", ...SCRIPTED, "--fail-on-denied"]);
  expect(ended.code).toBe(0);
  expect(field(printed(ended), "output")).toEqual({ accepted: true, findings: [] });
  expect(readFileSync(join(here.folder, "notes/first.md"), "utf8")).toBe("The pipeline first works.\n");
}

describe("what sluice init writes is found, checked and runs without a model", () => {
  test.each([
    ["a project of ES modules in TypeScript", { type: "module", devDependencies: { typescript: "7.0.2" } }, "ts"],
    ["a CommonJS project in TypeScript", { type: "commonjs", devDependencies: { typescript: "7.0.2" } }, "mts"],
    ["a project in JavaScript", { type: "module", dependencies: {} }, "mjs"],
    ["a CommonJS project in JavaScript", { main: "index.js" }, "mjs"],
    ["a folder without package.json", undefined, "mts"],
  ])("in %s", async (_name, manifest, extension) => {
    // Another process: the test runner would load the files itself.
    const here = inRepository(desk());
    if (manifest !== undefined) here.write("package.json", JSON.stringify(manifest));
    const { code, stdout, stderr } = await here.sluice(["init"]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain("sluice check first --trust");
    const typed = extension === "mjs" ? [] : [".sluice/tsconfig.json"];
    expect(filesBelow(here.folder).filter((path) => path !== "package.json")).toEqual(
      [
        ".github/workflows/sluice.yml",
        ".gitignore",
        `.sluice/pipelines/first.${extension}`,
        `.sluice/pipelines/lib/count-words.${extension}`,
        ".sluice/scripts/first.json",
        ...typed,
        `sluice.config.${extension}`,
      ].sort(),
    );
    await expectFinishedRun(here);
  });
});

test("the pipeline and the config of sluice init pass the type checks of their tsconfig", async () => {
  // The compiler finds the packages of the workspace from a folder inside it.
  const folder = mkdtempSync(join(ROOT, "node_modules/.cache/init-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "package.json"), '{ "type": "module", "devDependencies": { "typescript": "7.0.2" } }\n');
  expect((await sluiceHere(folder)(["init", "--no-ci"])).code).toBe(0);
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const check = () => spawnSync(process.execPath, [tsc, "-p", join(folder, ".sluice")], { encoding: "utf8" });
  expect(check()).toMatchObject({ status: 0, stdout: "" });
  const pipeline = join(folder, ".sluice/pipelines/first.ts");
  writeFileSync(pipeline, readFileSync(pipeline, "utf8").replace("output.accepted", "output.acepted"));
  expect(check().stdout).toContain("first.ts");
});

describe("sluice init overwrites nothing", () => {
  test("a second run changes no file and lists what it keeps", async () => {
    const here = inRepository(deskHere());
    await here.sluice(["init"]);
    const config = here.write("sluice.config.mts", "export default {};\n");
    const { code, stdout } = await here.sluice(["init", "--output-format", "json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ written: [], name: "first" });
    expect(field(JSON.parse(stdout), "kept")).toContain(config);
    expect(readFileSync(config, "utf8")).toBe("export default {};\n");
  });

  test("a config of another kind stays the only one, and what it lacks is said", async () => {
    const here = inRepository(deskHere());
    here.write("sluice.config.js", "export default {};\n");
    const { stdout } = await here.sluice(["init"]);
    expect(filesBelow(here.folder).filter((path) => path.startsWith("sluice.config"))).toEqual(["sluice.config.js"]);
    expect(stdout).toContain("import countWords from ./.sluice/pipelines/lib/count-words.mts in sluice.config.js");
  });

  test("a workflow file of the same name is an error, since the name would mean two pipelines", async () => {
    const here = deskHere();
    await here.sluice(["init", "--workflow"]);
    const { code, stderr } = await here.sluice(["init"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("choose another with --name")]);
    expect(existsSync(join(here.folder, "sluice.config.mts"))).toBe(false);
    expect((await here.sluice(["init", "--name", "second"])).code).toBe(0);
  });

  test("--dry-run writes nothing and lists the same files", async () => {
    const here = inRepository(deskHere());
    const planned = field(
      JSON.parse((await here.sluice(["init", "--dry-run", "--output-format", "json"])).stdout),
      "written",
    );
    expect(filesBelow(here.folder)).toEqual([]);
    const written = field(JSON.parse((await here.sluice(["init", "--output-format", "json"])).stdout), "written");
    expect(written).toEqual(planned);
  });
});

describe(".gitignore", () => {
  test.each([
    ["without a last line end", "dist", "dist\n.sluice/store/\n"],
    ["with line ends of Windows", "dist\r\nlogs\r\n", "dist\r\nlogs\r\n.sluice/store/\r\n"],
    ["that is empty", "", ".sluice/store/\n"],
    ["that has the entry", "/.sluice/store\ndist\n", "/.sluice/store\ndist\n"],
    ["that ignores the whole folder", ".sluice/\n", ".sluice/\n"],
  ])("one %s gets only what is missing", async (_name, before, after) => {
    const here = deskHere();
    const file = here.write(".gitignore", before);
    const { stdout } = await here.sluice(["init"]);
    expect(readFileSync(file, "utf8")).toBe(after);
    expect(stdout.includes("git does not track the pipeline")).toBe(before === ".sluice/\n");
  });

  test("one that is a link is not written through", async () => {
    const here = deskHere();
    const outside = join(here.folder, "../ignored");
    writeFileSync(outside, "dist\n");
    symlinkSync(outside, join(here.folder, ".gitignore"));
    const { code, stdout } = await here.sluice(["init"]);
    expect([code, stdout]).toEqual([0, expect.stringContaining("Add .sluice/store/ to .gitignore")]);
    expect(readFileSync(outside, "utf8")).toBe("dist\n");
  });
});

describe("links", () => {
  test.each([".sluice", ".sluice/pipelines", ".sluice/pipelines/lib", ".github"])(
    "%s that leads elsewhere is refused before anything is written",
    async (name) => {
      const here = inRepository(deskHere());
      const outside = realpathSync(mkdtempSync(join(tmpdir(), "sluice-outside-")));
      onTestFinished(() => rmSync(outside, { recursive: true, force: true }));
      mkdirSync(join(here.folder, name, ".."), { recursive: true });
      symlinkSync(outside, join(here.folder, name));
      const { code, stderr } = await here.sluice(["init"]);
      expect([code, stderr]).toEqual([2, expect.stringContaining("is a link that leads out of")]);
      expect([readdirSync(outside), existsSync(join(here.folder, "sluice.config.mts"))]).toEqual([[], false]);
    },
  );

  test("a link in the place of a file is kept, also one that leads nowhere", async () => {
    const here = deskHere();
    const config = join(here.folder, "sluice.config.mts");
    symlinkSync(join(here.folder, "../nowhere"), config);
    expect((await here.sluice(["init"])).code).toBe(0);
    expect(lstatSync(config).isSymbolicLink()).toBe(true);
    expect(existsSync(join(here.folder, "../nowhere"))).toBe(false);
  });
});

test("in a folder below the top of a repository, the workflow for CI is at the top and names the folder", async () => {
  const here = inRepository(deskHere());
  const below = join(here.folder, "packages/a b");
  mkdirSync(below, { recursive: true });
  const { code, stdout } = await sluiceHere(below)(["init"]);
  expect([code, stdout]).toEqual([0, expect.stringContaining("../../.github/workflows/sluice.yml")]);
  expect(readFileSync(join(here.folder, ".github/workflows/sluice.yml"), "utf8")).toContain(
    'cwd: "project/packages/a b"',
  );
  expect(existsSync(join(below, ".gitignore"))).toBe(true);
});

test.each([
  ["outside a repository", [], "This folder is not in a git repository"],
  ["with --no-ci", ["--no-ci"], ""],
])("%s, no workflow for CI is written", async (_name, options, note) => {
  const here = deskHere();
  const { stdout } = await here.sluice(["init", ...options]);
  expect(existsSync(join(here.folder, ".github"))).toBe(false);
  expect(stdout).toContain(note);
  expect(stdout.includes("git repository")).toBe(note !== "");
});

test("the printed commands work in the current folder, also for another one and in a project that installed the command", async () => {
  const here = deskHere();
  const below = join(here.folder, "a b");
  mkdirSync(below);
  const { stdout } = await here.sluice(["init", "--cwd", "a b"], { env: { npm_command: "exec" } });
  expect(stdout).toContain(
    `npx sluice run first "write a note" --trust --model 'scripted:a b/.sluice/scripts/first.json' --cwd '${below}'\n`,
  );
});

test("packages that types need are named if the project has none of them", async () => {
  const here = deskHere();
  expect((await here.sluice(["init"])).stdout).toContain(
    "needs @sluice/core, @sluice/cli, zod, typescript, @types/node; docs/",
  );
  for (const name of ["@sluice/core", "@sluice/cli", "zod", "typescript"])
    mkdirSync(join(here.folder, "node_modules", name), { recursive: true });
  expect((await here.sluice(["init", "--name", "second"])).stdout).toContain("needs @types/node; docs/");
  mkdirSync(join(here.folder, "node_modules/@types/node"), { recursive: true });
  expect((await here.sluice(["init", "--name", "third"])).stdout).not.toContain("docs/install.md");
});

test.each([
  [["--name", "../x"], "is not a valid name"],
  [["--workflow", "a", "--name", "b"], "--workflow takes the name itself"],
  [["--workflow", "--dry-run"], "--dry-run is for sluice init without --workflow"],
])("sluice init %j is refused", async (options, why) => {
  const here = deskHere();
  const { code, stderr } = await here.sluice(["init", ...options]);
  expect([code, stderr, filesBelow(here.folder)]).toEqual([2, expect.stringContaining(why), []]);
});

test("a command of a run cannot write a project", async () => {
  const here = deskHere();
  const { code } = await here.sluice(["init"], { env: { SLUICE_RUN: "r1" } });
  expect([code, filesBelow(here.folder)]).toEqual([2, []]);
});
