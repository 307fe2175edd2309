import { describe, expect, test } from "vitest";
import { COMPATIBLE_CHAT, startChatServer } from "../support/chat-server.ts";
import { at, call, finishes, PIPELINES, printed, turn } from "../support/command.ts";
import { deskHere } from "../support/command-here.ts";

const single = `${PIPELINES}#single`;
const stages = { work: [turn(call("Read", { file_path: "there.txt" })), finishes()] };

/** A project whose configuration says what the scripted model is to cost. */
function priced(prices: object) {
  const place = deskHere();
  place.write("there.txt", "here");
  place.write("sluice.config.js", `export default { prices: { "scripted:*": ${JSON.stringify(prices)} } };`);
  const run = async (format: string) =>
    await place.sluice(["run", single, "x", "--trust", "--model", place.script(stages), "--output-format", format]);
  return { place, run };
}

describe("money in what the command prints", () => {
  test("json has it for the run and for each stage", async () => {
    const { run } = priced({ input: 100, output: 1_000 });
    const report = printed(await run("json"));
    const cost = at(report, "usage", "costUsd");
    expect(cost).toBeGreaterThan(0);
    expect(at(report, "stages", 0, "usage", "costUsd")).toBe(cost);
  });

  test("text has it at the stage and at the end, and so has show", async () => {
    const { place, run } = priced({ input: 100, output: 1_000 });
    const { stdout } = await run("text");
    const [, id = "", bill = ""] = /^completed (r[a-z0-9]+) {2}\((.*)\)$/m.exec(stdout) ?? [];
    expect(bill).toMatch(/^[\d,]+ tokens in, [\d,]+ out, \$[\d.]+$/);
    expect(stdout).toMatch(/work#1 .*completed .*2 turns, .*out, \$/);
    const shown = await place.sluice(["show", id]);
    expect(shown.stdout).toContain(bill);
  });

  test("text says nothing of what costs nothing", async () => {
    const { run } = priced({ contextWindow: 1_000_000 });
    const { stdout } = await run("text");
    expect(stdout).toMatch(/^completed r[a-z0-9]+$/m);
    expect(stdout).not.toContain("$");
  });

  test("a price that no one knows is said not to be known, and how many calls it concerns", async () => {
    const done = { calls: [{ id: "c1", name: "finish", input: { text: "done" } }] };
    await using server = await startChatServer(() => done, COMPATIBLE_CHAT);
    const env = { OPENAI_COMPATIBLE_BASE_URL: server.url };
    const { sluice } = deskHere();
    const run = ["run", single, "x", "--model", "openai-compatible/any", "--output-format"];
    const [text, json] = await Promise.all(
      ["text", "json"].map((format) => sluice([...run, format, "--store", format], { env })),
    );
    expect(text?.stdout).toMatch(/^completed r[a-z0-9]+ {2}\(10 tokens in, 20 out, price unknown\)$/m);
    const report = json === undefined ? {} : printed(json);
    expect(report).toMatchObject({ usage: { inputTokens: 10, outputTokens: 20, unpricedCalls: 1 } });
    expect(at(report, "usage", "costUsd")).toBeUndefined();
  });

  test("text shows when the transcript nears the window of the model", async () => {
    const { run } = priced({ contextWindow: 100 });
    const { stdout } = await run("text");
    expect(stdout).toMatch(/work#1 .*near limit .*% of the model's context window of 100 tokens/);
  });
});
