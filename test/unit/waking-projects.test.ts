import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundledPipelines } from "@sluice/stages/runtime";
import { expect, onTestFinished, test } from "vitest";
import { createTerminal } from "../../packages/cli/src/output/terminal.ts";
import { digestCode, findCode } from "../../packages/cli/src/project/code.ts";
import { isPipeline } from "../../packages/cli/src/project/load/load.ts";
import type { FoundPipeline } from "../../packages/cli/src/project/pipelines.ts";
import { createTrust } from "../../packages/cli/src/project/trust.ts";
import { createProjectCache } from "../../packages/cli/src/waking/project-cache.ts";

const CONFIG = "sluice.config.js";

function place() {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "sluice-waking-")));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  const root = join(base, "work");
  mkdirSync(join(root, ".sluice", "workflows"), { recursive: true });
  const env = { HOME: join(base, "home"), XDG_STATE_HOME: join(base, "state") };
  const write = (path: string, text: string): void => writeFileSync(join(root, path), text);
  write(CONFIG, "export default {};\n");
  const trust = (): void => createTrust(env).grant(root, digestCode(findCode(root)), () => undefined);
  const projectAt = createProjectCache(join(base, "store"), { env, here: root, terminal: createTerminal(process) });
  return { root, write, trust, project: () => projectAt(root) };
}

test("a project is kept while its code and its trust are the same, and is another one after a change of either", () => {
  const { write, trust, project } = place();
  const untrusted = project();
  expect(project()).toBe(untrusted);
  trust();
  const trusted = project();
  expect(trusted).not.toBe(untrusted);
  expect(project()).toBe(trusted);
  for (const path of [CONFIG, ".sluice/workflows/a.yaml"]) {
    const before = project();
    write(path, "# changed\n");
    const changed = project();
    expect(changed).not.toBe(before);
    trust();
    expect(project()).not.toBe(changed);
  }
});

test("nothing is kept of a project whose code cannot be read", () => {
  const { root, project } = place();
  symlinkSync("/etc/hostname", join(root, ".sluice", "workflows", "a.yaml"));
  const first = project();
  expect(first.version).toBeUndefined();
  expect(project()).not.toBe(first);
});

test("a pipeline is loaded once, and again after it failed to load", async () => {
  const { project } = place();
  const { remember } = project();
  let loads = 0;
  const failing = async (): Promise<never> => {
    loads += 1;
    throw new Error("a syntax error");
  };
  await expect(remember("a", failing)).rejects.toThrow("a syntax error");
  await expect(remember("a", failing)).rejects.toThrow("a syntax error");
  expect(loads).toBe(2);
  const pipeline: unknown = await bundledPipelines().get("codeReview")?.();
  if (!isPipeline(pipeline)) throw new Error("there is no codeReview");
  const found: FoundPipeline = {
    name: "codeReview",
    pipeline,
    source: { kind: "bundled", name: "codeReview" },
    code: [],
  };
  const load = async (): Promise<FoundPipeline> => {
    loads += 1;
    return found;
  };
  const both = await Promise.all([remember("a", load), remember("a", load)]);
  expect(both).toEqual([found, found]);
  expect(await remember("a", load)).toBe(found);
  expect(loads).toBe(3);
});
