import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startAnthropicServer } from "../support/anthropic-server.ts";
import { finishes, PIPELINES, printed } from "../support/command.ts";
import { type DeskHere, deskHere } from "../support/command-here.ts";
import { TEST_KEY } from "../support/providers.ts";

const json = ["--output-format", "json", "--headless"];
const single = (task: string, ...flags: readonly string[]) => ["run", `${PIPELINES}#single`, task, ...flags, ...json];

/** One run over the wire, recorded; the server is closed afterwards. */
async function recorded(at: DeskHere, file = "cassettes/calls.jsonl") {
  const finish = { calls: [{ name: "finish", input: { text: "done" } }] };
  const server = await startAnthropicServer([{ text: `my key is ${TEST_KEY}` }, finish]);
  onTestFinished(() => server.close());
  const env = { ANTHROPIC_API_KEY: TEST_KEY, ANTHROPIC_BASE_URL: server.url };
  const args = single("say it", "--model", "anthropic/some-model", "--record", file);
  const ended = await at.sluice(args, { env });
  await server.close();
  return { ended, file: join(at.folder, file) };
}

test("--record writes what a run's model was asked and answered, and --model cassette: plays it without key and server", async () => {
  const at = deskHere();
  const { ended, file } = await recorded(at);
  expect(ended.code).toBe(0);
  expect(ended.stderr).toContain(`recorded in ${file}\n`);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(file, "utf8")).not.toContain(TEST_KEY.slice(4));

  const again = await at.sluice(single("say it", "--model", "cassette:cassettes/calls.jsonl"));
  expect(again).toMatchObject({ code: 0, stderr: "" });
  const { output, usage, status } = printed(ended);
  expect(printed(again)).toMatchObject({ output, usage, status });
});

test("a recording in the workspace, where tools find it, is reported; one beside it is not", async () => {
  const at = deskHere();
  const { ended } = await recorded(at);
  expect(ended.stderr).toContain("this file is in the workspace: move it elsewhere before playback");
  const beside = await recorded(at, "../calls.jsonl");
  expect(beside.ended.stderr).toContain(`recorded in ${beside.file}\n`);
  expect(beside.ended.stderr).not.toContain("in the workspace");
});

test("a replay that does not fit fails the run, and says in lines what differs", async () => {
  const at = deskHere();
  const { file } = await recorded(at);
  const ended = await at.sluice(single("say more", "--model", `cassette:${file}`));
  expect(ended.code).toBe(1);
  expect(printed(ended)).toMatchObject({ status: "failed", error: { code: "model" } });
  expect(ended.stderr).toContain("stage work, turn 1 (line 2): message 2 (user) differs in line 2:\n");
  expect(ended.stderr).toContain("  recorded: say it\n  now:      say more\n");
});

test("a file that is there is not recorded over, and what cannot be replayed is exit 2", async () => {
  const at = deskHere();
  const { file } = await recorded(at);
  const before = readFileSync(file, "utf8");
  const script = at.script({ work: [finishes()] });
  const over = await at.sluice(single("say it", "--model", script, "--record", file));
  expect(over.code).toBe(2);
  expect(printed(over)).toMatchObject({ runId: null, error: { code: "cassette_exists" } });
  expect(readFileSync(file, "utf8")).toBe(before);
  expect(existsSync(at.store)).toBe(true);

  const both = await at.sluice(single("say it", "--model", `cassette:${file}`, "--record", "other.jsonl"));
  expect(both.code).toBe(2);
  expect(printed(both)).toMatchObject({ error: { code: "usage" } });
  const none = await at.sluice(single("say it", "--model", "cassette:none.jsonl"));
  expect(none.code).toBe(2);
  expect(printed(none)).toMatchObject({ error: { code: "cassette_not_found" } });
});

test("a run that is suspended and resumed continues in its cassette, which replays it whole", async () => {
  const at = deskHere();
  const ask = { calls: [{ tool: "AskUser", input: { question: "Which?" } }] };
  const script = at.script({ asker: [ask, finishes("blue")] });
  const asking = ["run", `${PIPELINES}#asking`, "ask", "--record", "calls.jsonl", ...json];
  const first = await at.sluice([...asking, "--model", script, "--wait=50ms"]);
  expect(first.code).toBe(3);
  const { runId } = printed(first);
  const answer = ["answer", String(runId), "question", "--value", "blue", "--resume", "--record", "calls.jsonl"];
  const second = await at.sluice([...answer, "--output-format", "json", "--headless"]);
  expect(second.stderr).toContain("recorded in");
  expect(second.code).toBe(0);
  const lines = readFileSync(join(at.folder, "calls.jsonl"), "utf8").trimEnd().split("\n");
  expect(lines.slice(1).map((line) => JSON.parse(line).turn)).toEqual([0, 1]);
});
