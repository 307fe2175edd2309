import { afterEach, describe, expect, test } from "vitest";
import { type ScriptedModel, startScriptedModel } from "../../../packages/gateway/src/hosts/doctor/scripted-model.ts";

let model: ScriptedModel | undefined;
afterEach(async () => {
  await model?.close();
  model = undefined;
});

const SCRIPTS = { main: [{ calls: [{ name: "Bash", input: { command: "ls" } }] }, { text: "done" }] };

async function post(path: string, body: object): Promise<string> {
  const response = await fetch(`${model?.url}${path}`, { method: "POST", body: JSON.stringify(body) });
  return response.text();
}

describe("the scripted model makes the first call and ends after its result", () => {
  test("over Anthropic Messages", async () => {
    model = await startScriptedModel(SCRIPTS);
    const tools = [{ name: "Bash" }];
    const ask = { role: "user", content: "SCRIPT:main" };
    expect(JSON.parse(await post("/v1/messages", { tools, messages: [ask] }))).toMatchObject({
      stop_reason: "tool_use",
      content: [{ type: "tool_use", name: "Bash", input: { command: "ls" } }],
    });
    const messages = [
      ask,
      { role: "assistant", content: [{ type: "tool_use", id: "t", name: "Bash", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: "a.txt" }] },
    ];
    expect(await post("/v1/messages", { tools, messages, stream: true })).toContain("done");
    expect(model.requests.map(({ script, turn }) => [script, turn])).toEqual([
      ["main", 0],
      ["main", 1],
    ]);
    expect(model.requests[1]?.messages.at(-1)).toEqual({ role: "result", text: "a.txt" });
  });

  test("over Gemini", async () => {
    model = await startScriptedModel(SCRIPTS);
    const tools = [{ functionDeclarations: [{ name: "Bash" }] }];
    const ask = { role: "user", parts: [{ text: "SCRIPT:main" }] };
    expect(await post("/v1beta/models/m:generateContent", { tools, contents: [ask] })).toContain('"functionCall"');
    const contents = [
      ask,
      { role: "model", parts: [{ functionCall: { name: "Bash", args: {} } }] },
      { role: "user", parts: [{ functionResponse: { name: "Bash", response: { output: "a.txt" } } }] },
    ];
    expect(await post("/v1beta/models/m:streamGenerateContent?alt=sse", { tools, contents })).toContain("done");
  });

  test("over OpenAI Responses", async () => {
    model = await startScriptedModel(SCRIPTS);
    const tools = [{ type: "function", name: "Bash" }];
    const ask = { type: "message", role: "user", content: [{ type: "input_text", text: "SCRIPT:main" }] };
    expect(await post("/v1/responses", { tools, input: [ask] })).toContain('"function_call"');
    const input = [
      ask,
      { type: "function_call", name: "Bash", call_id: "c" },
      { type: "function_call_output", call_id: "c", output: "a.txt" },
    ];
    expect(await post("/v1/responses", { tools, input, stream: true })).toContain("done");
  });

  test("over chat completions", async () => {
    model = await startScriptedModel(SCRIPTS);
    const tools = [{ type: "function", function: { name: "Bash" } }];
    const ask = { role: "user", content: "SCRIPT:main" };
    expect(await post("/v1/chat/completions", { tools, messages: [ask] })).toContain('"tool_calls"');
    const messages = [
      ask,
      { role: "assistant", tool_calls: [{ id: "c", function: { name: "Bash", arguments: "{}" } }] },
      { role: "tool", tool_call_id: "c", content: "a.txt" },
    ];
    expect(await post("/v1/chat/completions", { tools, messages, stream: true })).toContain("done");
  });
});

test("requests without a marker or without tools get a plain answer and are not counted", async () => {
  model = await startScriptedModel(SCRIPTS);
  const messages = [{ role: "user", content: "write a title" }];
  expect(await post("/v1/chat/completions", { messages })).toContain("ok");
  expect(await (await fetch(`${model.url}/v1/models`)).text()).toContain("scripted");
  expect(model.requests).toEqual([]);
});
