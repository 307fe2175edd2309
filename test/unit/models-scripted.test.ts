import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import { type Clock, isSluiceError } from "@sluice/core";
import { generateText } from "ai";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { callModel } from "../../packages/stages/src/agent/model-call.ts";
import { loadScript, parseScript, type Script } from "../../packages/stages/src/models/script.ts";
import { scriptedModel } from "../../packages/stages/src/models/scripted.ts";
import { handClock } from "../support/hand-clock.ts";

const prompt: LanguageModelV4Prompt = [{ role: "user", content: [{ type: "text", text: "go" }] }];

function play(
  script: Script,
  position: { stage: string; turn: number; attempt?: number },
  signal = new AbortController().signal,
  clock: Clock = handClock(),
) {
  const model = scriptedModel(script, { clock }).at({ attempt: 1, ...position });
  return callModel({ model, prompt, tools: [], signal });
}

const SCRIPT: Script = {
  stages: {
    plan: [
      {
        reasoning: "Look first.",
        text: "I read the file.",
        calls: [{ tool: "Read", input: { path: "a.ts" } }, { tool: "Glob" }],
      },
      { calls: [{ tool: "submit_plan", rawInput: '{"steps":[' }], finish: "length" },
      { text: "done" },
    ],
  },
};

describe("the scripted model", () => {
  test("plays the entry of the stage and turn it is asked for, whatever was asked before", async () => {
    const third = await play(SCRIPT, { stage: "plan", turn: 2 });
    expect(third).toMatchObject({ ok: true, text: "done", finishReason: "stop", calls: [] });
    const first = await play(SCRIPT, { stage: "plan", turn: 0 });
    expect(first).toMatchObject({
      ok: true,
      finishReason: "tool-calls",
      content: [
        { type: "reasoning", text: "Look first." },
        { type: "text", text: "I read the file." },
        { type: "tool-call", toolName: "Read", input: { path: "a.ts" } },
        { type: "tool-call", toolName: "Glob", input: {} },
      ],
    });
    expect(await play(SCRIPT, { stage: "plan", turn: 0 })).toEqual(first);
  });

  test("gives calls ids that differ over the whole stage", async () => {
    const [first, second] = await Promise.all([
      play(SCRIPT, { stage: "plan", turn: 0 }),
      play(SCRIPT, { stage: "plan", turn: 1 }),
    ]);
    const ids = [first, second].flatMap((reply) => (reply.ok ? reply.calls.map(({ id }) => id) : []));
    expect(ids).toEqual(["call_plan_0_0", "call_plan_0_1", "call_plan_1_0"]);
  });

  test("sends raw arguments as they are", async () => {
    expect(await play(SCRIPT, { stage: "plan", turn: 1 })).toMatchObject({
      finishReason: "length",
      calls: [{ rawInput: '{"steps":[', inputError: { code: "truncated" } }],
    });
  });

  test.each([
    [
      { stage: "plan", turn: 3 },
      'the script has 3 turns for the stage "plan", and the run requests turn 4; add the missing turn',
    ],
    [
      { stage: "review", turn: 0 },
      'the script has no turns for the stage "review" (it has: plan); add the missing turn',
    ],
    [
      { stage: "constructor", turn: 0 },
      'the script has no turns for the stage "constructor" (it has: plan); add the missing turn',
    ],
  ])("past its last entry (%j) it fails for good, as script_exhausted", async (position, message) => {
    expect(await play(SCRIPT, position)).toEqual({
      ok: false,
      error: { kind: "permanent", code: "script_exhausted", message },
      begun: false,
    });
  });

  test("fails the first attempts of a turn as scripted, then answers", async () => {
    const script: Script = {
      stages: { plan: [{ text: "at last", errors: [{ status: 529, retryAfterMs: 250 }, { cut: true }] }] },
    };
    expect(await play(script, { stage: "plan", turn: 0, attempt: 1 })).toMatchObject({
      error: { kind: "transient", code: "overloaded", status: 529, retryAfterMs: 250 },
    });
    expect(await play(script, { stage: "plan", turn: 0, attempt: 2 })).toMatchObject({ error: { kind: "cut_stream" } });
    expect(await play(script, { stage: "plan", turn: 0, attempt: 3 })).toMatchObject({ ok: true, text: "at last" });
  });

  test("waits by the clock it is given", async () => {
    const clock = handClock();
    const script: Script = { stages: { plan: [{ text: "late", delayMs: 5000 }] } };
    const reply = play(script, { stage: "plan", turn: 0 }, new AbortController().signal, clock);
    clock.turn(4999);
    expect(clock.waiting()).toBe(1);
    clock.turn(1);
    expect(await reply).toMatchObject({ ok: true, text: "late" });
  });

  test("stops waiting when it is aborted, and leaves no timer", async () => {
    const clock = handClock();
    const controller = new AbortController();
    const reply = play({ stages: { plan: [{ delayMs: 5000 }] } }, { stage: "plan", turn: 0 }, controller.signal, clock);
    controller.abort();
    expect(await reply).toMatchObject({ ok: false, error: { kind: "aborted" } });
    expect(clock.waiting()).toBe(0);
  });

  test("streams text in a few pieces and never inside a character", async () => {
    const text = "one two three 🧭🧭🧭🧭🧭 four";
    const pieces: string[] = [];
    const model = scriptedModel({ stages: { plan: [{ text }] } }, { clock: handClock() }).at({
      stage: "plan",
      turn: 0,
      attempt: 1,
    });
    await callModel({
      model,
      prompt,
      tools: [],
      signal: new AbortController().signal,
      onText: (delta) => pieces.push(delta),
    });
    expect(pieces.length).toBeGreaterThan(1);
    expect(pieces.every((piece) => piece.isWellFormed())).toBe(true);
    expect(pieces.join("")).toBe(text);
  });

  test("counts the same tokens every time: four characters each", async () => {
    const reply = await play(
      { stages: { plan: [{ text: "12345678", reasoning: "1234" }] } },
      { stage: "plan", turn: 0 },
    );
    const input = Math.ceil(JSON.stringify(prompt[0]?.content).length / 4);
    expect(reply).toMatchObject({ usage: { inputTokens: input, outputTokens: 3, reasoningTokens: 1, known: true } });
  });

  test("is a model like any other to the SDK", async () => {
    const model = scriptedModel(SCRIPT, { clock: handClock() }).at({ stage: "plan", turn: 2, attempt: 1 });
    expect((await generateText({ model, prompt: "go" })).text).toBe("done");
  });

  test("needs no key, so it has no secrets", () => {
    expect(scriptedModel(SCRIPT, { clock: handClock() }).secrets).toEqual([]);
  });
});

