import { expect, onTestFinished, test } from "vitest";
import { startAnthropicServer } from "../support/anthropic-server.ts";
import { at, desk, type Ended, printed, textAt } from "../support/command.ts";
import { deskHere } from "../support/command-here.ts";
import type { ServerReply } from "../support/sse-server.ts";

// What the command does when a provider fails.

const JSON_OUT = ["--output-format", "json"];
const WRITES = (fields: string): string => `id: publish
initial: writing
states:
  writing:
    instructions: Write about {{ctx.task}}.
    ${fields}
    on: { WRITTEN: complete }
  complete: { type: final, outcome: completed }
`;
const KEY = "sk-ant-0123456789abcdef";
const written: ServerReply = { calls: [{ name: "transition", input: { event: "WRITTEN", data: {} } }] };

async function world(answer: (key: string) => ServerReply, fields = "turn_cap: 9") {
  const here = deskHere();
  here.write("publish.yaml", WRITES(fields));
  const server = await startAnthropicServer(({ headers }) => answer(String(headers["x-api-key"])));
  onTestFinished(() => server.close());
  const env = { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: server.url };
  const run = async (...more: readonly string[]): Promise<Ended> =>
    await here.sluice(["run", "publish.yaml", "a task", "--model", "anthropic/claude-sonnet-4-5", ...more], { env });
  return { here, server, env, run };
}
const refused: ServerReply = { status: 401, error: { type: "authentication_error", message: "invalid x-api-key" } };

test("a refused key suspends the run with exit code 3, and resume continues it with another one", async () => {
  const { here, env, run } = await world((key) => (key === KEY ? refused : written));
  const ended = await run(...JSON_OUT);
  expect(ended.code).toBe(3);
  const runId = textAt(printed(ended), "runId");
  expect(at(printed(ended), "suspended")).toMatchObject({
    reason: "provider",
    code: "unauthorized",
    message: expect.stringContaining("HTTP 401"),
    faults: [{ executionId: "writing#1", code: "unauthorized" }],
    resume: `sluice resume ${runId}`,
  });
  expect(ended.stderr).toMatch(/the provider failed in writing#1: HTTP 401.*\(unauthorized\)/);
  expect(ended.stderr).toContain(`to continue where it stopped: sluice resume ${runId}\n`);

  expect((await here.sluice(["runs"])).stdout).toMatch(/suspended .*a task \(the provider failed: unauthorized\)/);
  const listed = await here.sluice(["runs", ...JSON_OUT]);
  expect(at(printed(listed), "runs", 0)).toMatchObject({ suspended: "provider", faults: [{ code: "unauthorized" }] });
  const shown = await here.sluice(["show", runId]);
  expect(shown.stdout).toMatch(/suspended \(a provider failed\)$/m);
  expect(shown.stdout).toMatch(/^the provider failed in writing#1: HTTP 401/m);

  const other = { ...env, ANTHROPIC_API_KEY: "sk-ant-another-one-0123456789" };
  const done = await here.sluice(["resume", runId, ...JSON_OUT], { env: other });
  expect([done.code, textAt(printed(done), "status")]).toEqual([0, "completed"]);
  for (const look of [
    ["audit", runId, "--verify"],
    ["replay", runId],
  ])
    expect((await here.sluice(look)).code).toBe(0);
});

test("of two processes that resume a run that a provider suspended, one continues it, and the other says which one has it", async () => {
  let isDown = true;
  const reached = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  let asked = 0;
  const server = await startAnthropicServer(async () => {
    if (isDown) return refused;
    asked += 1;
    reached.resolve();
    await released.promise;
    return written;
  });
  onTestFinished(() => server.close());
  const here = desk();
  here.write("publish.yaml", WRITES("turn_cap: 9"));
  const env = { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: server.url };
  const model = ["--model", "anthropic/claude-sonnet-4-5"];
  const suspended = await here.sluice(["run", "publish.yaml", "a task", ...model, ...JSON_OUT], { env });
  expect(at(printed(suspended), "suspended", "reason")).toBe("provider");
  const runId = textAt(printed(suspended), "runId");
  isDown = false;
  const both = [0, 1].map(() => here.start(["resume", runId, ...JSON_OUT], { env }));
  await reached.promise;
  const loser = await Promise.race(both.map(({ ended }) => ended));
  const [winner] = both.filter(({ child }) => child.exitCode === null);
  expect(loser.code).toBe(4);
  expect(at(printed(loser), "error")).toMatchObject({
    code: "run_owned",
    message: expect.stringContaining(`process ${winner?.child.pid}`),
  });
  released.resolve();
  const continued = await winner?.ended;
  expect([continued?.code, asked]).toEqual([0, 1]);
  expect((await here.sluice(["audit", runId, "--verify"])).code).toBe(0);
});

test("a quota that ends at a time makes the run due then: wake continues it", async () => {
  let isOut = true;
  const message = "You are out of quota. Please try again in 3h12m.";
  const { here, env, run } = await world(() =>
    isOut ? { status: 429, error: { type: "insufficient_quota", message } } : written,
  );
  const ended = await run(...JSON_OUT);
  const runId = textAt(printed(ended), "runId");
  const retryAt = at(printed(ended), "suspended", "retryAt");
  expect(Number(retryAt) - Date.now()).toBeGreaterThan(3 * 3_600_000);
  expect(at(printed(ended), "suspended", "wakeAt")).toBe(retryAt);
  expect(ended.stderr).toMatch(/sluice serve, or sluice wake, continues it at \d{4}-.*Z \(in 3h1[12]m\)/);
  const idle = await here.sluice(["wake"], { env });
  expect(idle.stdout).toBe("no run is due\n");
  isOut = false;
  const done = await here.sluice(["resume", runId], { env });
  expect(done.code).toBe(0);
});

test("--on-provider-fault fail fails the stage, and so does the field of a workflow", async () => {
  const byFlag = await world(() => refused);
  const failed = await byFlag.run("--on-provider-fault", "fail", ...JSON_OUT);
  expect([failed.code, at(printed(failed), "error", "code")]).toEqual([1, "model"]);
  const byField = await world(() => refused, "on_provider_fault: fail");
  expect((await byField.run()).code).toBe(1);
});

test("a config sets the retries, and what follows them", async () => {
  const { here, server, run } = await world(() => ({ status: 500, error: { type: "api_error", message: "no" } }));
  here.write(
    "sluice.config.mjs",
    'export default { retry: { maxAttempts: 2, initialMs: 1 }, onProviderFault: "fail" };\n',
  );
  const failed = await run("--trust", ...JSON_OUT);
  expect([failed.code, at(printed(failed), "error", "code"), server.requests.length]).toEqual([1, "model", 2]);
  here.write("sluice.config.mjs", "export default { retry: { maxAttempts: 0 } };\n");
  const wrong = await run("--trust");
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("retry.maxAttempts")]);
});

test("a key that is missing at the resume is an error that names the variable, and the run stays suspended", async () => {
  const { here, env, run } = await world(() => refused);
  const runId = textAt(printed(await run(...JSON_OUT)), "runId");
  const { ANTHROPIC_API_KEY: _lost, ...without } = env;
  const ended = await here.sluice(["resume", runId], { env: without });
  expect([ended.code, ended.stderr]).toEqual([4, expect.stringContaining("ANTHROPIC_API_KEY")]);
  const shown = await here.sluice(["show", runId, ...JSON_OUT]);
  expect(printed(shown)).toMatchObject({ status: "suspended", suspended: "provider" });
});
