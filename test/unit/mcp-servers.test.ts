import type { Json } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { handClock } from "../support/hand-clock.ts";
import {
  BARE_ENV,
  type Call,
  callingPipeline,
  mcpSession,
  misbehaving,
  until,
  untilNoted,
  useServers,
} from "../support/mcp.ts";
import { dataOf, quiet, twoHosts } from "../support/run-kit.ts";
import { isAlive } from "../support/survivors.ts";

const act = "mcp__bad__act";

describe("a server that does not start", () => {
  test("stops the run before it begins, with its name and what it said, without keys", async () => {
    const { config } = misbehaving("dies-at-start", { env: { SERVICE_TOKEN: "tok_12345678abcdefgh" } });
    const { live } = mcpSession({ bad: config });
    const failure: unknown = await live
      .run(
        callingPipeline(async () => null),
        {},
      )
      .catch((thrown: unknown) => thrown);
    expect(failure).toMatchObject({ class: "Session", code: "mcp_server_failed" });
    expect(String(failure)).toMatch(
      /bad: it ended with exit code 3; its error output: no licence for \[redacted:SERVICE_TOKEN of bad\]/,
    );
    expect(await live.host.list()).toEqual([]);
  });

  test("names every one that failed, at once", async () => {
    const { live } = mcpSession({
      one: { command: "there-is-no-such-command" },
      two: { command: process.execPath, cwd: "there/is/no/such/folder" },
      three: misbehaving("fine").config,
    });
    const failure = live.run(
      callingPipeline(async () => null),
      {},
    );
    await expect(failure).rejects.toThrow(
      /one: there-is-no-such-command could not be started in .*ENOENT[\s\S]*two: .*ENOENT/,
    );
  });

  test("is given up after its start timeout and ended", async () => {
    const bad = misbehaving("silent");
    const { live } = mcpSession({ bad: bad.config });
    const run = live.run(
      callingPipeline(async () => null),
      {},
    );
    await until(() => live.clock.waiting() > 0);
    live.clock.turn(60_000);
    await expect(run).rejects.toThrow("bad: it did not answer within 60000 ms");
  });

  test("whose list of tools does not end is refused", async () => {
    const { live } = mcpSession({ bad: misbehaving("endless-pages").config });
    await expect(
      live.run(
        callingPipeline(async () => null),
        {},
      ),
    ).rejects.toThrow("its list of tools does not end");
  });

  test("is left out with a fault when it is optional, and tried again by the next run", async () => {
    const bad = misbehaving("dies-at-start", { optional: true });
    const { live, faults } = mcpSession({ bad: bad.config, fine: misbehaving("fine").config });
    const names = callingPipeline(async (_call, { offer }) => offer.tools.map(({ name }) => name));
    for (const times of [1, 2]) {
      const run = await live.run(names, {});
      expect(run).toMatchObject({ status: "completed", output: expect.arrayContaining(["mcp__fine__act"]) });
      expect(JSON.stringify(run)).not.toContain("mcp__bad__");
      expect(faults).toHaveLength(times);
      expect(faults.at(-1)).toContain("mcp:bad: it did not start: it ended with exit code 3");
      expect(bad.noted().filter((line) => line === "start")).toHaveLength(times);
    }
  });
});

