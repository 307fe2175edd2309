import { createHash } from "node:crypto";
import {
  APICallError,
  type LanguageModelV4CallOptions,
  type LanguageModelV4Prompt,
  type LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import type { JsonObject } from "@sluice/core";
import type { ResolvedModel } from "@sluice/stages";
import type { Points } from "./points.ts";
import { LINT_COMMAND } from "./tools.ts";

interface Turn {
  /** The run's place, and the step of this call without its try. */
  readonly run: string;
  readonly step: string;
  /** The service is too busy for the first try. */
  readonly busy?: true;
  readonly calls: readonly (readonly [tool: string, input: JsonObject])[];
}

const turn = (run: string, step: string, ...calls: Turn["calls"]): Turn => ({ run, step: `${step}/model`, calls });
const A = "src/a.txt";
const B = "src/b.txt";

/** What the model says, by state and by the turns that state took before. Where it ends a stage, `results` are added. */
const SCRIPT: Readonly<Record<string, readonly Turn[]>> = {
  draft: [
    turn("main", "draft#1/a1/turn/1", ["submit_draft", { text: "rough" }]),
    { ...turn("main", "draft#1/a2/turn/1", ["submit_draft", { text: "fine" }]), busy: true },
  ],
  plan: [
    turn("main", "plan#1/a1/turn/1", ["Read", { file_path: A }], ["Grep", { pattern: "entries" }], ["Long", {}]),
    turn(
      "main",
      "plan#1/a1/turn/2",
      ["Edit", { file_path: A, old_string: "hello", new_string: "hello, world" }],
      ["Write", { file_path: "notes.md", content: "Two entries.\n" }],
      ["Bash", { command: "echo never >> denied.log" }],
    ),
    turn("main", "plan#1/a1/turn/3", ["AskUser", { question: "Which colour?" }]),
    turn("main", "plan#1/a1/turn/4", ["submit_plan", {}]),
  ],
  lint: [
    turn("main/fan-1/lint", "lint#1/a1/turn/1", ["Bash", { command: LINT_COMMAND }]),
    turn("main/fan-1/lint", "lint#1/a1/turn/2", ["submit_lint", {}]),
  ],
  test: [
    turn(
      "main/fan-1/test",
      "test#1/a1/turn/1",
      ["Read", { file_path: B }],
      ["Edit", { file_path: B, old_string: "one", new_string: "one, two" }],
    ),
    turn("main/fan-1/test", "test#1/a1/turn/2", ["submit_test", {}]),
  ],
  docs: [
    turn("main/fan-1/docs", "docs#1/a1/turn/1", ["Ledger", { text: "in" }], ["Post", { text: "out" }]),
    turn("main/fan-1/docs", "docs#1/a1/turn/2", ["submit_docs", {}]),
  ],
  wrap: [
    turn(
      "main",
      "wrap#1/a1/turn/1",
      ["Read", { file_path: A }],
      ["Edit", { file_path: A, old_string: "entries", new_string: "entries\n- one" }],
      ["Edit", { file_path: A, old_string: "- one", new_string: "- one\n- two" }],
    ),
    turn("main", "wrap#1/a1/turn/2", ["submit_wrap", {}]),
  ],
};

/** A model that is asked from outside the record: each call is reported before it is answered. */
export function torturedModel(points: Points): ResolvedModel {
  return {
    id: "torture",
    secrets: [],
    at: ({ stage, turn: n, attempt }) => {
      const said = SCRIPT[stage]?.[n];
      if (said === undefined) throw new Error(`turn ${n} of ${stage} is not scripted`);
      const step = attempt === 1 ? said.step : `${said.step}/${attempt}`;
      const label = `model ${stage} ${n}${attempt === 1 ? "" : ` try ${attempt}`}`;
      const doStream = async ({ prompt }: LanguageModelV4CallOptions) => {
        points.deed(label, `step ${said.run} ${step}`, partsOf(prompt));
        points.at(`${label} begins`);
        if (said.busy && attempt === 1) throw busy();
        return { stream: streamOf(said, prompt, () => points.at(`${label} streams`)) };
      };
      const doGenerate = (): never => {
        throw new Error("the loop streams");
      };
      return {
        specificationVersion: "v4",
        provider: "torture",
        modelId: "torture",
        supportedUrls: {},
        doGenerate,
        doStream,
      };
    },
  };
}

function streamOf(
  said: Turn,
  prompt: LanguageModelV4Prompt,
  midway: () => void,
): ReadableStream<LanguageModelV4StreamPart> {
  return new ReadableStream({
    async start(controller) {
      controller.enqueue({ type: "stream-start", warnings: [] });
      controller.enqueue({ type: "text-start", id: "0" });
      controller.enqueue({ type: "text-delta", id: "0", delta: "I " });
      await new Promise((resolve) => setImmediate(resolve));
      midway();
      controller.enqueue({ type: "text-delta", id: "0", delta: "will." });
      controller.enqueue({ type: "text-end", id: "0" });
      for (const [at, [toolName, input]] of said.calls.entries()) {
        const ends = toolName.startsWith("submit_");
        const given = ends ? { ...input, results: resultsIn(prompt) } : input;
        controller.enqueue({
          type: "tool-call",
          toolCallId: `${said.step}/${at}`,
          toolName,
          input: JSON.stringify(given),
        });
      }
      const usage = {
        inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 20, text: 20, reasoning: 0 },
      };
      controller.enqueue({ type: "finish", finishReason: { unified: "tool-calls", raw: "tool-calls" }, usage });
      controller.close();
    },
  });
}

function busy(): APICallError {
  const responseHeaders = { "retry-after-ms": "30" };
  return new APICallError({
    message: "busy",
    url: "torture:",
    requestBodyValues: {},
    statusCode: 429,
    responseHeaders,
  });
}

interface Result {
  readonly tool: string;
  readonly how: "ok" | "denied" | "unknown" | "recovered";
}

/** What the model makes of a result: it reads nothing but the transcript. */
function readResult(toolName: string, output: unknown): Result {
  const text = JSON.stringify(output);
  if (text.includes("outcome_unknown")) return { tool: toolName, how: "unknown" };
  if (text.includes("tool_call_denied")) return { tool: toolName, how: "denied" };
  return { tool: toolName, how: text.includes("took effect before the process was stopped") ? "recovered" : "ok" };
}

function resultsIn(prompt: LanguageModelV4Prompt): readonly string[] {
  const parts = prompt.flatMap((message) => (message.role === "tool" ? message.content : []));
  return parts.flatMap((part) => {
    if (part.type !== "tool-result") return [];
    const { tool, how } = readResult(part.toolName, part.output);
    return [`${tool} ${how === "recovered" ? "ok" : how}`];
  });
}

/** A prompt in pieces that can be compared; a result that says what a crash made of its call is marked as such. */
function partsOf(prompt: LanguageModelV4Prompt): readonly string[] {
  const digest = (value: unknown): string =>
    createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 16);
  return prompt.flatMap((message) => {
    if (message.role !== "tool") return [`${message.role} ${digest(message.content)}`];
    return message.content.map((part) => {
      if (part.type !== "tool-result") return digest(part);
      const { tool, how } = readResult(part.toolName, part.output);
      return how === "recovered" || how === "unknown" ? `${tool} ${how}` : `${tool} ${digest(part.output)}`;
    });
  });
}
