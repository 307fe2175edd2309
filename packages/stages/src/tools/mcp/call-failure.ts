import type { TextMask, ToolEffect, ToolResult } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import { NO_MASK } from "../../secrets/cut-text.ts";
import { failure } from "../files/results.ts";
import { cleanText } from "./definition.ts";
import { BAD_ANSWER, type End, NO_ANSWER } from "./transport/transport.ts";

const LONGEST_MESSAGE = 2_000;
/** Errors before a connection exists: the server saw nothing of the call. */
const NEVER_SENT = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"];

type CalledTool = { readonly name: string; readonly effect: ToolEffect };

/** How a call failed. */
interface Failed {
  /** Why the connection ended, if it did. */
  readonly end: End | undefined;
  readonly thrown: unknown;
  readonly secrets?: TextMask | undefined;
}

/** What the model reads about a call without an answer, above all whether it may have taken effect. */
export function callFailure(server: string, tool: CalledTool, { end, thrown, secrets = NO_MASK }: Failed): ToolResult {
  const shortened = (text: string): string => cleanText(text, LONGEST_MESSAGE, secrets);
  const lost = (why: string): ToolResult => lostCall(server, tool, shortened(why));
  const said = shortened(messageOf(thrown));
  const { code, statusCode } = numbersOf(thrown);
  if (end !== undefined) {
    if (end.code === "too_large")
      return failure(
        "answer_too_large",
        `The MCP server ${server} was stopped: ${end.message}. The call may have taken effect. Request less data.`,
      );
    return lost(end.message);
  }
  if (code === NO_ANSWER) return lost(messageOf(thrown));
  if (code === BAD_ANSWER || (code === undefined && statusCode === undefined && isSdkError(thrown)))
    return failure(
      "bad_answer",
      `The MCP server ${server} sent an answer that violates the protocol (${said}). It is unknown whether the call took effect.`,
    );
  if (code !== undefined) return failure("server_error", said, { rpc_code: code });
  if (statusCode !== undefined && statusCode < 500)
    return failure("server_unavailable", `The MCP server ${server} rejected the call: ${said}`);
  if (NEVER_SENT.includes(systemCodeOf(thrown)))
    return failure("server_unavailable", `The MCP server ${server} cannot be reached. The call was not made.`);
  return lost(messageOf(thrown));
}

/** A reading call can be repeated; a writing call has an unknown outcome. */
function lostCall(server: string, { name, effect }: CalledTool, message: string): ToolResult {
  if (effect === "read")
    return failure(
      "server_ended",
      `The connection to the MCP server ${server} was lost during the call: ${message}. Make the call again.`,
    );
  const reason = `The connection to the server was lost during this call (${message}), and it is unknown whether the call took effect. Check the current state before you call again.`;
  return { ok: false, output: { code: "outcome_unknown", tool: name, reason } };
}

function isSdkError(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.name === "MCPClientError";
}

/** The numbers in errors of the SDK: the protocol's error code, and the HTTP status. */
function numbersOf(thrown: unknown): { readonly code: number | undefined; readonly statusCode: number | undefined } {
  const number = (key: string): number | undefined => {
    const value: unknown = thrown instanceof Error ? Reflect.get(thrown, key) : undefined;
    return typeof value === "number" ? value : undefined;
  };
  return { code: number("code"), statusCode: number("statusCode") };
}

/** The platform's fetch nests the system's error one or two causes deep. */
function systemCodeOf(thrown: unknown): string {
  for (let each: unknown = thrown, depth = 0; each instanceof Error && depth < 4; each = each.cause, depth += 1)
    if ("code" in each && typeof each.code === "string") return each.code;
  return "";
}
