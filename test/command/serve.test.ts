import { existsSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { isJsonObject, type JsonObject, parseJson } from "@sluice/core";
import { verifyJournal } from "@sluice/core/host";
import { sqliteHost } from "@sluice/sqlite";
import { describe, expect, test } from "vitest";
import { at, type Ended, printed, type Running, textAt } from "../support/command.ts";
import { NAPS, SLEEPING, type SleepingDesk, sleepingDesk, untilDue } from "../support/sleeping-desk.ts";

const WAKING = join(import.meta.dirname, "../fixtures/command/waking.ts");
const JSON_OUT = ["--output-format", "json"];
const NO_PORT = ["--no-metrics", "--json"];

async function started(here: SleepingDesk, pipeline: string, input: Readonly<Record<string, number>>): Promise<string> {
  const words = Object.entries(input).flatMap(([key, value]) => ["--input", `${key}:=${value}`]);
  const run = ["run", `${SLEEPING}#${pipeline}`, ...words, "--trust", "--suspend-sleeps", ...JSON_OUT];
  const { ended } = here.start(run);
  return textAt(printed(await ended), "runId");
}
async function serving(here: SleepingDesk, ...more: readonly string[]): Promise<Running> {
  const running = here.start(["serve", ...(more.length === 0 ? NO_PORT : more)]);
  await running.said("stdout", /started|serves/);
  return running;
}
/** Ends a worker in order. */
async function stopped(running: Running, signal: NodeJS.Signals = "SIGTERM"): Promise<Ended> {
  running.child.kill(signal);
  return await running.ended;
}
function eventsOf({ stdout }: Ended): readonly JsonObject[] {
  return stdout.split("\n").flatMap((line) => {
    const json = parseJson(line);
    return json.ok && isJsonObject(json.value) ? [json.value] : [];
  });
}
async function statusOf(here: SleepingDesk, runId: string): Promise<unknown> {
  return at(printed(await here.sluice(["show", runId, ...JSON_OUT])), "status");
}
async function eventTypes(here: SleepingDesk, runId: string): Promise<readonly string[]> {
  const events = at(printed(await here.sluice(["audit", runId, "--json"])), "events");
  return Array.isArray(events) ? events.map((event) => textAt(event, "type")) : [];
}

test("serve wakes each run at its time, several times, and ends with exit code 0 on SIGTERM", async () => {
  const here = sleepingDesk();
  const worker = await serving(here);
  const runs = [await started(here, "napping", { ms: 3_000, times: 2 }), await started(here, "napping", { ms: 2_000 })];
  for (const runId of runs) await worker.said("stdout", new RegExp(`"ended","at":\\d+,"runId":"${runId}"`));
  const ended = await stopped(worker);
  expect(ended.code).toBe(0);
  const events = eventsOf(ended);
  expect(events.filter(({ type }) => type === "woke")).toHaveLength(3);
  expect(events.filter(({ type }) => type === "asleep")).toHaveLength(1);
  expect(events.map(({ type }) => type).slice(-2)).toEqual(["draining", "stopped"]);
  for (const runId of runs) expect(await statusOf(here, runId)).toBe("completed");
});

test("only one process serves a store; a killed one's place is free", async () => {
  const here = sleepingDesk();
  const first = await serving(here);
  const second = await here.sluice(["serve", ...NO_PORT]);
  expect(second.code).toBe(4);
  expect(second.stderr).toContain(`process ${first.child.pid} serves the run store ${here.store} already`);
  first.child.kill("SIGKILL");
  await first.ended;
  const third = await serving(here);
  expect((await stopped(third, "SIGINT")).code).toBe(0);
});

test("of two workers that start at once, one serves", async () => {
  const here = sleepingDesk();
  const both = [1, 2].map(() => here.start(["serve", ...NO_PORT]));
  const refused = await Promise.race(both.map((one) => one.ended));
  expect(refused.code).toBe(4);
  const rest = both.find(({ child }) => child.exitCode === null);
  await rest?.said("stdout", /"started"/);
  rest?.child.kill("SIGTERM");
  expect((await rest?.ended)?.code).toBe(0);
});

test("an answer makes a waiting run due, and the worker continues it", async () => {
  const here = sleepingDesk();
  const worker = await serving(here);
  const runId = await started(here, "approved", { ms: 2_000 });
  const [, line = ""] = await worker.said("stdout", /"waiting".*"lines":\["sluice ([^"]*)"\]/);
  expect((await here.sluice(line.replaceAll("'", "").split(" "))).code).toBe(0);
  await worker.said("stdout", new RegExp(`"ended","at":\\d+,"runId":"${runId}"`));
  await stopped(worker);
  expect(await eventTypes(here, runId)).toContain("run.finished");
});

test("a poll, a timer and a question continue under one worker: at their times, by an answer, and at a deadline", async () => {
  const here = sleepingDesk();
  const left = async (name: string): Promise<string> => {
    const run = ["run", `${WAKING}#${name}`, "--trust", "--suspend-sleeps", "--wait", ...JSON_OUT];
    return textAt(printed(await here.start(run).ended), "runId");
  };
  const worker = await serving(here);
  const deployed = await left("deployed");
  const unanswered = await left("unanswered");
  await worker.said("stdout", new RegExp(`"asleep".*"runId":"${deployed}"`));
  here.write("arrived", "");
  // It waits until its deadline too.
  await worker.said("stdout", new RegExp(`"waiting".*"runId":"${unanswered}".*"wakeAt":`));
  const [, line = ""] = await worker.said(
    "stdout",
    new RegExp(`"waiting".*"runId":"${deployed}".*"lines":\\["sluice ([^"]*)"\\]`),
  );
  const words = line.replaceAll("'", "").replace("…", "kept").split(" ");
  expect((await here.sluice(words)).code).toBe(0);
  for (const runId of [deployed, unanswered])
    await worker.said("stdout", new RegExp(`"ended","at":\\d+,"runId":"${runId}"`));
  await stopped(worker);
  const outputOf = async (runId: string): Promise<unknown> =>
    at(printed(await here.sluice(["show", runId, ...JSON_OUT])), "output");
  expect([await outputOf(deployed), await outputOf(unanswered)]).toEqual(["kept", "yes, after the deadline"]);
  const types = await eventTypes(here, deployed);
  expect(types.filter((type) => type === "sleep.started").length).toBe(
    types.filter((type) => type === "sleep.ended").length,
  );
});

/** Naps, then works until the file `done` is there, in one step with a file as its mark. */
const WORKING = `import { existsSync, writeFileSync } from "node:fs";
export default { executors: [{ kind: "nap", act: async (_input, scope) => {
  await scope.sleep("sleep", (await scope.steps.now("from")) + scope.ctx.run.input.ms);
  const woke = await scope.steps.run("work", async ({ signal }) => {
    writeFileSync("working-" + process.pid, "");
    while (!existsSync("done")) {
      signal.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return Date.now();
  });
  return { status: "completed", output: [woke], turns: 0, usage: { inputTokens: 0, outputTokens: 0 } };
} }] };
`;

describe("a run that was woken and works", () => {
  const isWorking = async (here: SleepingDesk, { child }: Running): Promise<void> => {
    await expect.poll(() => existsSync(join(here.folder, `working-${child.pid}`))).toBe(true);
  };
  const wholeAfter = async (here: SleepingDesk, runId: string): Promise<void> => {
    const host = sqliteHost(here.store, { readOnly: true });
    const verified = verifyJournal(await host.journal(runId));
    const steps = (await host.records(runId)).filter(({ phase }) => phase === "done").map(({ stepId }) => stepId);
    await host.close();
    expect(verified.faults).toEqual([]);
    expect(new Set(steps).size).toBe(steps.length);
  };

  test("is continued by the next worker when its process is killed, and nothing is repeated that was recorded", async () => {
    const here = sleepingDesk(WORKING);
    const runId = await started(here, "napping", { ms: 2_000 });
    const first = await serving(here);
    await isWorking(here, first);
    first.child.kill("SIGKILL");
    await first.ended;
    const second = await serving(here);
    await isWorking(here, second);
    here.write("done", "");
    await second.said("stdout", new RegExp(`"ended","at":\\d+,"runId":"${runId}"`));
    await stopped(second);
    const types = await eventTypes(here, runId);
    expect(types.filter((type) => type === "sleep.ended")).toHaveLength(1);
    expect(types.filter((type) => type === "run.resumed")).toHaveLength(2);
    await wholeAfter(here, runId);
  });

  test("is suspended on SIGTERM and due at once for the next worker", async () => {
    const here = sleepingDesk(WORKING);
    const runId = await started(here, "napping", { ms: 2_000 });
    const first = await serving(here);
    await isWorking(here, first);
    const ended = await stopped(first);
    expect(ended.code).toBe(0);
    expect(eventsOf(ended)).toContainEqual(expect.objectContaining({ type: "interrupted", runId }));
    expect((await here.sluice(["doctor"])).stdout).toMatch(/worker +warning +1 run is due, and nothing serves it/);
    here.write("done", "");
    const second = await serving(here);
    await second.said("stdout", new RegExp(`"ended","at":\\d+,"runId":"${runId}"`));
    expect((await here.sluice(["doctor"])).stdout).toMatch(/worker +ok +process \d+ serves it/);
    await stopped(second);
    await wholeAfter(here, runId);
  });

  test("is suspended by sluice wake on SIGINT with exit code 130, and due for the next one", async () => {
    const here = sleepingDesk(WORKING);
    const runId = await started(here, "napping", { ms: 2_000 });
    await untilDue(here.store);
    const waking = here.start(["wake", ...JSON_OUT]);
    await isWorking(here, waking);
    const ended = await stopped(waking, "SIGINT");
    expect([ended.code, at(printed(ended), "runs")]).toEqual([130, [{ runId, outcome: "interrupted" }]]);
    here.write("done", "");
    const next = await here.start(["wake"]).ended;
    expect([next.code, next.stdout]).toEqual([0, `${runId}  completed\n`]);
    await wholeAfter(here, runId);
  });

  test("ends with the process at a second signal, and is continued later", async () => {
    const here = sleepingDesk(
      WORKING.replace("    return Date.now();\n  });", "    return Date.now();\n  }, { graceMs: 60_000 });"),
    );
    const runId = await started(here, "napping", { ms: 2_000 });
    const first = await serving(here);
    await isWorking(here, first);
    first.child.kill("SIGTERM");
    await first.said("stdout", /"draining"/);
    // Two signals within a tenth of a second are one key press.
    const again = setInterval(() => first.child.kill("SIGTERM"), 150);
    const { code } = await first.ended;
    clearInterval(again);
    expect(code).toBe(143);
    here.write("done", "");
    const second = await serving(here);
    await second.said("stdout", new RegExp(`"ended","at":\\d+,"runId":"${runId}"`));
    await stopped(second);
    await wholeAfter(here, runId);
  });
});

test("a run that cannot be continued is reported once, and continues after its cause is gone", async () => {
  const here = sleepingDesk();
  const runId = await started(here, "napping", { ms: 2_000 });
  here.write("sluice.config.js", `${NAPS}// changed\n`);
  const worker = await serving(here, "--store", here.store, ...NO_PORT);
  await worker.said("stdout", /"refused".*folder_untrusted/);
  here.write("sluice.config.js", NAPS);
  await worker.said("stdout", new RegExp(`"ended","at":\\d+,"runId":"${runId}"`));
  const ended = await stopped(worker);
  expect(eventsOf(ended).filter(({ type }) => type === "refused")).toHaveLength(1);
});

describe("health and metrics", () => {
  interface Answer {
    readonly status: number | undefined;
    readonly text: string;
  }
  const ask = (url: string, path: string, options: { method?: string; host?: string } = {}): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const headers = options.host === undefined ? {} : { host: options.host };
      const request = httpRequest(`${url}${path}`, { method: options.method ?? "GET", headers }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk;
        });
        response.on("end", () => resolve({ status: response.statusCode, text }));
      });
      request.on("error", reject).end();
    });
  const open = async (here: SleepingDesk): Promise<{ worker: Running; url: string }> => {
    const worker = here.start(["serve", "--metrics", "127.0.0.1:0", "--json"]);
    const [, url = ""] = await worker.said("stdout", /"metrics":"(http:[^"]*)"/);
    return { worker, url };
  };

  test("are what the worker does, in the Prometheus text format", async () => {
    const here = sleepingDesk();
    const { worker, url } = await open(here);
    await started(here, "napping", { ms: 3_600_000 });
    const runId = await started(here, "napping", { ms: 2_000 });
    await worker.said("stdout", new RegExp(`"ended","at":\\d+,"runId":"${runId}"`));
    expect(await ask(url, "/healthz")).toEqual({ status: 200, text: "ok\n" });
    const { status, text } = await ask(url, "/metrics");
    expect(status).toBe(200);
    const samples = new Map(
      text
        .split("\n")
        .flatMap((line) => (line.startsWith("#") ? [] : [line.split(" ", 2)]))
        .map(([name = "", value = ""]) => [name, Number(value)]),
    );
    expect(Object.fromEntries(samples)).toMatchObject({
      sluice_up: 1,
      'sluice_runs{status="completed"}': 1,
      'sluice_runs{status="sleeping"}': 1,
      sluice_sleeping_runs: 1,
      sluice_due_runs: 0,
      sluice_wakes_total: 1,
      sluice_resume_failures_total: 0,
      sluice_wake_lateness_seconds_count: 1,
      'sluice_wake_outcomes_total{outcome="ended"}': 1,
    });
    for (const line of text.trimEnd().split("\n"))
      expect(line).toMatch(/^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{[a-z]+="[^"]+"\})? [0-9.e+-]+)$/);
    await stopped(worker);
  });

  test("answer GET on loopback names only, and nothing else", async () => {
    const { worker, url } = await open(sleepingDesk());
    const codes = async (...asked: readonly Promise<Answer>[]): Promise<unknown> =>
      (await Promise.all(asked)).map(({ status }) => status);
    expect(
      await codes(
        ask(url, "/metrics", { host: "evil.example:9464" }),
        ask(url, "/healthz", { host: "localhost.evil.example" }),
        ask(url, "/healthz", { host: "127.0.0.1.evil.example" }),
        ask(url, "/healthz", { host: "localhost:1" }),
        ask(url, "/metrics", { method: "POST" }),
        ask(url, "/metrics", { method: "DELETE" }),
        ask(url, "/"),
        ask(url, "/metrics/x"),
      ),
    ).toEqual([403, 403, 403, 200, 405, 405, 404, 404]);
    await stopped(worker);
  });

  test("an address that others reach is refused, and one that is taken is an error if it was named", async () => {
    const here = sleepingDesk();
    for (const address of ["0.0.0.0:9464", "192.168.1.2:9464", "example.com:9464", "9464", "[::]:9464"]) {
      const refused = await here.sluice(["serve", "--metrics", address]);
      expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("loopback address")]);
    }
    const { worker, url } = await open(here);
    const other = sleepingDesk();
    const taken = await other.sluice(["serve", "--metrics", new URL(url).host]);
    expect([taken.code, taken.stderr]).toEqual([4, expect.stringContaining("name another address with --metrics")]);
    await stopped(worker);
  });
});
