import { existsSync } from "node:fs";
import { join } from "node:path";
import { visible } from "@sluice/core/runtime";
import { describe, expect, test } from "vitest";
import { at, call, desk, finishes, lines, PIPELINES, printed, textAt, turn } from "../support/command.ts";
import { deskHere } from "../support/command-here.ts";

const single = `${PIPELINES}#single`;
const writesOutside = turn(call("Write", { file_path: "x.txt", content: "x" }));
const RESULT_KEYS = ["denied", "error", "output", "runId", "stages", "status", "usage"];

describe("each outcome in each format", () => {
  const outcomes: readonly {
    readonly name: string;
    readonly pipeline: string;
    readonly stages: Parameters<ReturnType<typeof desk>["script"]>[0];
    readonly flags?: readonly string[];
    readonly code: number;
    readonly status: string;
    readonly error?: string;
    readonly denied?: number;
  }[] = [
    {
      name: "completed",
      pipeline: single,
      stages: { work: [finishes()] },
      flags: ["--wait"],
      code: 0,
      status: "completed",
    },
    {
      name: "failed by its route",
      pipeline: `${PIPELINES}#giving`,
      stages: { first: [finishes()] },
      code: 1,
      status: "failed",
      error: "failed",
    },
    { name: "failed by its model", pipeline: single, stages: { work: [] }, code: 1, status: "failed", error: "model" },
    {
      name: "completed with a denied call",
      pipeline: single,
      stages: { work: [writesOutside, finishes()] },
      code: 0,
      status: "completed",
      denied: 1,
    },
    {
      name: "the same under --fail-on-denied",
      pipeline: single,
      stages: { work: [writesOutside, finishes()] },
      flags: ["--fail-on-denied"],
      code: 5,
      status: "completed",
      denied: 1,
    },
    {
      name: "suspended",
      pipeline: single,
      stages: { work: [writesOutside, finishes()] },
      flags: ["--wait", "1ms"],
      code: 3,
      status: "suspended",
    },
  ];

  test.each(outcomes)(
    "$name: exit $code",
    async ({ pipeline, stages, flags = [], code, status, error, denied = 0 }) => {
      const { sluice, script } = deskHere();
      const args = ["run", ...flags, pipeline, "the", "task", "--model", script(stages)];
      const as = (format: string) => sluice([...args, "--output-format", format, "--store", `store-${format}`]);
      const [text, json, stream] = [await as("text"), await as("json"), await as("stream-json")];
      expect([text.code, json.code, stream.code]).toEqual([code, code, code]);

      expect(text.stdout).toMatch(new RegExp(`^${status} r[a-z0-9]+$`, "m"));

      const report = printed(json);
      expect(
        Object.keys(report)
          .filter((key) => key !== "suspended")
          .toSorted(),
      ).toEqual(RESULT_KEYS);
      expect(report).toMatchObject({ status });
      expect(at(report, "error", "code")).toBe(error);
      expect(at(report, "denied")).toHaveLength(denied);

      const events = lines(stream);
      expect(events.at(0)).toMatchObject({ type: "run.started" });
      expect(events.at(-1)).toMatchObject({ type: "result", status });
      expect(events.slice(0, -1).every((event) => typeof event.id === "string")).toBe(true);

      // A reader of stderr alone learns of denied calls, once.
      for (const { stderr } of [text, json, stream]) {
        expect(stderr.match(/call was denied/g)?.length ?? 0).toBe(denied);
      }
    },
  );

  test("a completed run reports its output, its stages with their usage, and what was denied", async () => {
    const { sluice, script } = desk();
    const model = script({ work: [writesOutside, finishes("hello")] });
    const report = printed(await sluice(["run", single, "two words", "--model", model, "--output-format", "json"]));
    expect(report.output).toEqual({ text: "hello", input: { task: "two words" } });
    expect(at(report, "stages", 0)).toMatchObject({
      executionId: "work#1",
      status: "completed",
      turns: 2,
      attempts: 1,
    });
    expect(report.denied).toMatchObject([
      { executionId: "work#1", callId: "t1.c0", tool: "Write", cause: "no_interactor" },
    ]);
    expect(at(report, "usage", "inputTokens")).toBeGreaterThan(0);
  });

  test("a suspended run reports its stages so far, the open request and the command that continues", async () => {
    const { sluice, script } = desk();
    const model = script({ work: [writesOutside, finishes()] });
    const ended = await sluice(["run", single, "x", "--model", model, "--wait=1ms", "--output-format", "json"]);
    const report = printed(ended);
    expect(report).toMatchObject({ status: "suspended", output: null, error: null, suspended: { reason: "waiting" } });
    expect(at(report, "stages", 0)).toMatchObject({ executionId: "work#1", status: "unfinished" });
    expect(at(report, "suspended", "requests", 0)).toMatchObject({
      kind: "grantStageTool",
      requestId: "work#1/a1/t1.c0",
    });
    // Without --wait, the resumed run would deny what is open.
    const runId = textAt(report, "runId");
    const resume = `sluice resume ${runId} --wait`;
    expect(textAt(report, "suspended", "resume")).toBe(resume);
    expect(ended.stderr).toContain(resume);
    const shown = await sluice(["show", runId, "--output-format", "json"]);
    expect(textAt(printed(shown), "resume")).toBe(resume);
  });
});

