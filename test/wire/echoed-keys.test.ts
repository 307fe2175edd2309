import { readFileSync } from "node:fs";
import { join } from "node:path";
import { done, pipeline, stage } from "@sluice/core";
import { createHost } from "@sluice/core/host";
import { recordTraffic } from "@sluice/stages";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { desk, PIPELINES } from "../support/command.ts";
import { sluiceHere } from "../support/command-here.ts";
import { type StringPlace, stringsOf, tracesOf, withEverywhere, withString } from "../support/echoing.ts";
import { handClock } from "../support/hand-clock.ts";
import { bytesOf } from "../support/planted.ts";
import { PROVIDERS, type ProviderName, providerOf, TEST_KEY } from "../support/providers.ts";
import { reportOf } from "../support/report-kit.ts";
import { eventsOf, session } from "../support/run-kit.ts";
import { open, scratch } from "../support/sqlite-store.ts";
import type { Replies, ServerReply } from "../support/sse-server.ts";

// A service may say the key it is called with in anything it answers. Nothing of that may be kept or shown.

/** Of no known form, and with characters that JSON and URLs write in another way. */
const KEY = 'Zq"7/Hk2+Vb9Lm4Xc6Tn8Rw3Ys';
const TRACES = tracesOf(KEY);
const BEARER = Buffer.from(`Bearer ${KEY}`);
/** As the service may write it: as it came, and encoded. */
const SAID = [
  String(BEARER),
  encodeURIComponent(KEY),
  ...(["base64", "base64url", "hex"] as const).map((way) => BEARER.toString(way)),
].join(" ");
/** Wherever this is cut, it is cut in a key. */
const LONG = `${KEY}--`.repeat(100);
/** For headers, which hold no quotes in quotes. */
const HEADERS = Object.fromEntries(
  ["x-request-id", "request-id", "openai-organization", "x-goog-trace", "retry-after", "date", "etag"].map((name) => [
    name,
    `Bearer ${KEY}`,
  ]),
);

const finish: ServerReply = { calls: [{ name: "finish", input: { text: "done" } }] };
/** One of everything a model can say. */
const rich: ServerReply = {
  reasoning: "First things first.",
  text: "I look.",
  calls: [{ name: "Read", input: { file_path: "a.txt" } }],
  usage: { input: 12, output: 3, cacheRead: 2, reasoning: 1 },
  headers: HEADERS,
};

const work = pipeline({
  id: "work",
  input: z.object({ task: z.string() }),
  stages: {
    work: stage({
      prompt: "Do it.",
      allowedTools: ["Read"],
      completionTool: "finish",
      completionSchema: z.object({ text: z.string() }),
      turnCap: 3,
    }),
  },
  initial: "work",
  next: { work: ({ output }) => done(output.text) },
});

async function serverOf(name: ProviderName, replies: Replies) {
  const provider = providerOf(name);
  const server = await provider.start(replies);
  onTestFinished(() => server.close());
  const env = Object.fromEntries(
    Object.entries(provider.env(server.url)).map(([variable, value]) => [variable, value === TEST_KEY ? KEY : value]),
  );
  return { model: provider.model, env, server };
}

function expectNoTrace(what: string, text: string): void {
  for (const trace of TRACES) {
    const at = text.indexOf(trace);
    if (at >= 0) expect.fail(`${trace} is in ${what}: …${text.slice(Math.max(0, at - 120), at + 40)}…`);
  }
}

describe.each(PROVIDERS)("a key that %s repeats is in no byte of what is kept or shown", (name) => {
  test("in any one string of an answer", async () => {
    let events: readonly string[] = [];
    let place: StringPlace | undefined;
    let said = "";
    let asked = 0;
    const { model, env } = await serverOf(name, () => {
      asked += 1;
      if (asked > 1) return finish;
      return {
        ...rich,
        events: (usual) => {
          events = usual;
          return place === undefined ? usual : withString(usual, place, said);
        },
      };
    });
    const folder = scratch();
    const store = join(folder, "store");
    const host = createHost(open(store), { clock: handClock() });
    const cassette = join(folder, "calls.jsonl");
    const live = session({ model, env, cwd: folder, host: host, traffic: recordTraffic(cassette) });
    const runs: string[] = [];
    const results: unknown[] = [];
    const run = async (): Promise<void> => {
      asked = 0;
      const handle = live.start(work, { task: "x" });
      runs.push(handle.runId);
      handle.onLive((chunk) => void results.push(chunk));
      // Tries that are announced are not waited for: the first says all.
      for await (const { type } of handle.events) if (type === "model.retried") void handle.cancel("enough");
      results.push(await handle);
    };
    await run();
    expect(results.at(-1)).toMatchObject({ status: "completed" });
    const places = stringsOf(events);
    expect(places.length).toBeGreaterThan(15);
    for (place of places) {
      for (said of [SAID, LONG]) await run();
    }
    expectNoTrace("results", JSON.stringify(results));
    for (const runId of runs) {
      expectNoTrace("events", JSON.stringify(await eventsOf(host, runId)));
      expectNoTrace("the report", (await reportOf(host, runId)).page);
    }
    expectNoTrace("the store", bytesOf(store));
    expectNoTrace("the cassette", readFileSync(cassette, "latin1"));
  });

  test("in every text of an answer, and beside it", async () => {
    const { model, env } = await serverOf(name, (_request, n) =>
      n === 0 ? { ...rich, events: (usual) => withEverywhere(usual, SAID) } : finish,
    );
    const { folder, store } = desk();
    const sluice = sluiceHere(folder);
    const sinks: [string, string][] = [];
    const look = async (...args: readonly string[]) => {
      const ended = await sluice(args, { env });
      sinks.push([`stdout of ${args.join(" ")}`, ended.stdout], [`stderr of ${args.join(" ")}`, ended.stderr]);
      return ended.stdout;
    };
    const format = ["--output-format", "stream-json"];
    const said = await look("run", `${PIPELINES}#single`, "go", "--model", model, "--record", "calls.jsonl", ...format);
    const runId = /"runId":"([^"]+)"/.exec(said)?.[1] ?? "";
    await look("show", runId, "--output-format", "json");
    await look("audit", runId, "--verify");
    await look("report", runId, "-o", "run.html");
    await look("export", runId, "-o", "run.jsonl");
    await look("export", runId, "--values", "-o", "values.jsonl");
    for (const file of ["run.html", "run.jsonl", "values.jsonl", "calls.jsonl"])
      sinks.push([file, readFileSync(join(folder, file), "latin1")]);
    const kept = bytesOf(store);
    // It was said, and it was kept without the key.
    expect(kept).toContain("[redacted:");
    for (const [what, text] of [...sinks, ["the store", kept] as const]) expectNoTrace(what, text);
  });
});
