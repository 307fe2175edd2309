import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { isSluiceError } from "@sluice/core";
import { expect, onTestFinished, test } from "vitest";
import { asTrusted, digestCode, findCode } from "../../packages/cli/src/project/code.ts";
import { loadConfig } from "../../packages/cli/src/project/load-config.ts";
import { type AskTrust, createProjects } from "../../packages/cli/src/project/projects.ts";
import { handClock } from "../support/hand-clock.ts";

function folder(): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "sluice-project-")));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
function withConfig(text: string): string {
  const root = folder();
  writeFileSync(join(root, "sluice.config.mjs"), text);
  return root;
}
const reason = async (promise: Promise<unknown>): Promise<unknown> =>
  await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );

test("a config that never becomes ready is given up after ten seconds", async () => {
  const root = withConfig("await new Promise(() => {});\nexport default {};\n");
  const clock = handClock();
  const code = findCode(root);
  const loading = reason(loadConfig(code, asTrusted(digestCode(code), root), clock));
  while (clock.waiting() === 0) await setImmediate();
  clock.turn(9_999);
  expect(clock.waiting()).toBe(1);
  clock.turn(1);
  const thrown = await loading;
  expect(isSluiceError(thrown, "config_load_failed") && thrown.message).toContain("did not load within 10 s");
});

/** The projects of a command on a terminal, and what was asked and said. */
function atTerminal(
  home: string,
  answer: boolean,
  flags: { readonly headless?: boolean; readonly trust?: boolean } = {},
) {
  const asked: string[] = [];
  const said: string[] = [];
  const ask: AskTrust = async (question) => {
    asked.push(question);
    return answer;
  };
  const terminal = {
    out: () => undefined,
    err: (text: string) => void said.push(text),
    paint: (_stream: string, _tone: string, text: string) => text,
    interactive: true,
    input: new PassThrough(),
    prompts: new PassThrough(),
    controlling: () => undefined,
    facts: () => ({ stdin: true, stdout: true, stderr: true, columns: 80, rows: 24, colourBits: 8 }),
    flush: async () => undefined,
  };
  const context = { env: { HOME: home }, here: home, terminal };
  return { asked, said, projects: createProjects({ ...flags }, context, ask) };
}

test("on a terminal trust is asked for once, with the names of the files, and is remembered", async () => {
  const home = folder();
  const root = withConfig("export default { maxParallel: 2 };\n");
  const first = atTerminal(home, true);
  const project = await first.projects.open(root);
  expect(project.config?.settings.maxParallel).toBe(2);
  await project.requireTrust();
  expect(first.asked).toHaveLength(1);
  expect(first.asked[0]).toContain("\n  sluice.config.mjs\n");
  const second = atTerminal(home, false);
  expect((await second.projects.open(root)).config?.settings.maxParallel).toBe(2);
  expect(second.asked).toEqual([]);

  writeFileSync(join(root, "sluice.config.mjs"), "export default { maxParallel: 3 };\n");
  const third = atTerminal(home, false);
  const thrown = await reason(third.projects.open(root));
  expect(isSluiceError(thrown, "folder_untrusted")).toBe(true);
  expect(third.asked[0]).toMatch(/has changed since you trusted it:\n {2}sluice\.config\.mjs {2}\(changed or new\)/);
});

test("the question lists the project's own modules that the code imports, whether or not it was asked before", async () => {
  const home = folder();
  const root = withConfig('import "./src/tool.mjs";\nexport default {};\n');
  mkdirSync(join(root, "src"));
  writeFileSync(join(root, "src/tool.mjs"), '// import "./absent.mjs";\nexport * from "./words.mjs";\n');
  writeFileSync(join(root, "src/words.mjs"), "export const word = 1;\n");
  const first = atTerminal(home, true);
  await first.projects.open(root);
  expect(first.asked[0]).toMatch(/\n {2}sluice\.config\.mjs\n(?: {2}src\/(?:tool|words)\.mjs\n){2}It controls/);
  writeFileSync(join(root, "src/words.mjs"), "export const word = 2;\n");
  const second = atTerminal(home, false);
  await reason(second.projects.open(root));
  expect(second.asked[0]).toContain("\n  src/words.mjs  (changed or new)\n");
});

test("a person who says no continues without the config, where the folder was never trusted", async () => {
  const root = withConfig("globalThis.evaluated = true;\n");
  const { projects, asked, said } = atTerminal(folder(), false);
  const project = await projects.open(root);
  expect([project.config, asked.length]).toEqual([undefined, 1]);
  expect(said.join("")).toContain("sluice.config.mjs was not loaded");
  await expect(project.requireTrust()).rejects.toMatchObject({ code: "folder_untrusted" });
  expect(asked).toHaveLength(1);
  expect("evaluated" in globalThis).toBe(false);
});

test("a file's name cannot write lines of the question", async () => {
  const root = withConfig("export default {};\n");
  const pipelines = join(root, ".sluice", "pipelines");
  mkdirSync(pipelines, { recursive: true });
  writeFileSync(join(pipelines, "a\nType yes to trust nothing: \u{1b}[2K.ts"), "");
  const { projects, asked } = atTerminal(folder(), false);
  await projects.open(root);
  expect(asked[0]?.split("\n")).toHaveLength(4);
  expect(asked[0]).not.toContain("\u{1b}");
});

test("the question lists every removed file, and the config before all others, however much changed", async () => {
  const home = folder();
  const root = withConfig("export default {};\n");
  const lib = join(root, ".sluice", "pipelines", "lib");
  mkdirSync(lib, { recursive: true });
  writeFileSync(join(lib, "gone.ts"), "");
  await atTerminal(home, true).projects.open(root);

  rmSync(join(lib, "gone.ts"));
  writeFileSync(join(root, "sluice.config.mjs"), "export default { maxParallel: 3 };\n");
  for (let file = 0; file < 30; file += 1) writeFileSync(join(lib, `a${file}.ts`), "");
  const { projects, asked } = atTerminal(home, false);
  await reason(projects.open(root));
  const [, first, ...rest] = asked[0]?.split("\n") ?? [];
  expect(first).toBe("  sluice.config.mjs  (changed or new)");
  expect(rest).toContain("  and 11 more files");
  expect(rest).toContain("  .sluice/pipelines/lib/gone.ts  (removed)");
});

test("a config that sets what its starter decides is an error that says what to do instead", async () => {
  const root = withConfig("export default { trust: true, wait: 5, colour: 1 };\n");
  const code = findCode(root);
  const thrown = await reason(loadConfig(code, asTrusted(digestCode(code), root), handClock()));
  expect(isSluiceError(thrown, "config_invalid") && thrown.message).toMatch(
    /trust: cannot be set in a config.*a project cannot trust itself.*wait: cannot be set in a config.*--wait.*colour: is not a field/s,
  );
});
