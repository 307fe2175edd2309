import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
mkdirSync(join(root, "node_modules/.cache"), { recursive: true });
/** Inside the repository, so that imports resolve as they do for everybody. */
const folder = mkdtempSync(join(root, "node_modules/.cache/types-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the compiler over one file; its report, and how many types it had to make. */
async function check(file: string): Promise<{ readonly report: string; readonly instantiations: number }> {
  const config = join(folder, `${relative(root, file).replaceAll(/\W/g, "-")}.json`);
  const compilerOptions = { rootDir: root, noEmit: true, composite: false, declaration: false, declarationMap: false };
  writeFileSync(config, JSON.stringify({ extends: join(root, "tsconfig.base.json"), compilerOptions, files: [file] }));
  const args = [
    join(root, "node_modules/typescript/bin/tsc"),
    "-p",
    config,
    "--pretty",
    "false",
    "--extendedDiagnostics",
  ];
  const report = await promisify(execFile)(process.execPath, args, { cwd: root }).then(
    ({ stdout }) => stdout,
    (failure: { readonly stdout: string }) => failure.stdout,
  );
  const errors = report.split("\n").filter((line) => line.includes("error TS"));
  return { report: errors.join("\n"), instantiations: Number(/Instantiations:\s+(\d+)/.exec(report)?.[1]) };
}

/** A pipeline of stages that read each other, each going on to the next or back to the first. */
function pipelineOf(count: number): string {
  const core = relative(folder, join(root, "packages/core/src/definition"));
  const lines = [
    'import { z } from "zod";',
    `import { done, fail, to } from "${core}/choice.ts";`,
    `import { pipeline } from "${core}/pipeline.ts";`,
    `import { stage } from "${core}/agents/stage.ts";`,
  ];
  const names = Array.from({ length: count }, (_, index) => `s${index}`);
  for (const [index, name] of names.entries()) {
    const before = index === 0 ? "" : `reads: { s${index - 1} }, `;
    const prompt = index === 0 ? '"x"' : `(ctx) => String(ctx.upstream.s${index - 1}?.f${index - 1})`;
    lines.push(
      `const ${name} = stage({ ${before}inputSchema: z.object({ i${index}: z.number() }), prompt: ${prompt}, completionTool: "t", ` +
        `completionSchema: z.object({ f${index}: z.string(), list: z.array(z.number()) }), turnCap: 1 });`,
    );
  }
  const routes = names.map((name, index) =>
    index === count - 1
      ? `${name}: ({ output }) => done(output.f${index})`
      : `${name}: { completed: ({ output }, ctx) => (ctx.upstream.s0 && output.list.length ? to("s${index + 1}", { i${index + 1}: 1 }) : to("s0", { i0: 2 })), failed: (r) => fail(r.message) }`,
  );
  lines.push(
    `export const p = pipeline({ id: "p", input: z.object({ task: z.string() }), stages: { ${names.join(", ")} }, initial: "s0", next: { ${routes.join(",\n")} } });`,
    `export const output: typeof p extends import("${core}/types.ts").Pipeline<{ task: string }, infer O> ? O : never = "text";`,
  );
  return lines.join("\n");
}

async function instantiationsOf(count: number): Promise<number> {
  const file = join(folder, `p${count}.ts`);
  writeFileSync(file, pipelineOf(count));
  const { report, instantiations } = await check(file);
  expect(report).toBe("");
  return instantiations;
}

test("definitions infer what they should and refuse what they must", async () => {
  expect((await check(join(root, "test/types/definition.test-d.ts"))).report).toBe("");
});

test("60 stages that read each other stay within a budget of type instantiations", async () => {
  // 177,000 when this was written: 0.2 to 0.4 s. Types that grow with the square of the stages would need millions.
  expect(await instantiationsOf(60)).toBeLessThan(250_000);
});
