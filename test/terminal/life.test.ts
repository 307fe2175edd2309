import { expect, test } from "vitest";
import { startPacedServer } from "../support/paced-server.ts";
import type { TerminalProcess } from "../support/terminal.ts";
import {
  type AppPlace,
  appPlace,
  CHANGED,
  choose,
  dataOf,
  edit,
  expectUnharmed,
  leave,
  PLANNED,
  pause,
  READ,
  REVIEWED,
  sayYes,
  submit,
  turnToCard,
} from "../support/terminal-run.ts";

const hangs = { delayMs: 600_000 };
const asks = edit("one", "two");

async function statusOf(place: AppPlace): Promise<unknown> {
  return dataOf(await place.events(), "run.finished").at(-1)?.status;
}

test.each([
  ["plan", { plan: [hangs] }],
  ["execute", { plan: [PLANNED], execute: [hangs] }],
  ["review", { plan: [PLANNED], execute: [CHANGED], review: [hangs] }],
])("Esc asks, and a yes cancels a run whose %s is at work", async (stage, stages) => {
  const place = appPlace();
  place.script(stages);
  const app = await place.open();
  await submit(app, "/run codeReview anything");
  await app.waitFor(`${stage} running`);
  await pause(450);
  app.key("escape");
  await sayYes(app, "Cancel run");
  await app.waitFor(/run cancelled/);
  await leave(app);
  expect(await statusOf(place)).toBe("cancelled");
});

test("/cancel cancels a run whose card is open, and the card goes", async () => {
  const place = appPlace();
  place.write("a.txt", "one\n");
  place.script({ plan: [READ, asks] });
  const app = await place.open();
  await submit(app, "/run codeReview anything");
  await app.waitFor("Tab focuses this card");
  await submit(app, "/cancel");
  await sayYesIfAsked(app);
  await app.waitFor((screen) => screen.includes("run cancelled") && !screen.includes("▌"), "no card");
  await leave(app);
  expect(await statusOf(place)).toBe("cancelled");
});

async function sayYesIfAsked(app: TerminalProcess): Promise<void> {
  await app.waitFor(/run cancelled|Cancel run/);
  if (app.screen().some((row) => row.startsWith("Cancel run"))) await sayYes(app, "Cancel run");
}

test("a killed app leaves a run that /resume continues, with the card that was open", async () => {
  const place = appPlace();
  place.write("a.txt", "one\n");
  place.script({ plan: [READ, asks, PLANNED], execute: [CHANGED], review: [REVIEWED] });
  const first = await place.open();
  await submit(first, "/run codeReview anything");
  await turnToCard(first);
  first.signal("SIGKILL");
  await first.end();

  const second = await place.open();
  await submit(second, `/resume ${await place.runId()}`);
  await second.waitFor("1 + two");
  await choose(second, "Approve this call once", "up");
  await second.waitFor("run completed");
  await leave(second);
  expect(place.read("a.txt")).toBe("two\n");
  expect(dataOf(await place.events(), "turn.started").filter(({ turn }) => turn === 1)).toHaveLength(3);
});

test("Ctrl-C asks, twice quits with 130, and the run can be resumed", async () => {
  const place = appPlace();
  place.script({ plan: [hangs] });
  const app = await place.open();
  await submit(app, "/run codeReview anything");
  await app.waitFor("plan running");
  app.key("ctrl+c");
  await app.waitFor("Ctrl-C again to quit");
  app.key("ctrl+c");
  expect(await app.end()).toEqual({ code: 130, signal: undefined });
  expectUnharmed(app);
  expect(app.lines().join("\n")).toContain(`sluice resume ${await place.runId()}`);
  place.script({ plan: [PLANNED], execute: [CHANGED], review: [REVIEWED] });
  expect((await place.elsewhere("resume", await place.runId())).code).toBe(0);
});

