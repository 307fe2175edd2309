import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Desk, desk } from "../support/command.ts";

const PLANNED = `import { done, pipeline, stage } from "@sluice/core";
import { z } from "zod";

const plan = stage({
  prompt: "Plan it.",
  assert: () => {
    throw new RangeError("it is no plan"); // not hunter2hunter2
  },
  allowedTools: [],
  completionTool: "submit",
  completionSchema: z.object({ text: z.string() }),
  turnCap: 2,
});

export const planned = pipeline({
  id: "planned",
  input: z.object({ task: z.string() }),
  stages: { plan },
  initial: "plan",
  next: { plan: ({ output }) => done(output.text) },
});
`;

/** A run that failed at `planned.ts:7:11`, and its id. */
async function failed(): Promise<{ readonly here: Desk; readonly run: string }> {
  const here = desk();
  here.write("planned.ts", PLANNED);
  const model = here.script({ plan: [{ calls: [{ tool: "submit", input: { text: "a" } }] }] });
  const { code, stdout, stderr } = await here.sluice(["run", "planned.ts", "x", "--headless", "--model", model], {
    env: { ANTHROPIC_API_KEY: "hunter2hunter2" },
  });
  expect(code).toBe(1);
  expect(stdout).toMatch(/\n {2}at planned\.ts:7:11\n/);
  expect(stderr).toContain("> 7 |");
  expect(stdout + stderr).not.toContain("hunter2");
  return { here, run: /^failed (r\w{10})$/m.exec(stdout)?.[1] ?? "" };
}

test("show and the report have the place; the report has the code only as it was when the run started", async () => {
  const { here, run } = await failed();
  expect((await here.sluice(["show", run])).stdout).toContain("at planned.ts:7:11");
  const page = async (name: string): Promise<string> => {
    expect((await here.sluice(["report", run, "-o", name])).code).toBe(0);
    return readFileSync(join(here.folder, name), "utf8");
  };
  const before = await page("before.html");
  expect(before).toContain("planned.ts:7:11");
  expect(before).toContain("throw new RangeError(");
  here.write("planned.ts", `// Another first line.\n${PLANNED}`);
  const after = await page("after.html");
  expect(after).toContain("planned.ts:7:11");
  expect(after).not.toContain("throw new RangeError(");
});

test("code that only moved in its file makes no difference to a replay", async () => {
  const { here, run } = await failed();
  here.write("planned.ts", PLANNED.replace("const plan", "// Two more lines.\n\nconst plan"));
  const { code, stdout, stderr } = await here.sluice(["replay", run, "--trust"]);
  expect({ code, stderr, stdout }).toMatchObject({ code: 0 });
});

test.each([
  { name: "--debug", args: ["--debug"], env: {} },
  { name: "SLUICE_DEBUG", args: [], env: { SLUICE_DEBUG: "1" } },
])("$name adds the stacks of an error and of its causes, without secrets", async ({ args, env }) => {
  const here = desk();
  here.write(
    "planned.ts",
    'const cause = new TypeError("hunter2hunter2");\nthrow new Error("the settings cannot be read", { cause });\n',
  );
  const key = { ANTHROPIC_API_KEY: "hunter2hunter2" };
  const words = ["run", "planned.ts", "x", "--model", here.script({})];
  const plain = await here.sluice(words, { env: key });
  expect(plain.stderr).not.toMatch(/\n {4}at /);
  const { code, stderr } = await here.sluice([...words, ...args], { env: { ...key, ...env } });
  expect(code).toBe(2);
  expect(stderr).toContain("caused by Error: the settings cannot be read");
  expect(stderr).toContain("caused by TypeError: ");
  // A stack of Sluice leads to its sources.
  expect(stderr).toMatch(/\n {4}at .*src\/project\/load\/load\.ts:\d+:\d+/);
  expect(stderr).not.toContain("hunter2");
});
