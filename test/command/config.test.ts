import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  at,
  call,
  type Desk,
  desk,
  type Ended,
  finishes,
  lines,
  PIPELINES,
  printed,
  textAt,
  turn,
} from "../support/command.ts";
import { FILESYSTEM } from "../support/mcp.ts";

const JSON_OUT = ["--output-format", "json"];
const WORK = `import { done, pipeline, stage } from "@sluice/core";
import { z } from "zod";
`;
/** An expression that makes a pipeline of one stage without an envelope, whose result says which one it is. */
function pipelineOf(text: string, allowedTools = ""): string {
  const work = `stage({ prompt: "Do it.", ${allowedTools}completionTool: "finish", completionSchema: z.object({ text: z.string() }), turnCap: 4 })`;
  return `pipeline({ id: "mine", input: z.object({ task: z.string() }), stages: { work: ${work} }, initial: "work", next: { work: () => done(${JSON.stringify(text)}) } })`;
}
/** A config that leaves a mark when it is evaluated. */
function configOf(here: Desk, fields: string, before = ""): string {
  const mark = `import { writeFileSync } from "node:fs";\nwriteFileSync(${JSON.stringify(join(here.folder, "../loaded"))}, "");\n`;
  return `${WORK}import { defineConfig } from "@sluice/cli";\n${mark}${before}export default defineConfig({ ${fields} });\n`;
}
const wasLoaded = (here: Desk): boolean => existsSync(join(here.folder, "../loaded"));
const run = async (here: Desk, ...words: readonly string[]): Promise<Ended> =>
  await here.sluice(["run", ...words, ...JSON_OUT]);
const script = (here: Desk, ...turns: Parameters<Desk["script"]>[0][string]): string =>
  here.script({ work: [...turns, finishes()] });
const refusal = (ended: Ended): readonly [number | null, string] => [
  ended.code,
  textAt(printed(ended), "error", "code"),
];

test("importing @sluice/cli for defineConfig loads one small file and leaves no trace", () => {
  const program = `import { registerHooks } from "node:module";
const loaded = [];
registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context); } });
const before = Object.keys(globalThis).length;
const { defineConfig } = await import("@sluice/cli");
const same = {};
console.log(JSON.stringify({ loaded: loaded.map((url) => url.replace(/^.*\\/packages\\//, "")), same: defineConfig(same) === same, traces: Object.keys(globalThis).length - before }));`;
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
    cwd: import.meta.dirname,
    encoding: "utf8",
  });
  expect(JSON.parse(stdout)).toEqual({
    loaded: ["cli/dist/index.js"],
    same: true,
    traces: 0,
  });
});

