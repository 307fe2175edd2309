import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  at,
  call,
  type Desk,
  desk,
  type Ended,
  finishes,
  PIPELINES,
  printed,
  textAt,
  turn,
} from "../support/command.ts";
import { deskHere, forkedRun } from "../support/command-here.ts";

const GUARD = join(import.meta.dirname, "../fixtures/command/no-effects.ts");
const JSON_OUT = ["--output-format", "json"];

/** Each file of the store with a digest of what it holds. */
function bytesOf(folder: string): Readonly<Record<string, string>> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    files.map(({ parentPath, name }) => {
      const file = join(parentPath, name);
      return [file, createHash("sha256").update(readFileSync(file)).digest("hex")];
    }),
  );
}

const guarded = (here: Desk, ...args: readonly string[]): Promise<Ended> =>
  here.sluice(["replay", ...args], { node: ["--import", GUARD] });

const PLAN = { summary: "trim", steps: ["src/a.ts: trim"], files: ["src/a.ts"], risks: [] };
const DIFF = { summary: "trims", changes: [{ file: "src/a.ts", change: "trims" }], deviations: [] };
const REVIEW = { verdict: "approve", summary: "good", findings: [] };

test("a run of codeReview is replayed as it was recorded, without a socket, a process or a write", async () => {
  const here = desk();
  here.write("src/a.ts", "export const a = 1;\n");
  const model = here.script({
    plan: [
      turn(call("Read", { file_path: "src/a.ts" }), call("Grep", { pattern: "a" })),
      turn(call("submit_plan", PLAN)),
    ],
    execute: [
      turn(call("Read", { file_path: "src/a.ts" })),
      turn(
        call("Edit", { file_path: "src/a.ts", old_string: "1", new_string: "2" }),
        call("Bash", { command: "npm test" }),
      ),
      turn(call("Edit", { file_path: "../outside.ts", old_string: "1", new_string: "2" })),
      turn(call("submit_diff", DIFF)),
    ],
    review: [turn(call("submit_review", {})), turn(call("submit_review", REVIEW))],
  });
  const ran = printed(await here.sluice(["run", "codeReview", "trim it", "--model", model, ...JSON_OUT]));
  expect(at(ran, "denied")).toMatchObject([{ cause: "no_interactor" }, { cause: "limit" }]);
  const runId = textAt(ran, "runId");
  // The world is another by now: nothing of it is looked at.
  here.write("src/a.ts", "something else\n");

  const before = bytesOf(here.store);
  const replayed = await guarded(here, runId, ...JSON_OUT);
  expect([replayed.code, replayed.stderr]).toEqual([0, ""]);
  expect(printed(replayed)).toMatchObject({
    runId,
    identical: true,
    status: "completed",
    changes: [],
    divergence: null,
  });
  expect(bytesOf(here.store)).toEqual(before);
  expect(readFileSync(join(here.folder, "src/a.ts"), "utf8")).toBe("something else\n");
  // The guard is one.
  const held = await here.sluice(["export", runId], { node: ["--import", GUARD] });
  expect([held.code, held.stderr]).toEqual([99, expect.stringContaining("TOUCHED")]);
});

const MINE = `import { done, fanOut, pipeline, stage, to } from "@sluice/core";
import { z } from "zod";
const finish = { completionTool: "finish", completionSchema: z.object({ text: z.string() }), turnCap: 5 };
const first = stage({ prompt: "Look at it.", allowedTools: ["Read"], ...finish });
const left = stage({ prompt: "Left.", allowedTools: ["Read"], ...finish });
const right = stage({ prompt: "Right.", allowedTools: ["Write(notes/**)"], ...finish });
const last = stage({ prompt: "Say it.", allowedTools: [], ...finish });
export const mine = pipeline({
  id: "mine",
  input: z.object({ task: z.string() }),
  stages: { first, left, right, last },
  initial: "first",
  next: {
    first: ({ output }) => (output.text === "go" ? fanOut(["left", "right"], { join: "last" }) : to("last")),
    last: ({ output }) => done(output.text),
  },
});
`;

