import { isJsonObject, type Json, parseJson, type SecretFilter } from "@sluice/core";
import { depthFault, MAX_DEPTH } from "../providers/json.ts";
import { cutText } from "./cut-text.ts";
import type { ModelToolCall } from "./reply.ts";

/** Arguments longer than this are an input error: 10 MiB of characters. */
const MAX_INPUT_CHARS = 10 * 1024 * 1024;
const KEPT_OF_TOO_LARGE = 1024;
const LONGEST_ID = 256;

/** Names that Anthropic, OpenAI and Google all accept in a transcript. */
const WIRE_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

export type ParsedInput = Pick<ModelToolCall, "input" | "rawInput" | "inputError">;

/** Arguments as the model wrote them -> a value, or why there is none. No arguments at all mean `{}`. */
export function parseToolInput(raw: string, secrets: SecretFilter): ParsedInput {
  if (raw.length > MAX_INPUT_CHARS) {
    const message = `the arguments have ${raw.length} characters; at most ${MAX_INPUT_CHARS} are taken`;
    return { rawInput: cutText(raw, KEPT_OF_TOO_LARGE, secrets), inputError: { code: "too_large", message } };
  }
  if (raw.trim() === "") return { rawInput: raw, input: {} };
  const parsed = parseJson(raw);
  if (!parsed.ok) {
    return {
      rawInput: raw,
      inputError: { code: "not_json", message: `the arguments are not JSON: ${clip(parsed.fault)}` },
    };
  }
  const fault = depthFault(parsed.value);
  if (fault === undefined) return { rawInput: raw, input: parsed.value };
  return fault.endsWith("levels")
    ? {
        rawInput: raw,
        inputError: { code: "too_deep", message: `the arguments are nested deeper than ${MAX_DEPTH} levels` },
      }
    : { rawInput: raw, inputError: { code: "not_json", message: `the arguments are not JSON: ${clip(fault)}` } };
}

/** What the transcript holds as arguments: only objects survive being sent again to every provider. */
export function wireInput(input: Json | undefined): Json {
  return isJsonObject(input) ? input : {};
}

/** A tool name that may stand in a transcript: one bad name would make every later request of the stage invalid. */
export function wireNameOf(name: string, offered: readonly { readonly name: string }[]): string {
  if (WIRE_NAME.test(name) || offered.some((tool) => tool.name === name)) return name;
  const safe = name.replaceAll(/[^A-Za-z0-9_-]/g, "_");
  if (safe === "") return "unnamed";
  return (/^[A-Za-z_]/.test(safe) ? safe : `_${safe}`).slice(0, 64);
}

/** The provider's call id where it is usable and new, else one made from it and the position: the same on every replay. */
export function uniqueCallId(sent: unknown, position: number, taken: (id: string) => boolean): string {
  const base = typeof sent === "string" && sent.trim() !== "" && sent.length <= LONGEST_ID ? sent : "call";
  if (base === sent && !taken(base)) return base;
  let id = `${base}_c${position}`;
  for (let again = 2; taken(id); again += 1) id = `${base}_c${position}_${again}`;
  return id;
}

function clip(text: string): string {
  return text.length <= 200 ? text : `${text.slice(0, 200)}…`;
}