describe("a config is loaded", () => {
  test("only once the folder is trusted: until then it is said, and what needs nothing of it runs", async () => {
    const here = desk();
    here.write("sluice.config.ts", configOf(here, `pipelines: { mine: ${pipelineOf("ours")} }`));
    const model = script(here);
    const bundled = await run(here, "codeReview", "x", "--model", model);
    expect(textAt(printed(bundled), "error", "code")).toBe("model");
    expect(bundled.stderr).toContain("sluice.config.ts was not loaded: the code of this folder is not trusted");
    const missing = await run(here, "mine", "x", "--model", model);
    expect(refusal(missing)).toEqual([2, "pipeline_not_found"]);
    expect(textAt(printed(missing), "error", "message")).toContain("sluice.config.ts was not loaded");
    expect(wasLoaded(here)).toBe(false);

    expect(printed(await run(here, "mine", "x", "--model", model, "--trust")).output).toBe("ours");
    const again = await run(here, "mine", "x", "--model", model);
    expect([printed(again).output, again.stderr]).toEqual(["ours", ""]);
  });

  test("as it was trusted: once it is changed a run stops, unless it is to continue without it", async () => {
    const here = desk();
    const model = script(here);
    here.write("sluice.config.ts", "export default {};\n");
    expect(printed(await run(here, "codeReview", "x", "--model", model, "--trust")).status).toBe("failed");
    here.write("sluice.config.ts", configOf(here, ""));
    const refused = await run(here, "codeReview", "x", "--model", model);
    expect(refusal(refused)).toEqual([2, "folder_untrusted"]);
    expect(textAt(printed(refused), "error", "message")).toContain(
      `${here.folder}, files have changed since they were trusted: sluice.config.ts`,
    );
    const without = await run(here, "codeReview", "x", "--model", model, "--no-config");
    expect(textAt(printed(without), "error", "code")).toBe("model");
    expect(without.stderr).toContain("(--no-config)");
    expect(wasLoaded(here)).toBe(false);
  });

  test("together with the pipelines: one trust covers both, and a file that is new or gone ends it", async () => {
    const here = desk();
    const rules = here.write(".sluice/pipelines/lib/rules.js", "");
    here.write(".sluice/pipelines/shared.ts", `${WORK}export const shared = ${pipelineOf("shared")};\n`);
    const config = configOf(
      here,
      "pipelines: { mine: shared }",
      'import { shared } from "./.sluice/pipelines/shared.ts";\n',
    );
    here.write("sluice.config.ts", config);
    const model = script(here);
    expect(printed(await run(here, "mine", "x", "--model", model, "--trust")).output).toBe("shared");
    expect(printed(await run(here, "shared", "x", "--model", model)).output).toBe("shared");
    const fresh = here.write(".sluice/pipelines/new.js", "");
    expect(refusal(await run(here, "mine", "x", "--model", model))).toEqual([2, "folder_untrusted"]);
    for (const file of [fresh, rules]) rmSync(file);
    expect(refusal(await run(here, "mine", "x", "--model", model))).toEqual([2, "folder_untrusted"]);
  });

  test("from files as they were trusted, also when trusted code changes them in between", async () => {
    const here = desk();
    const late = here.write(".sluice/pipelines/late.mjs", "");
    const changes = `import { appendFileSync } from "node:fs";\nappendFileSync(${JSON.stringify(late)}, "globalThis.late = true;");\n`;
    here.write("sluice.config.mjs", `${changes}await import("./.sluice/pipelines/late.mjs");\n${configOf(here, "")}`);
    const ended = await run(here, "codeReview", "x", "--model", script(here), "--trust");
    expect(refusal(ended)).toEqual([2, "folder_untrusted"]);
    expect(textAt(printed(ended), "error", "message")).toContain(`${late} changed after it was trusted`);
    expect(wasLoaded(here)).toBe(false);
  });

  test("from the workspace itself, never from a folder above it", async () => {
    const here = desk();
    here.write("sluice.config.ts", configOf(here, ""));
    mkdirSync(join(here.folder, "inner"));
    const ended = await run(here, "codeReview", "x", "--model", script(here), "--cwd", "inner", "--trust");
    expect([printed(ended).status, ended.stderr, wasLoaded(here)]).toEqual(["failed", "", false]);
  });

  test("also with a byte order mark, and from CommonJS", async () => {
    const here = desk();
    const fields = `pipelines: { mine: ${pipelineOf("marked")} }`;
    here.write("sluice.config.mts", `\u{feff}${configOf(here, fields)}`);
    expect(printed(await run(here, "mine", "x", "--model", script(here), "--trust")).output).toBe("marked");
    const other = desk();
    other.write(
      "sluice.config.js",
      `module.exports = { defaultPipeline: "fixTests", model: ${JSON.stringify(script(other))} };`,
    );
    expect(textAt(printed(await run(other, "what is it", "--trust")), "error", "code")).toBe("model");
  });
});