test.each([["SIGTERM", 143] as const, ["SIGINT", 130] as const, ["SIGHUP", 129] as const])(
  "%s suspends what runs and restores the terminal",
  async (signal, code) => {
    const place = appPlace();
    place.script({ plan: [hangs] });
    const app = await place.open();
    await submit(app, "/run codeReview anything");
    await app.waitFor("plan running");
    app.signal(signal);
    expect(await app.end()).toEqual({ code, signal: undefined });
    expectUnharmed(app);
    expect(await statusOf(place)).toBeUndefined();
  },
);

test("sizes that change while a model streams leave each line once", async () => {
  const words = Array.from(
    { length: 120 },
    (_, at) => `Paragraph ${at} says nothing much, but it says it at some length.\n\n`,
  );
  const plan = { name: "submit_plan", input: { summary: "s", steps: ["x"], files: [], risks: [] } };
  const server = await startPacedServer(40, (_body, n) =>
    n === 0 ? { text: words, call: plan } : { text: Array.from({ length: 5_000 }, () => "and so on ") },
  );
  try {
    const place = appPlace();
    const app = await place.open([], {
      columns: 200,
      rows: 50,
      env: { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: server.url },
    });
    await submit(app, "/model anthropic/paced");
    await submit(app, "/run codeReview anything");
    for (const [columns, rows, paragraph] of [
      [60, 15, 20],
      [200, 50, 40],
      [60, 15, 60],
      [80, 24, 80],
      [200, 50, 100],
    ] as const) {
      await app.waitForLine(`Paragraph ${paragraph} `);
      await app.resize(columns, rows);
    }
    await app.waitFor("execute running");
    await leave(app);
    const found = app.lines().flatMap((line) => /^ *Paragraph (\d+) /.exec(line)?.slice(1).map(Number) ?? []);
    expect(found).toEqual(Array.from({ length: 120 }, (_, at) => at));
  } finally {
    await server.close();
  }
});

const MINE = `import { done, pipeline, stage } from "@sluice/core";
import { z } from "zod";
import { SECOND } from "./second.ts";
const work = stage({ prompt: SECOND, allowedTools: ["Write"], completionTool: "finish", completionSchema: z.object({ text: z.string() }), turnCap: 5 });
export const mine = pipeline({ id: "mine", input: z.object({ task: z.string() }), stages: { work }, initial: "work", next: { work: ({ output }) => done(output.text) } });
`;

test("each run of a pipeline file in one app is made of the file as it is by then, says of what, and may not write that", async () => {
  const place = appPlace();
  place.write("mine.ts", MINE);
  place.write("second.ts", 'export const SECOND = "Do it.";\n');
  const writes = { calls: [{ tool: "Write", input: { file_path: "second.ts", content: "" } }] };
  place.script({ work: [writes, { calls: [{ tool: "finish", input: { text: "end" } }] }] });
  const app = await place.open();
  const runs: string[] = [];
  const run = async (): Promise<void> => {
    await submit(app, "/run ./mine.ts anything");
    await expect.poll(place.runIds).toHaveLength(runs.length + 1);
    runs.unshift(...(await place.runIds()).slice(0, 1));
    await expect.poll(async () => dataOf(await place.events(runs[0]), "run.finished").at(-1)?.status).toBe("completed");
  };
  await run();
  await run();
  place.write("second.ts", 'export const SECOND = "Do it twice.";\n');
  await run();
  await leave(app);
  const records = await Promise.all(
    runs.toReversed().map(async (runId) => {
      const events = await place.events(runId);
      const [started] = dataOf(events, "run.started");
      const [decided] = dataOf(events, "call.decided");
      return { fingerprint: started?.fingerprint, source: started?.source, cause: decided?.cause };
    }),
  );
  const [first, second, third] = records;
  expect(first?.source).toMatchObject({
    files: [{ file: expect.stringMatching(/mine\.ts$/) }, { file: expect.stringMatching(/second\.ts$/) }],
  });
  expect(second).toEqual(first);
  expect(third?.source).not.toEqual(first?.source);
  expect(third?.fingerprint).not.toBe(first?.fingerprint);
  expect(records.map(({ cause }) => cause)).toEqual(["limit", "limit", "limit"]);
});
