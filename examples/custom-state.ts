// A custom kind of state that runs a command instead of a model. Like a stage, it has a typed and checked output, its step is
// journaled before it executes, and a route decides what comes next.
//   node examples/custom-state.ts
import { spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { done, fail, field, type Json, pipeline, type StateExecutor, stage, state, to } from "@sluice/core";
import { createSession, scriptedModel } from "@sluice/stages";
import { z } from "zod";

type Ran = { readonly exitCode: number | null; readonly output: string };

/** Runs states of kind `command`. An executor takes steps only through its scope, and returns failures as values. */
const command: StateExecutor = {
  kind: "command",
  // Recorded before `act`: a resumed run continues with it.
  init: ({ options }) => ({ argv: z.object({ argv: z.array(z.string()).min(1) }).parse(options).argv }),
  act: async (init, { steps, ctx }) => {
    const spent = { turns: 0, usage: { inputTokens: 0, outputTokens: 0 } };
    const ran = await steps.run<Json>(
      "command",
      ({ opened, signal }) => {
        // An earlier process opened this step without recording its end: the command may have run.
        if (opened !== undefined && opened.incarnation !== steps.incarnation) return null;
        return run(argvOf(init), ctx.workspace, signal);
      },
      { open: { events: [] } },
    );
    if (ran === null)
      return { ...spent, status: "failed", code: "tool", message: "the command may have run before this process" };
    return { ...spent, status: "completed", output: ran };
  },
};

function argvOf(init: Json): readonly string[] {
  return z.array(z.string()).parse(field(init, "argv"));
}

function run([program = "", ...args]: readonly string[], cwd: string, signal: AbortSignal): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, signal, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => {
        output = (output + text).slice(-2000);
      });
    child.on("error", reject);
    child.on("close", (exitCode) => resolve({ exitCode, output }));
  });
}

const tests = state({
  kind: "command",
  options: { argv: [process.execPath, "--test"] },
  // Checks the executor's output, and types `ctx.upstream.tests`.
  output: z.object({ exitCode: z.number().nullable(), output: z.string() }),
});
const explain = stage({
  reads: { tests },
  prompt: (ctx) => `Say in one sentence why these tests fail:\n${ctx.upstream.tests?.output}`,
  allowedTools: ["Read"],
  completionTool: "submit_reason",
  completionSchema: z.object({ reason: z.string() }),
  turnCap: 5,
});
const check = pipeline({
  id: "check",
  input: z.object({ task: z.string() }),
  stages: { tests, explain },
  initial: "tests",
  next: {
    tests: {
      completed: ({ output }) => (output.exitCode === 0 ? done("the tests pass") : to("explain")),
      failed: ({ message }) => fail(message),
    },
    explain: ({ output }) => done(output.reason),
  },
});

const workspace = mkdtempSync(join(tmpdir(), "sluice-"));
const failing = 'require("node:test")("two and two", () => require("node:assert").equal(2 + 2, 5));\n';
writeFileSync(join(workspace, "sum.test.cjs"), failing);
const reason = { reason: "The test expects 2 + 2 to be 5." };
const script = scriptedModel({
  stages: { explain: [{ calls: [{ tool: "submit_reason", input: reason }] }] },
});
const session = createSession({ model: process.env.SLUICE_MODEL ?? script, cwd: workspace, executors: [command] });
const result = await session.run(check, { task: "Do the tests pass?" });
console.log(result.status, result.status === "completed" ? result.output : "");
console.log(
  result.stages.map(({ executionId, status, turns }) => `${executionId} ${status}, ${turns} turns`).join("; "),
);
await session.close();