describe("a config that cannot be used stops the run before anything else, and says", () => {
  test.each([
    ["that it throws", "throw new Error('no luck');", "config_load_failed", "no luck"],
    ["that it exports nothing", "export const config = {};", "config_invalid", "export default defineConfig({ … })"],
    ["that it exports a function", "export default () => ({});", "config_invalid", "it exports a function"],
    ["that it cannot be parsed", "export default {", "config_load_failed", "sluice.config.mjs"],
    [
      "which pipeline is broken",
      `${WORK}export default { pipelines: { a: pipeline({ id: "a", input: z.object({}), stages: {}, initial: "x", next: {} }) } };`,
      "definition_invalid",
      "sluice.config.mjs",
    ],
  ])("%s", async (_what, text, code, said) => {
    const here = desk();
    here.write("sluice.config.mjs", text);
    const ended = await run(here, "codeReview", "x", "--model", script(here), "--trust");
    expect(refusal(ended)).toEqual([2, code]);
    expect(textAt(printed(ended), "error", "message")).toContain(said);
    expect([wasLoaded(here), existsSync(here.store)]).toEqual([false, false]);
  });

  test("that there are two of them, that it is a link, that it has a form which is not read", async () => {
    const here = desk();
    const model = script(here);
    here.write("elsewhere.ts", configOf(here, ""));
    symlinkSync("elsewhere.ts", join(here.folder, "sluice.config.ts"));
    expect(refusal(await run(here, "codeReview", "x", "--model", model, "--trust"))).toEqual([2, "folder_untrusted"]);
    const untrusted = await run(here, "codeReview", "x", "--model", model);
    expect(textAt(printed(untrusted), "error", "code")).toBe("model");
    expect(untrusted.stderr).toContain("was not loaded");

    const two = desk();
    two.write("sluice.config.js", configOf(two, ""));
    two.write("sluice.config.ts", configOf(two, ""));
    expect(refusal(await run(two, "codeReview", "x", "--model", model, "--trust"))).toEqual([2, "config_ambiguous"]);
    expect([wasLoaded(here), wasLoaded(two)]).toEqual([false, false]);

    const json = desk();
    json.write("sluice.config.json", "{}");
    expect((await run(json, "codeReview", "x", "--model", model)).stderr).toContain("sluice.config.json is ignored");
  });

  test("all of its mistakes at once, with what was meant", async () => {
    const here = desk();
    const fields = `modle: "x", mode: "yollo", allow: ["!Read"], maxParallel: 0, passEnv: ["sk-secret-value-1"], wait: true, interactors: [{ name: "terminal", answer: () => undefined }, {}], pipelines: { "no name": 1 }, baseUrls: { antropic: "ftp://x" }, protectedPaths: ["src/**"], defaultPipeline: "codeReveiw"`;
    here.write("sluice.config.ts", `export default { ${fields} };`);
    const ended = await run(here, "codeReview", "x", "--model", script(here), "--trust");
    expect(refusal(ended)).toEqual([2, "config_invalid"]);
    const problems = at(printed(ended), "error", "detail", "problems");
    const paths = Array.isArray(problems) ? problems.map((problem) => textAt(problem, "path")) : [];
    expect(paths.toSorted()).toEqual([
      "allow[0]",
      "baseUrls.antropic",
      "defaultPipeline",
      "interactors[0]",
      "interactors[1]",
      "maxParallel",
      "mode",
      "modle",
      "passEnv[0]",
      "pipelines.no name",
      "protectedPaths[0]",
      "wait",
    ]);
    for (const meant of [
      'did you mean "model"?',
      'did you mean "yolo"?',
      'did you mean "anthropic"?',
      'did you mean "codeReview"?',
      "never its value",
    ])
      expect(ended.stderr).toContain(meant);
    expect(ended.stderr).not.toContain("sk-secret");
  });
});

