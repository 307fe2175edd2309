// What a prompt asks for.
import type { ContentBlock } from "@agentclientprotocol/sdk";
import type { AcpPipelines } from "./acp-workspace.ts";

/** Continues the latest run of the session. */
export const RESUME = "resume";

export type PromptRequest =
  | { readonly kind: "start"; readonly pipeline: string; readonly task: string }
  | { readonly kind: "resume"; readonly message: string }
  | { readonly kind: "refused"; readonly why: string };

/** The text of a prompt; a link to a file is written as its address. */
export function promptText(prompt: readonly ContentBlock[]): string {
  return prompt
    .map((block) => {
      switch (block.type) {
        case "text":
          return block.text;
        case "resource_link":
          return block.uri;
        default:
          return "";
      }
    })
    .join("")
    .trim();
}

/** Reads `/<pipeline> <task>`, `/resume`, or a task for the default pipeline. A path such as `/etc/hosts` is not a command. */
export function readPrompt(text: string, { names, fallback }: AcpPipelines): PromptRequest {
  if (text === "") return { kind: "refused", why: "the prompt has no text" };
  const [, name, task = ""] = /^\/([^\s/]+)(?:\s+([\s\S]*))?$/.exec(text) ?? [];
  const known = names.map((one) => `/${one}`).join(", ");
  if (name === undefined) {
    if (fallback !== undefined) return { kind: "start", pipeline: fallback, task: text };
    return { kind: "refused", why: `name a pipeline: begin the prompt with one of ${known}` };
  }
  if (names.includes(name)) return { kind: "start", pipeline: name, task };
  if (name === RESUME) return { kind: "resume", message: task };
  return { kind: "refused", why: `there is no pipeline ${name}; the prompt may begin with ${known}` };
}
