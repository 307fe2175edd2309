import type { SecretFilter } from "@sluice/core";
import type { AssistantPart, ModelToolCall } from "../models/reply.ts";
import type { Reply } from "./model-turn.ts";

/** Takes known secret values out of a reply, before it is digested, judged, recorded or sent again. */
export function cleanReply(reply: Reply, secrets: SecretFilter): Reply {
  if (secrets.longest === 0) return reply;
  return {
    ...reply,
    text: secrets.text(reply.text),
    content: reply.content.flatMap((part) => cleanPart(part, secrets)),
    calls: reply.calls.map((call) => cleanCall(call, secrets)),
  };
}

function cleanPart(part: AssistantPart, secrets: SecretFilter): readonly AssistantPart[] {
  switch (part.type) {
    case "text":
      return [{ ...part, text: secrets.text(part.text) }];
    case "reasoning":
      // Its signature covers the text: a changed one would be refused, so it is left out.
      return secrets.text(part.text) === part.text ? [part] : [];
    case "tool-call":
      return [{ ...part, input: secrets.json(part.input) }];
    case "tool-result":
      return part.output.type === "text"
        ? [{ ...part, output: { type: "text", value: secrets.text(part.output.value) } }]
        : [{ ...part, output: { type: part.output.type, value: secrets.json(part.output.value) } }];
    case "custom":
    case "file":
    case "reasoning-file":
      return [part];
  }
}

function cleanCall(call: ModelToolCall, secrets: SecretFilter): ModelToolCall {
  const cleaned = { ...call, tool: secrets.text(call.tool), rawInput: secrets.text(call.rawInput) };
  return call.input === undefined ? cleaned : { ...cleaned, input: secrets.json(call.input) };
}