describe("text", () => {
  test("one line per boundary: entered, asked, denied, ran, completed, routed, then the result", async () => {
    const { sluice, script, write } = desk();
    write("a.txt", "content");
    const model = script({ work: [writesOutside, turn(call("Read", { file_path: "a.txt" })), finishes("bye")] });
    const { stdout } = await sluice(["run", single, "x", "--model", model]);
    const whats = stdout
      .split("\n")
      .map((line) => /^\S+\s+(entered|requests|denied|ran|completed|ends)\b/.exec(line)?.[1]);
    expect(whats.filter((what) => what !== undefined)).toEqual([
      "entered",
      "requests",
      "denied",
      "ran",
      "completed",
      "ends",
    ]);
    expect(stdout).toMatch(/ran +Read\(file_path: "a\.txt"\)/);
    expect(stdout.trimEnd()).toMatch(/"bye"[\s\S]*\}$/);
  });

  test("nothing of a model's or a file's text reaches the terminal as an escape sequence, in any format", async () => {
    const { sluice, script, write } = desk();
    const hostile = "\u001b]0;owned\u0007\u001b[2J\u009b31m\u202eevil\r";
    write("a.txt", hostile);
    const reads = turn(call("Read", { file_path: "a.txt" }), call(`Wr${hostile}ite`, { [hostile]: hostile }));
    const model = script({ work: [{ text: hostile, ...reads }, finishes(hostile)] });
    for (const format of ["text", "json", "stream-json"]) {
      const { stdout, stderr, code } = await sluice([
        "run",
        single,
        hostile,
        "--model",
        model,
        "--output-format",
        format,
      ]);
      expect(code).toBe(0);
      expect([visible(stdout), visible(stderr)]).toEqual([stdout, stderr]);
      if (format === "json") expect(textAt(printed({ code, stdout, stderr }), "output", "text")).toBe(hostile);
    }
  });

  test("there is no colour where there is no terminal, and NO_COLOR wins over everything but FORCE_COLOR", async () => {
    const { sluice, script } = desk();
    const args = ["run", single, "x", "--model", script({ work: [finishes()] })];
    const [plain, forced] = await Promise.all([
      sluice(args),
      sluice([...args, "--store", "other"], { env: { FORCE_COLOR: "1" } }),
    ]);
    expect(plain.stdout).not.toContain("\u001b[");
    expect(forced.stdout).toContain("\u001b[");
  });
});

describe("input", () => {
  test("--input takes text, JSON and an object on stdin; the words of the task are joined", async () => {
    const { sluice, script } = desk();
    const model = script({ work: [finishes()] });
    const args = ["run", single, "say", "it", "--model", model, "--output-format", "json"];
    const given = await sluice([...args, "--input", "mood=a=b", "--input", "times:=3"]);
    expect(at(printed(given), "output", "input")).toEqual({ task: "say it", mood: "a=b", times: 3 });
    const piped = await sluice([...args, "--input", "-"], { input: '{"mood":"calm"}' });
    expect(at(printed(piped), "output", "input")).toEqual({ task: "say it", mood: "calm" });
  });

  test.each([
    [["--input", "mood"], "key=text"],
    [["--input", "times:=three"], "not JSON"],
    [["--input", "-"], "stdin is not JSON"],
    [["--input", "task=other"], "set twice"],
    [["--input", 'times:="three"'], "$.times"],
  ])("%j is refused and leaves nothing behind", async (flags, why) => {
    const { sluice, script, store } = deskHere();
    const { code, stderr } = await sluice(["run", single, "x", "--model", script({ work: [finishes()] }), ...flags]);
    expect(code).toBe(2);
    expect(stderr).toContain(why);
    expect(existsSync(store)).toBe(false);
  });
});

describe("the reader of stdout", () => {
  test("may go away: the run continues to its end", async () => {
    const { start, script, folder } = desk();
    const model = script({
      first: [turn(call("Write", { file_path: "one.txt", content: "1" })), { delayMs: 150, ...finishes() }],
      second: [turn(call("Write", { file_path: "two.txt", content: "2" })), finishes()],
    });
    const running = start(["run", `${PIPELINES}#writing`, "x", "--model", model]);
    await running.said("stdout", /entered/);
    running.child.stdout?.destroy();
    const { code, stderr } = await running.ended;
    expect([code, stderr]).toEqual([0, ""]);
    expect(existsSync(join(folder, "two.txt"))).toBe(true);
  });
});
