// What an external agent reads.
import type { LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider";
import { textOf } from "../../run/phase.ts";

/** Characters of an earlier result that a new process of the agent is shown. */
const LONGEST_RESULT = 4_000;

/** The beginning of a transcript: the contract of the stage and what it is about. */
export function firstPrompt(server: string, messages: LanguageModelV4Prompt, earlier: string): string {
  const [system, first] = messages;
  const texts = [system, first].flatMap((message) => (message === undefined ? [] : [textOf(message)]));
  return [
    `You work on one stage of a pipeline. Use only the tools of the MCP server ${server}: other tools are not available here. Where these instructions name a tool, they mean a tool of that server. The stage ends only when you call the tool that ends it.`,
    ...texts,
    ...(earlier === "" ? [] : [`What you did in this stage so far, in an earlier process:\n${earlier}`]),
  ].join("\n\n");
}

/** What a transcript has beside its beginning, for an agent that starts in the middle of it. */
export function transcriptText(messages: LanguageModelV4Prompt): string {
  return messages
    .slice(2)
    .map(lineOf)
    .filter((line) => line !== "")
    .join("\n");
}

/** The text of a message that a user, or the stage, sends. */
export function userText(message: LanguageModelV4Message): readonly string[] {
  const text = message.role === "user" ? textOf(message) : "";
  return text === "" ? [] : [text];
}

function lineOf(message: LanguageModelV4Message): string {
  switch (message.role) {
    case "system":
      return "";
    case "user":
      return `message: ${textOf(message)}`;
    case "assistant":
      return message.content
        .flatMap((part) => {
          if (part.type === "text") return [`you said: ${part.text}`];
          return part.type === "tool-call" ? [`you called ${part.toolName} ${JSON.stringify(part.input)}`] : [];
        })
        .join("\n");
    case "tool":
      return message.content
        .flatMap((part) => (part.type === "tool-result" ? [`result: ${shortened(JSON.stringify(part.output))}`] : []))
        .join("\n");
  }
}

function shortened(text: string): string {
  return text.length <= LONGEST_RESULT ? text : `${text.slice(0, LONGEST_RESULT).toWellFormed()} …`;
}