describe("what a config decides", () => {
  test("holds for its runs, is said where it widens what they may do, and is recorded", async () => {
    const here = desk();
    const own = script(
      here,
      turn(
        call("Write", { file_path: "src/a.txt", content: "1" }),
        call("Write", { file_path: "ci/b.txt", content: "2" }),
      ),
    );
    const fields = `mode: "yolo", model: ${JSON.stringify(own)}, store: "runs", protectedPaths: ["ci"], pipelines: { mine: ${pipelineOf("ours")} }, defaultPipeline: "mine"`;
    const config = here.write("sluice.config.ts", configOf(here, fields));
    const ended = await run(here, "write two files", "--trust");
    expect(printed(ended)).toMatchObject({
      status: "completed",
      output: "ours",
      denied: [{ tool: "Write", cause: "limit" }],
    });
    expect(ended.stderr).toContain("sluice.config.ts sets mode yolo");
    expect([existsSync(join(here.folder, "src/a.txt")), existsSync(join(here.folder, "ci/b.txt"))]).toEqual([
      true,
      false,
    ]);
    expect([existsSync(join(here.folder, "runs/journal.db")), existsSync(here.store)]).toEqual([true, false]);

    const runId = textAt(printed(ended), "runId");
    const [started] = lines(await here.sluice(["audit", runId, "--output-format", "stream-json"]));
    expect(at(started, "data")).toMatchObject({
      mode: "yolo",
      input: { task: "write two files" },
      source: {
        kind: "config",
        name: "mine",
        config: { file: config, files: [{ file: config, digest: expect.stringMatching(/^[0-9a-f]{64}$/) }] },
      },
    });
    expect(lines(await here.sluice(["runs", "--output-format", "stream-json"]))[0]).toMatchObject({ runId });
  });

  test("gives way to the environment, and that to the command line", async () => {
    const here = desk();
    const fails = "scripted:none.json";
    const model = script(here, turn(call("Write", { file_path: "a.txt", content: "1" })));
    const fields = `mode: "yolo", model: ${JSON.stringify(fails)}, store: "configured", pipelines: { mine: ${pipelineOf("ours")} }`;
    here.write("sluice.config.ts", configOf(here, fields));
    const env = { SLUICE_MODEL: model, SLUICE_STORE: "from-env" };
    const first = await here.sluice(["run", "mine", "x", "--trust", "--mode", "ask", ...JSON_OUT], { env });
    expect(printed(first)).toMatchObject({ status: "completed", denied: [{ cause: "no_interactor" }] });
    expect(first.stderr).not.toContain("mode yolo");
    const second = await here.sluice(["run", "mine", "x", "--model", fails, "--store", "named", ...JSON_OUT], { env });
    expect(refusal(second)).toEqual([2, "script_not_found"]);
    expect(["from-env", "configured", "named"].map((name) => existsSync(join(here.folder, name)))).toEqual([
      true,
      false,
      false,
    ]);
  });

  test("beats a bundled pipeline, which is said; a name that a file has too is an error", async () => {
    const here = desk();
    here.write("sluice.config.ts", configOf(here, `pipelines: { codeReview: ${pipelineOf("ours")} }`));
    const ours = await run(here, "codeReview", "x", "--model", script(here), "--trust");
    expect(printed(ours).output).toBe("ours");
    expect(ours.stderr).toContain("codeReview is the project's pipeline");
    here.write(".sluice/pipelines/codeReview.ts", `${WORK}export const codeReview = ${pipelineOf("other")};`);
    const twice = await run(here, "codeReview", "x", "--model", script(here), "--trust");
    expect(refusal(twice)).toEqual([2, "pipeline_ambiguous"]);
    expect(textAt(printed(twice), "error", "message")).toContain("codeReview.ts and sluice.config.ts");
  });

  test("brings a tool from the project's own modules, imported as in any TypeScript project", async () => {
    const here = desk();
    here.write("package.json", '{ "type": "module" }');
    here.write("src/words.ts", 'export const greeting: string = "hello";\n');
    here.write(
      "src/tools/greet.ts",
      `import { defineTool } from "@sluice/core";
import { z } from "zod";
import { greeting } from "../words.js";
export const greet = defineTool({ name: "Greet", description: "Greets.", input: z.object({}), effect: "read", subjects: () => [], execute: async () => ({ ok: true, output: greeting }) });
`,
    );
    const fields = `mode: "yolo", tools: [greet], pipelines: { mine: ${pipelineOf("ours")} }`;
    here.write("sluice.config.ts", configOf(here, fields, 'import { greet } from "./src/tools/greet";\n'));
    const model = script(here, turn(call("Greet", {})));
    for (const flags of [["--trust"], []]) {
      const ended = await run(here, "mine", "x", "--model", model, ...flags);
      expect([printed(ended).status, at(printed(ended), "denied")]).toEqual(["completed", []]);
    }
    here.write("src/words.ts", 'export const greeting: string = "other";\n');
    const changed = await run(here, "mine", "x", "--model", model);
    expect(refusal(changed)).toEqual([2, "folder_untrusted"]);
    expect(textAt(printed(changed), "error", "message")).toContain("src/words.ts");
  });

  test("brings tools, a guard hook and variables", async () => {
    const here = desk();
    const tool = `defineTool({ name: "Greet", description: "Greets.", input: z.object({}), effect: "read", subjects: () => [], execute: async () => ({ ok: true, output: "hello" }) })`;
    const fields = `mode: "yolo", tools: [${tool}], passEnv: ["NPM_TOKEN"], onCall: (proposal) => proposal.tool === "Write" ? { veto: "not today" } : undefined, pipelines: { mine: ${pipelineOf("ours")} }`;
    here.write("sluice.config.ts", configOf(here, fields, 'import { defineTool } from "@sluice/core";\n'));
    const model = script(
      here,
      turn(
        call("Greet", {}),
        call("Write", { file_path: "a", content: "" }),
        call("Bash", { command: 'test -n "$NPM_TOKEN" && test -z "$OTHER_TOKEN" && touch passed' }),
      ),
    );
    const env = { NPM_TOKEN: "npm_0123456789abcdefghij", OTHER_TOKEN: "oth_0123456789abcdefghij" };
    const ended = await here.sluice(["run", "mine", "x", "--trust", "--model", model, ...JSON_OUT], { env });
    expect(printed(ended)).toMatchObject({ status: "completed", denied: [{ tool: "Write", cause: "hook" }] });
    expect(existsSync(join(here.folder, "passed"))).toBe(true);
    expect(ended.stderr).toContain("NPM_TOKEN for commands; tools Greet; a guard hook");
  });
});