describe("a server is started", () => {
  test("by the first run with a stage that could call it, once, and no other is", async () => {
    const [wanted, other] = [misbehaving("fine"), misbehaving("fine")];
    const { live } = mcpSession({ wanted: wanted.config, other: other.config });
    const none = callingPipeline(async (call) => call("Glob", { pattern: "*" }), ["Glob", "Read"]);
    await live.run(none, {});
    expect([wanted.noted(), other.noted()]).toEqual([[], []]);
    const some = callingPipeline(async (call) => call("mcp__wanted__act"), ["mcp__wan*"]);
    const runs = await Promise.all([live.run(some, {}), live.run(some, {}), live.run(some, {})]);
    expect(runs.map(({ status }) => status)).toEqual(["completed", "completed", "completed"]);
    expect(wanted.noted().filter((line) => line === "start")).toHaveLength(1);
    expect(other.noted()).toEqual([]);
  });

  test("by a stage without an envelope", async () => {
    const bad = misbehaving("fine");
    const { live } = mcpSession({ bad: bad.config });
    await live.run(
      callingPipeline(async () => null),
      {},
    );
    expect(bad.noted()).toContain("start");
  });

  test("without keys in its environment, but with those its settings give it, under the run's name", async () => {
    const { output, live, run } = await useServers(
      { bad: misbehaving("environment", { env: { MINE: "yes", SERVICE_TOKEN: "tok_12345678abcdefgh" } }).config },
      (call) => call(act),
      { env: { ...BARE_ENV, ANTHROPIC_API_KEY: "sk-ant-1234567890abcdef", PLAIN: "1", SLUICE_RUN: "forged" } },
    );
    expect(JSON.parse(String(output))).toMatchObject({
      MINE: "yes",
      PLAIN: "1",
      SERVICE_TOKEN: "[redacted:SERVICE_TOKEN of bad]",
      SLUICE_RUN: run.runId,
    });
    expect(String(output)).not.toContain("ANTHROPIC_API_KEY");
    expect(JSON.stringify(await live.host.journal(run.runId))).not.toContain("tok_12345678abcdefgh");
  });
});

describe("a server is ended with everything it started", () => {
  test("by session.close, though it does not go when it is asked to", async () => {
    const bad = misbehaving("stubborn");
    // Behind a wall it would know its processes by other numbers.
    const { live } = await useServers({ bad: { ...bad.config, sandbox: false } }, (call) => call(act));
    const pids = bad.noted().flatMap((line) => (line.startsWith("pid ") ? [Number(line.slice(4))] : []));
    expect(pids).toHaveLength(3);
    expect(pids.every(isAlive)).toBe(true);
    await live.close();
    expect(pids.filter(isAlive)).toEqual([]);
  });

  test("by session.close while it is being started", async () => {
    const bad = misbehaving("silent");
    const { live } = mcpSession({ bad: bad.config });
    const run = live.run(
      callingPipeline(async () => null),
      {},
    );
    const failure = expect(run).rejects.toMatchObject({ code: "mcp_server_failed" });
    await untilNoted(bad, "start");
    await live.close();
    await failure;
    await expect(
      live.run(
        callingPipeline(async () => null),
        {},
      ),
    ).rejects.toThrow("closed");
  });

  test("and leaves no listener on the process", async () => {
    const before = process.listenerCount("exit");
    const { live } = await useServers({ bad: misbehaving("fine").config }, (call) => call(act));
    expect(process.listenerCount("exit")).toBe(before + 1);
    await live.close();
    expect(process.listenerCount("exit")).toBe(before);
    expect(live.clock.waiting()).toBe(0);
  });
});

