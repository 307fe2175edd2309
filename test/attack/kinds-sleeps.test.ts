import type { ActScope, Json, JsonObject, SignalMessage } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { human, parseDuration, poll, script, timer } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { commandSession, only } from "../support/commands.ts";
import { handClock } from "../support/hand-clock.ts";
import { completed, dataOf, eventsOf, eventually, session, twoHosts, work } from "../support/run-kit.ts";
import { sleepingDesk } from "../support/sleeping-desk.ts";
import { tempFolder } from "../support/tools.ts";

// Times that are none, signals that would move a wake time, and text that would control a terminal.

describe("a state that sleeps", () => {
  test.each<[string, number]>([
    ["no number", Number.NaN],
    ["infinity", Number.POSITIVE_INFINITY],
    ["minus infinity", Number.NEGATIVE_INFINITY],
  ])("until %s is refused, and its run does not hang", async (_, until) => {
    const live = session();
    const refused: unknown[] = [];
    const act = async (scope: ActScope) => {
      await scope.sleep("nap", until).catch((thrown: unknown) => refused.push(thrown));
      return completed("went on");
    };
    const result = await live.run(only(work({ act })), {});
    expect(result).toMatchObject({ status: "completed", output: "went on" });
    expect(refused).toMatchObject([{ code: "not_json" }]);
  });

  test.each<[string, number]>([
    ["a negative time", -1],
    ["the most negative time", -1e308],
    ["a time that has passed", 1],
    ["a fraction of a time", 0.5],
  ])("until %s continues at once, once", async (_, until) => {
    const live = session();
    let naps = 0;
    const act = async (scope: ActScope) => {
      naps += 1;
      await scope.sleep("nap", until);
      return completed(naps);
    };
    const result = await live.run(only(work({ act })), {});
    expect(result).toMatchObject({ status: "completed", output: 1 });
    expect(dataOf(await eventsOf(live.host, result.runId), "sleep.ended")).toEqual([{ by: "time" }]);
  });

  test.each<[string, number]>([
    ["the end of all dates", 8.64e15],
    ["a number beyond all dates", 1e308],
  ])("until %s sleeps, instead of waking again and again", async (_, until) => {
    const { clock, first, second } = twoHosts();
    const live = session({ clock, host: first, suspendSleepsOver: 0 });
    const act = async (scope: ActScope) => {
      await scope.sleep("nap", until);
      return completed(null);
    };
    const result = await live.run(only(work({ act })), {});
    expect(result).toMatchObject({ status: "suspended", reason: "sleeping", wakeAt: until });
    clock.turn(10 * 365 * 86_400_000);
    expect(await second.due(10)).toMatchObject({ runs: [] });
  });

  test("cannot say in its data when it wakes, how often it slept, or what ended it", async () => {
    const live = session();
    const forged = { until: 9e15, sleeps: -5, by: "message", wakeAt: 0 };
    const act = async (scope: ActScope) => {
      await scope.sleep("nap", 1, forged);
      return completed(null);
    };
    const { runId } = await live.run(only(work({ act })), {});
    const events = await eventsOf(live.host, runId);
    expect(dataOf(events, "sleep.started")).toMatchObject([{ until: 1, sleeps: 1 }]);
    expect(dataOf(events, "sleep.ended")).toMatchObject([{ by: "time" }]);
  });
});

describe("a duration", () => {
  test.each([
    ...[
      "",
      " ",
      "0s",
      "-5s",
      "+5s",
      "5",
      "s",
      "5x",
      "5S",
      "5 sec",
      "5d5h",
      "1.5.5s",
      "1e3s",
      "0x10s",
      "1_000ms",
      "1,5h",
    ],
    ...[
      "NaNs",
      "Infinitys",
      "9".repeat(400),
      `${"9".repeat(400)}ms`,
      "99999d",
      "\u0665s",
      "\uff15s",
      "5\u00b5s",
      "5s; 1s",
    ],
    ...["{{ctx.task}}", "5s\u0000", "constructor", "5__proto__", "5toString"],
  ])("that is none is refused: %j", (text) => {
    expect(parseDuration(text)).toMatchObject({ ok: false });
  });

  test.each<[unknown]>([
    [Number.NaN],
    [-1],
    [0],
    [0.4],
    [1e308],
    [Number.POSITIVE_INFINITY],
    [null],
    [[5]],
    [{}],
    [true],
    [5n],
  ])("of another type is refused: %s", (value) => {
    expect(parseDuration(value)).toMatchObject({ ok: false });
  });

  test("is checked wherever a kind takes one", () => {
    const text = "5s " as const;
    expect(parseDuration(text)).toEqual({ ok: true, ms: 5_000 });
    const states = [
      timer({ for: -1 }),
      timer({ for: Number.NaN }),
      timer({ until: Number.POSITIVE_INFINITY }),
      poll({ command: ["true"], every: 1 }),
      poll({ command: ["true"], every: "1s", totalTimeoutMs: 1e308 }),
      human({ question: "?", deadline: -1 }),
      script({ command: ["true"], timeoutMs: Number.NaN }),
    ];
    for (const { spec } of states) expect(spec.problems).toHaveLength(1);
  });
});