describe("a pipeline that was changed", () => {
  test("is reported as the first divergence, with what was recorded and what comes now", async () => {
    const here = desk();
    here.write("mine.ts", MINE);
    const write = call("Write", { file_path: "other.md", content: "x" });
    const model = here.script({
      first: [turn(write), finishes("go")],
      left: [turn(call("Read", { file_path: "mine.ts" })), finishes("l")],
      right: [turn(call("Write", { file_path: "notes/a.md", content: "x" }), write), finishes("r")],
      last: [finishes("end")],
    });
    const runId = textAt(printed(await here.sluice(["run", "mine.ts", "x", "--model", model, ...JSON_OUT])), "runId");
    const plain = await guarded(here, runId);
    expect([plain.code, plain.stderr]).toEqual([0, ""]);
    expect(plain.stdout).toContain("the replay matches the record");

    const changed = async (from: string, to: string): Promise<Ended> => {
      expect(MINE).toContain(from);
      here.write("mine.ts", MINE.replace(from, to));
      return await here.sluice(["replay", runId, "--trust", ...JSON_OUT]);
    };
    here.write("mine.ts", `${MINE}\n`);
    const untrusted = await here.sluice(["replay", runId]);
    expect([untrusted.code, untrusted.stderr]).toEqual([2, expect.stringContaining("--trust")]);
    const prompt = printed(await changed('"Right."', '"To the right."'));
    expect(prompt).toMatchObject({
      identical: false,
      divergence: {
        runId: `${runId}/fan-1/right`,
        executionId: "right#1",
        attempt: 1,
        part: "value",
        path: "$.init.system",
      },
    });
    expect(textAt(prompt, "divergence", "message")).toContain("  - Right.\n  + To the right.\n");
    expect(at(prompt, "changes")).toContainEqual(expect.stringContaining("state right: prompt"));

    const route = printed(await changed('=== "go"', '=== "stay"'));
    expect(at(route, "divergence")).toMatchObject({
      runId,
      executionId: "first#1",
      path: "$.next.choice.kind",
      recorded: "fanOut",
      now: "to",
      means: "the route decides differently",
    });

    const schema = printed(await changed("z.object({ text: z.string() })", "z.object({ text: z.string().min(3) })"));
    expect(at(schema, "divergence")).toMatchObject({ executionId: "first#1", turn: 2, callId: "t2.c0" });
    expect(textAt(schema, "divergence", "means")).toContain("schema");

    const tools = printed(await changed('allowedTools: ["Read"]', 'allowedTools: ["Read", "Write(other.md)"]'));
    expect(textAt(tools, "divergence", "message")).toContain(
      "+ - You may use these tools without approval: Read, Write(other.md).",
    );
    expect(textAt(tools, "divergence", "means")).toContain("allowedTools");

    here.write("mine.ts", MINE.replace('=== "go"', '.startsWith("g")'));
    const same = await here.sluice(["replay", runId, "--trust"]);
    expect([same.code, same.stdout]).toEqual([0, expect.stringContaining("without effect on this run:")]);
  });
});

describe("an export with values", () => {
  test("is private, verifies, and is replayed on a machine that has only the file", async () => {
    const here = deskHere();
    const runId = await forkedRun(here);
    const made = await here.sluice(["export", runId, "--values", "-o", "run.jsonl"]);
    expect([made.code, made.stdout]).toEqual([0, expect.stringContaining("review it before you share it")]);
    const file = join(here.folder, "run.jsonl");
    expect((statSync(file).mode & 0o777).toString(8)).toBe("600");
    expect((await here.sluice(["audit", "run.jsonl", "--verify"])).code).toBe(0);
    expect((await here.sluice(["replay", "run.jsonl"])).code).toBe(0);

    const elsewhere = deskHere();
    const text = readFileSync(file, "utf8");
    elsewhere.write("run.jsonl", text);
    const untrusted = await elsewhere.sluice(["replay", "run.jsonl"]);
    expect([untrusted.code, untrusted.stderr]).toEqual([
      2,
      expect.stringContaining("that version of the file was never named here"),
    ]);
    const forked = `${PIPELINES}#forked`;
    expect((await elsewhere.sluice(["replay", "run.jsonl", "--pipeline", forked])).code).toBe(0);

    elsewhere.write("run.jsonl", text.replace('\\"text\\":\\"end\\"', '\\"text\\":\\"END\\"'));
    const damaged = await elsewhere.sluice(["replay", "run.jsonl", "--pipeline", forked]);
    expect([damaged.code, damaged.stderr]).toEqual([4, expect.stringContaining("was changed")]);
  });

  test("is what a replay needs: an export without them, an unknown run and a sibling are refused", async () => {
    const here = deskHere();
    const runId = await forkedRun(here);
    await here.sluice(["export", runId, "-o", "run.jsonl"]);
    const bare = await here.sluice(["replay", "run.jsonl"]);
    expect([bare.code, bare.stderr]).toEqual([2, expect.stringContaining("sluice export --values")]);
    expect((await here.sluice(["replay", "rnone"])).code).toBe(4);
    expect((await here.sluice(["replay", `${runId}/fan-1/left`])).code).toBe(4);
    expect((await here.sluice(["replay", runId], { env: { SLUICE_RUN: runId } })).code).toBe(2);
  });
});

test("from a place in the run is what sluice fork does, which is said: a replay begins no run", async () => {
  const here = deskHere();
  const runId = await forkedRun(here);
  const refused = await here.sluice(["replay", runId, "--from", "join#1"]);
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringContaining(`: sluice fork ${runId} --from 'join#1'`),
  ]);
  expect(printed(await here.sluice(["runs", ...JSON_OUT]))).toMatchObject({ runs: [{ runId }] });
});