describe("a script file", () => {
  let folder = "";
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "sluice-script-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  async function faultOf(text: string): Promise<string> {
    const path = join(folder, "s.json");
    await writeFile(path, text);
    const thrown: unknown = await loadScript(path).catch((error: unknown) => error);
    if (!isSluiceError(thrown, "invalid_script")) throw new Error("expected invalid_script");
    expect(thrown.class).toBe("Validation");
    return thrown.message.replaceAll(folder, "");
  }

  test("is read and validated", async () => {
    const path = join(folder, "s.json");
    await writeFile(path, JSON.stringify(SCRIPT));
    expect(await loadScript(path)).toEqual(SCRIPT);
  });

  test("that is not there is named", async () => {
    await expect(loadScript(join(folder, "nope.json"))).rejects.toMatchObject({
      class: "Validation",
      code: "script_not_found",
    });
  });

  test("that is not JSON is named with the fault", async () => {
    expect(await faultOf("{")).toMatch(/^the script \/s\.json is not JSON: /);
  });

  test("with several faults names them all, each with its path", async () => {
    const message = await faultOf(
      JSON.stringify({
        stages: {
          plan: [
            { text: 5, finnish: "stop" },
            { calls: [{ input: {} }, { tool: "A", input: {}, rawInput: "{}" }], errors: [{ status: 200 }] },
          ],
        },
      }),
    );
    expect(message).toContain("stages.plan[0].text: ");
    expect(message).toContain("finnish");
    expect(message).toContain("stages.plan[1].calls[0].tool: ");
    expect(message).toContain("stages.plan[1].calls[1]: has both input and rawInput; keep one");
    expect(message).toContain("stages.plan[1].errors[0]");
  });

  test("keeps prototype keys in inputs as data", () => {
    const value: unknown = JSON.parse('{"stages":{"s":[{"calls":[{"tool":"A","input":{"__proto__":{"x":1}}}]}]}}');
    const input = parseScript(value, "it").stages.s?.[0]?.calls?.[0]?.input;
    expect(JSON.stringify(input)).toBe('{"__proto__":{"x":1}}');
  });
});
