import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { call, desk, finishes, lines, PIPELINES, printed, textAt, turn } from "../support/command.ts";

const single = `${PIPELINES}#single`;
const slow = { delayMs: 60_000, ...finishes("never") };

test.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)("%s suspends the run, names the command that resumes it, and is exit %i", async (signal, code) => {
  const here = desk();
  const running = here.start([
    "run",
    single,
    "x",
    "--model",
    here.script({ work: [slow] }),
    "--output-format",
    "stream-json",
  ]);
  const [, runId = ""] = await running.said("stdout", /"runId":"(\w+)"[\s\S]*turn\.started/);
  running.child.kill(signal);
  const ended = await running.ended;
  expect(ended.code).toBe(code);
  expect(ended.stderr).toContain(`sluice resume ${runId}`);
  const report = lines(ended).at(-1);
  expect(report).toMatchObject({ type: "result", runId, status: "suspended", suspended: { reason: "interrupted" } });
  expect((await here.sluice(["runs"])).stdout).toMatch(new RegExp(`^${runId} +suspended`, "m"));
});

test("what was stopped continues with the line that was printed: finished calls are not repeated", async () => {
  const here = desk();
  const script = { first: [turn(call("Write", { file_path: "a.txt", content: "1" })), slow], second: [finishes()] };
  const model = here.script(script);
  const running = here.start(["run", `${PIPELINES}#writing`, "x", "--model", model]);
  await running.said("stdout", /ran +Write/);
  running.child.kill("SIGINT");
  const { stderr } = await running.ended;
  const [, line = ""] = /resume it with: sluice (.*)\n/.exec(stderr) ?? [];
  const again = here.script({ ...script, first: [script.first[0] ?? {}, finishes()], second: [finishes("end")] });
  const resumed = await here.sluice([...line.split(" "), "--model", again, "--output-format", "json"]);
  expect([resumed.code, printed(resumed).output]).toEqual([0, "end"]);
  const audit = await here.sluice(["audit", textAt(printed(resumed), "runId"), "--json"]);
  const events = printed(audit).events;
  const calls = Array.isArray(events) ? events.filter((event) => textAt(event, "type") === "call.started") : [];
  expect(calls).toHaveLength(1);
});

test("a second signal ends the process at once, and the run can still be resumed", async () => {
  const here = desk();
  const command = call("Bash", { command: "trap '' TERM INT; touch started; sleep 5" });
  const running = here.start([
    "run",
    `${PIPELINES}#bare`,
    "x",
    "--mode",
    "yolo",
    "--model",
    here.script({ open: [turn(command), finishes()] }),
  ]);
  const [, runId = ""] = await running.said("stdout", /started[\s\S]*entered/).then(async () => {
    await expect.poll(() => existsSync(join(here.folder, "started"))).toBe(true);
    return /(r[a-z0-9]{10})/.exec((await here.sluice(["runs"])).stdout) ?? [];
  });
  running.child.kill("SIGINT");
  await running.said("stderr", /suspending the run/);
  // Two signals within a tenth of a second are one key press.
  await new Promise((resolve) => setTimeout(resolve, 150));
  running.child.kill("SIGINT");
  const { code, stdout } = await running.ended;
  expect(code).toBe(130);
  expect(stdout).not.toContain("suspended");
  expect((await here.sluice(["runs"])).stdout).toMatch(new RegExp(`^${runId} +suspended`, "m"));
});