test("its MCP servers serve its runs, and their mistakes are reported like all others", async () => {
  const here = desk();
  here.write("a.txt", "what the file says");
  const servers = JSON.stringify({ files: { command: process.execPath, args: [FILESYSTEM, here.folder] } });
  const mine = pipelineOf("ours", 'allowedTools: ["mcp__files__read_text_file"], ');
  here.write("sluice.config.ts", configOf(here, `mcpServers: ${servers}, pipelines: { mine: ${mine} }`));
  const model = script(here, turn(call("mcp__files__read_text_file", { path: join(here.folder, "a.txt") })));
  const ended = await run(here, "mine", "x", "--model", model, "--trust");
  expect(printed(ended)).toMatchObject({ status: "completed", denied: [] });
  expect(ended.stderr).toContain("sluice.config.ts sets MCP servers files");

  here.write("sluice.config.ts", configOf(here, 'maxParallel: 0, mcpServers: { a__b: { command: "x", url: "y" } }'));
  const wrong = await run(here, "codeReview", "x", "--model", model, "--trust");
  expect(refusal(wrong)).toEqual([2, "config_invalid"]);
  expect(textAt(printed(wrong), "error", "message")).toMatch(/maxParallel: [\s\S]*mcpServers.*a__b/);
});

describe("a run", () => {
  test("cannot write the config it runs under, nor make one, nor what that takes from packages", async () => {
    const here = desk();
    here.write("node_modules/rules/package.json", '{ "name": "rules", "type": "module", "exports": "./index.js" }');
    here.write("node_modules/rules/index.js", "");
    const text = configOf(here, `mode: "yolo", pipelines: { mine: ${pipelineOf("ours")} }`, 'import "rules";\n');
    const file = here.write("sluice.config.ts", text);
    const writes = ["sluice.config.ts", "sluice.config.mjs", ".sluice/pipelines/x.ts", "node_modules/rules/x.js"].map(
      (file_path) => call("Write", { file_path, content: "1" }),
    );
    const ended = await run(
      here,
      "mine",
      "x",
      "--model",
      script(here, turn(call("Read", { file_path: "sluice.config.ts" })), turn(...writes)),
      "--trust",
    );
    expect(at(printed(ended), "denied")).toMatchObject(writes.map(() => ({ cause: "limit" })));
    expect(readFileSync(file, "utf8")).toBe(text);
  });

  test("cannot write what the config takes from packages only later", async () => {
    const here = desk();
    const hook = `onCall: async () => { try { await import("rules"); } catch { return undefined; } }`;
    here.write("sluice.config.mjs", `export default { mode: "yolo", ${hook} };\n`);
    const file_path = "node_modules/rules/index.js";
    const model = here.script({ work: [turn(call("Write", { file_path, content: "1" })), finishes()] });
    const ended = await run(here, `${PIPELINES}#single`, "x", "--model", model, "--trust");
    expect(at(printed(ended), "denied")).toMatchObject([{ tool: "Write", cause: "limit" }]);
  });

  test("is resumed under the config it was started with, or not at all; one that was started without continues without", async () => {
    const here = desk();
    const text = configOf(
      here,
      `model: "scripted:none.json", protectedPaths: ["ci"], pipelines: { mine: ${pipelineOf("ours", 'allowedTools: ["Write"], ')} }`,
    );
    const file = here.write("sluice.config.ts", text);
    const asks = turn(call("Edit", { file_path: "x", old_string: "a", new_string: "b" }));
    const model = script(here, asks, turn(call("Write", { file_path: "ci/x", content: "" })));
    const runId = textAt(printed(await run(here, "mine", "x", "--model", model, "--trust", "--wait=1ms")), "runId");
    const resumed = async (...flags: readonly string[]): Promise<Ended> =>
      await here.sluice(["resume", runId, "--no-wait", ...JSON_OUT, ...flags]);
    here.write("sluice.config.ts", `${text}// changed\n`);
    expect(refusal(await resumed())).toEqual([2, "folder_untrusted"]);
    const other = await resumed("--trust");
    expect(refusal(other)).toEqual([2, "config_changed"]);
    expect(textAt(printed(other), "error", "message")).toContain(file);
    // Its rules do not go without a word.
    expect(refusal(await resumed("--no-config"))).toEqual([2, "config_changed"]);
    expect(printed(await resumed("--allow-changed"))).toMatchObject({
      status: "completed",
      output: "ours",
      denied: [{ cause: "no_interactor" }, { tool: "Write", cause: "limit" }],
    });

    const plain = here.write("plain.mjs", `${WORK}export const plain = ${pipelineOf("plain", "allowedTools: [], ")};`);
    const started = await run(here, plain, "x", "--model", model, "--no-config", "--wait=1ms");
    const on = await here.sluice(["resume", textAt(printed(started), "runId"), "--no-wait", ...JSON_OUT]);
    expect(printed(on).output).toBe("plain");
    expect(on.stderr).toContain("was started without sluice.config.ts");
  });
});