describe("what a session knows of its tools holds", () => {
  test("they are recorded by name with what they were", async () => {
    const { events } = await useServers({ bad: misbehaving("fine").config }, (call) => call(act));
    const [started] = dataOf(events, "run.started");
    expect(started?.tools).toContainEqual(
      expect.objectContaining({ name: act, digest: expect.stringMatching(/^[0-9a-f]{64}$/) }),
    );
  });

  test.each([
    ["changes-text", "changed its description or schema"],
    ["changes-schema", "changed its description or schema"],
    ["changes-list", "was removed"],
  ])("a tool that changed (%s) is not called any more, and the others are", async (way, how) => {
    const bad = misbehaving(way);
    const { output, faults } = await useServers({ bad: bad.config }, async (call) => {
      const first = await call(act);
      return [first, await call(act, { again: 1 }), await call("mcp__bad__other"), await call("mcp__bad__new")];
    });
    expect(output).toMatchObject(["called act", { code: "tool_changed" }, "called other", { code: "unknown_tool" }]);
    expect(JSON.stringify(output)).toContain(how);
    expect(bad.noted().filter((line) => line.startsWith("call act"))).toHaveLength(1);
    expect(faults.join()).toContain(`mcp:bad: its tool "act" ${how}`);
  });

  test.each([
    ["a minute later", 60_000],
    ["when the clock was set back", -1],
  ])("also when the server says nothing: its list is looked at again %s", async (_when, ms) => {
    const clock = handClock();
    const calls = async (call: Call): Promise<readonly Json[]> => {
      const outcomes = [await call(act), await call(act, { again: 1 })];
      clock.turn(ms);
      return [...outcomes, await call(act, { again: 2 })];
    };
    const { output } = await useServers({ bad: misbehaving("turns-quietly").config }, calls, { clock });
    expect(output).toMatchObject(["called act", "called act", { code: "tool_changed" }]);
  });

  test.each([
    ["turns-while-listed", "tool_changed"],
    ["turns-at-each-list", "server_unavailable"],
  ])("also when it changes while its list is read (%s)", async (way, code) => {
    const clock = handClock();
    const bad = misbehaving(way);
    const calls = async (call: Call): Promise<readonly Json[]> => {
      clock.turn(60_000);
      return [await call(act)];
    };
    const { output } = await useServers({ bad: bad.config }, calls, { clock });
    expect(output).toMatchObject([{ code }]);
    expect(bad.noted().filter((line) => line.startsWith("call act"))).toEqual([]);
  });

  test("also when it changes while this process reads nothing", async () => {
    const bad = misbehaving("turns-when-asked");
    const { output } = await useServers({ bad: bad.config }, async (call) => {
      const first = await call(act);
      bad.note("turn");
      // As a search of the workspace does, from whose end to the call nothing is read either.
      while (!bad.noted().includes("turned"));
      return [first, await call(act, { again: 1 })];
    });
    expect(output).toMatchObject(["called act", { code: "tool_changed" }]);
    expect(bad.noted().filter((line) => line.startsWith("call act"))).toHaveLength(1);
  });

  test("of calls side by side none slips past the look", async () => {
    const bad = misbehaving("changes-text", { reads: ["*"] });
    const { output } = await useServers({ bad: bad.config }, async (call, { calls }) => {
      const first = await call(act);
      const asked = [1, 2, 3].map((at) => ({ id: `t9.c${at}`, tool: act, input: { at } }));
      return [first, ...(await calls(9, asked)).map((outcome) => outcome.output)];
    });
    const refused = expect.objectContaining({ code: "tool_changed" });
    expect(output).toEqual(["called act", refused, refused, refused]);
    expect(bad.noted().filter((line) => line.startsWith("call act"))).toHaveLength(1);
  });

  test("and when it was started again", async () => {
    const bad = misbehaving("changes-between-starts");
    const { output } = await useServers({ bad: bad.config }, async (call) => [
      await call(act),
      await call(act, { again: 1 }),
      await call("mcp__bad__other"),
    ]);
    expect(output).toMatchObject([{ code: "outcome_unknown" }, { code: "tool_changed" }, "start 2"]);
  });

  test("a run is not resumed with other tools, unless the caller accepts them", async () => {
    const { clock, first, second } = twoHosts();
    const bad = misbehaving("changes-between-starts");
    const calling = callingPipeline(
      async (call, { wait }) => {
        const outcome = await call("mcp__bad__other");
        await wait("pause", 11_000);
        return outcome;
      },
      ["mcp__bad__*"],
    );
    const before = mcpSession({ bad: bad.config }, { clock, host: first });
    const run = before.live.start(calling, {});
    for await (const { type } of run.events) if (type === "call.finished") break;
    await run.suspend();
    await before.live.close();
    const after = mcpSession({ bad: bad.config }, { clock, host: second });
    await expect(after.live.resume(calling, run.runId)).rejects.toMatchObject({
      class: "Validation",
      code: "tools_changed",
      message: expect.stringContaining("mcp__bad__act has a different schema"),
    });
    const accepted = after.live.resume(calling, run.runId, { allowChanged: true });
    await quiet();
    clock.turn(20_000);
    expect((await accepted).status).toBe("completed");
  });
});
