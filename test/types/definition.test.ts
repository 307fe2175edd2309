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

interface Compiled {
  /** The first line of each error. */
  readonly report: string;
  /** Each error with its explanation. */
  readonly errors: readonly string[];
  /** How many types the compiler had to make. */
  readonly instantiations: number;
}

/** Runs the compiler over one file. */
async function check(file: string, options: Readonly<Record<string, unknown>> = {}): Promise<Compiled> {
  const config = join(folder, `${relative(root, file).replaceAll(/\W/g, "-")}.json`);
  const own = { rootDir: root, noEmit: true, composite: false, declaration: false, declarationMap: false };
  const compilerOptions = { ...own, ...options };
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
  const lines = report.split("\n");
  const errors: string[] = [];
  for (const line of lines) {
    if (line.includes("error TS")) errors.push(line);
    else if (line.startsWith(" ") && errors.length > 0) errors.push(`${errors.pop()}\n${line}`);
  }
  const firsts = lines.filter((line) => line.includes("error TS"));
  return { report: firsts.join("\n"), errors, instantiations: Number(/Instantiations:\s+(\d+)/.exec(report)?.[1]) };
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

/** Choices with a wrong name or input, in the compiler's order. */
const WRONG: Readonly<Record<string, readonly [choice: string, said: string]>> = {
  "a move": ['next: { plan: () => to("exceute") }', `Did you mean '"execute"'?`],
  "a move with an input": ['next: { plan: () => to("reveiw", { focus: "x" }) }', `Did you mean '"review"'?`],
  "one of two moves": [
    'next: { plan: ({ output }) => (output.steps.length > 3 ? to("exceute") : to("review", { focus: "" })) }',
    `Did you mean '"execute"'?`,
  ],
  "a route by status": [
    'next: { plan: { completed: () => to("execute"), failed: () => to("reveiw") } }',
    `Did you mean '"review"'?`,
  ],
  "a declared route": [
    'next: { plan: route(["reveiw"], () => to("reveiw", { focus: "" })) }',
    `Did you mean '"review"'?`,
  ],
  "a sibling": ['next: { plan: () => fanOut(["exceute", "plan"], { join: "review" }) }', `Did you mean '"execute"'?`],
  "a join": ['next: { plan: () => fanOut(["plan"], { join: "reveiw" }) }', `Did you mean '"review"'?`],
  "a list": [
    'next: { plan: () => forEach("reveiw", [{ focus: "" }], { join: "execute" }) }',
    `Did you mean '"review"'?`,
  ],
  "a row": ['transitions: [{ from: "plan", on: "success", to: "reveiw" }]', `Did you mean '"review"'?`],
  "a row with a move": ['transitions: [{ from: "plan", on: "success", to: to("reveiw") }]', `Did you mean '"review"'?`],
  "an input of another type": [
    'next: { plan: () => to("review", { focus: 3 }) }',
    "Type 'number' is not assignable to type 'string'",
  ],
  "an input that is missing": ['next: { plan: () => to("review") }', "Type 'undefined' is not assignable to type"],
  "an item of another type": [
    'next: { plan: () => forEach("review", [{ focus: 3 }], { join: "execute" }) }',
    "Type 'number' is not assignable to type 'string'",
  ],
};

test.each([{}, { exactOptionalPropertyTypes: false }])(
  "an error about a target names the nearest state, and one about an input what it takes, with %o",
  async (options) => {
    const core = relative(folder, join(root, "packages/core/src/index.ts"));
    const made = (name: string, more: string): string =>
      `const ${name} = stage({ ${more} prompt: "x", completionTool: "t", completionSchema: z.object({ steps: z.array(z.string()) }), turnCap: 1 });`;
    const lines = [
      'import { z } from "zod";',
      `import { fanOut, forEach, pipeline, route, stage, to } from "${core}";`,
      made("plan", ""),
      made("execute", "reads: { plan },"),
      made("review", "inputSchema: z.object({ focus: z.string() }),"),
      'const all = { id: "p", input: z.object({ task: z.string() }), stages: { plan, execute, review }, initial: "plan" } as const;',
      ...Object.values(WRONG).map(([choice], index) => `export const p${index} = pipeline({ ...all, ${choice} });`),
    ];
    const file = join(folder, `wrong-${Object.keys(options).length}.ts`);
    writeFileSync(file, lines.join("\n"));
    const { errors } = await check(file, { ...options, noUnusedLocals: false });
    const said = Object.entries(WRONG).map(([what, [, expected]], index) => {
      const error = errors.find((text) =>
        text.includes(`.ts(${lines.length - Object.keys(WRONG).length + index + 1},`),
      );
      return error?.includes(expected) === true ? what : `${what}: ${error ?? "no error"}`;
    });
    expect(said).toEqual(Object.keys(WRONG));
  },
);

test("60 stages that read each other stay within a budget of type instantiations", async () => {
  // 90,000 when this was written: 0.2 s. Types that grow with the square of the stages would need millions.
  expect(await instantiationsOf(60)).toBeLessThan(130_000);
});