describe("what reaches a run that sleeps", () => {
  const HOUR = 3_600_000;
  const forged = (name: string, payload: Json = { until: 0, wakeAt: 0, kind: "value", value: "up", text: "wake up" }) =>
    ({ name, payload, by: "a process" }) satisfies SignalMessage;

  test.each<[string, SignalMessage]>([
    ["a message", forged("message")],
    ["a follow-up", forged("followUp")],
    ["a signal with the name of its sleep", forged("sleep")],
    ["a signal with the id of its step", forged("run#1:a1:sleep")],
    ["an event's name", forged("sleep.ended")],
    ["a cancel that is none", forged("cancel")],
    ["a payload that is no object", forged("message", [1e308])],
    ["a very long text", forged("message", { text: "x".repeat(1_000_000) })],
  ])("does not move its wake time: %s", async (_, signal) => {
    const clock = handClock();
    const memory = createMemoryJournals();
    const host = () => createHost(memory.connect(), { clock });
    const asleep = only(timer({ for: HOUR }));
    const workspace = tempFolder();
    const first = commandSession({ workspace, clock, host, suspendSleepsOver: 0 });
    const { runId, ...before } = await first.run(asleep, {});
    const wakeAt = clock.now() + HOUR;
    expect(before).toMatchObject({ status: "suspended", reason: "sleeping", wakeAt });
    for (let times = 0; times < 3; times += 1) {
      await first.host.signal(runId, signal);
      const second = commandSession({ workspace, clock, host, suspendSleepsOver: 0 });
      expect(await second.resume(asleep, runId)).toMatchObject({ status: "suspended", reason: "sleeping", wakeAt });
      // It is asleep, and not due again, although the signal is still there.
      expect(await first.host.due(10)).toEqual({ runs: [], next: wakeAt });
    }
    clock.turn(HOUR);
    const last = commandSession({ workspace, clock, host });
    expect(await last.resume(asleep, runId)).toMatchObject({ status: "completed", output: { elapsedMs: HOUR } });
    const events = await eventsOf(last.host, runId);
    expect(dataOf(events, "sleep.started")).toHaveLength(1);
    expect(dataOf(events, "sleep.ended")).toEqual([{ by: "time" }]);
  });

  test("as an answer to a question that is not open, or after its deadline, is refused", async () => {
    const clock = handClock();
    const memory = createMemoryJournals();
    const host = createHost(memory.connect(), { clock });
    const workspace = tempFolder();
    const live = commandSession({ workspace, clock, host, wait: true });
    const asking = only(human({ question: "Which?", deadline: "1h", onDeadline: { answer: "default" } }));
    const { runId } = live.start(asking, {});
    await eventually(async () => (await host.requests()).length > 0, "the question");
    const [request] = await host.requests();
    await live.close();
    if (request === undefined) throw new Error("nothing is asked");
    const { requestId, digest } = request;
    const answer = (name: string, more: JsonObject = {}) =>
      host.signal(runId, { name, payload: { kind: "value", value: "forged", digest, ...more }, digest, by: "x" });
    expect(await answer("request/run#1:a1:ask/other")).toBe("unknown");
    expect(await answer(`request/${requestId}/../x`)).toBe("unknown");
    clock.turn(HOUR + 1);
    expect(await answer(`request/${requestId}`, { at: 0, until: 9e15 })).toBe("expired");
    const later = commandSession({ workspace, clock, host, wait: true });
    expect(await later.resume(asking, runId)).toMatchObject({ status: "completed", output: "default" });
  });
});

describe("text of a run", () => {
  const ESC = "\u001b]0;title\u0007\u001b[2J\u001b[31mred\u009b1m\u202e\r\b";

  test("does not control the terminal of the commands that steer it", async () => {
    const here = sleepingDesk();
    here.write(
      "hostile.ts",
      `import { done, pipeline, to } from "@sluice/core";
       import { script, timer } from "@sluice/stages";
       import { z } from "zod";
       export const hostile = pipeline({
         id: "hostile",
         input: z.object({ text: z.string() }),
         stages: {
           nap: timer({ for: "2s" }),
           say: script({ command: [process.execPath, "-e", "process.stderr.write(process.argv[1]); process.exit(3)", "x{{ctx.run.input.text}}"] }),
         },
         initial: "nap",
         next: { nap: () => to("say"), say: () => done("") },
       });`,
    );
    const said: string[] = [];
    const sluice = async (...args: readonly string[]): Promise<string> => {
      const { stdout, stderr } = await here.sluice(args);
      said.push(stdout, stderr);
      return stdout;
    };
    const started = await sluice(
      ...[
        "run",
        "hostile.ts#hostile",
        "--input",
        `text=${ESC}`,
        "--trust",
        "--suspend-sleeps",
        "--output-format",
        "json",
      ],
    );
    const runId: unknown = JSON.parse(started).runId;
    if (typeof runId !== "string") throw new Error(started);
    await sluice("message", runId, ESC);
    await sluice("message", runId, "--follow-up", ESC);
    for (const command of ["show", "runs", "audit"]) await sluice(command, ...(command === "runs" ? [] : [runId]));
    for (let idle = true; idle; ) idle = /no run is due/.test(await sluice("wake"));
    await sluice("interrupt", runId, "--reason", ESC);
    for (const command of ["show", "runs", "audit"]) await sluice(command, ...(command === "runs" ? [] : [runId]));
    expect(said.join("")).toContain("title");
    expect(said.join("")).not.toMatch(/[^\P{Cc}\n\t]|\u202e/u);
  });
});
