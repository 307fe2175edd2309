// What the hooks of the supported hosts have in common: an event that a host reports, and the decision that it gets back.

import { type Json, type JsonObject, SluiceError } from "@sluice/core";
import type { HostName } from "../host-names.ts";

/** What a call of a host's own tool is for the gate. */
export type MappedCall =
  /** A call of one of `nativeTools`. */
  | {
      readonly kind: "call";
      readonly tool: string;
      readonly input: JsonObject;
      /** It ends after other calls have begun, or never: a subagent, a background command. Its result is not awaited. */
      readonly spans: boolean;
    }
  /** A tool that only changes the agent's own notes, or asks the person at the host. */
  | { readonly kind: "harmless" }
  /** A tool of the gateway's own MCP server, which decides itself. */
  | { readonly kind: "own" }
  /** A permission to write a file, from a host that does not say what it would write. */
  | { readonly kind: "writes"; readonly path: string }
  /** What cannot be judged. */
  | { readonly kind: "refused"; readonly reason: string };

export interface EventBase {
  /** The host's session: opaque text, never part of a path. */
  readonly session: string;
  /** The subagent that acts; absent for the main agent. */
  readonly agent?: string;
  /** The folder of the agent's shell as the host reports it. */
  readonly cwd: string;
}

export interface CallEvent extends EventBase {
  readonly kind: "pre" | "permission";
  readonly callId?: string;
  /** The call as the host sent it. */
  readonly native: { readonly tool: string; readonly input: JsonObject };
  readonly call: MappedCall;
}

export interface ReportEvent extends Omit<CallEvent, "kind"> {
  readonly kind: "post";
  readonly result: { readonly ok: boolean; readonly output: Json };
}

export interface PromptEvent extends EventBase {
  readonly kind: "prompt";
  readonly prompt: string;
}

export interface LifeEvent extends EventBase {
  /** `other` is an event that needs no decision. */
  readonly kind:
    | "session_start"
    | "session_end"
    | "stop"
    | "subagent_start"
    | "subagent_stop"
    | "elicitation"
    | "config_change"
    | "other";
  /** The host's name of the event. */
  readonly name: string;
}

export type HookEvent = CallEvent | ReportEvent | PromptEvent | LifeEvent;

export type HookDecision =
  /** The call may run. `command` is the line that it may run, if that is not the one it was made with. */
  | { readonly kind: "allow"; readonly command?: string }
  | { readonly kind: "deny"; readonly reason: string }
  /** Text that the host adds to what its agent knows. */
  | { readonly kind: "context"; readonly text: string }
  /** The agent may not stop, or the change is not accepted. */
  | { readonly kind: "block"; readonly reason: string }
  /** Nothing to say. */
  | { readonly kind: "continue" };

export interface HookAnswer {
  readonly status: 200;
  /** JSON in the host's own schema. */
  readonly body: string;
}

/** Whether a host runs the command line of the answer instead of the agent's. */
export type Rewrites = "runs" | "ignores";

export interface HookAdapter {
  readonly host: HostName;
  readonly rewrites: Rewrites;
  /** The line that the host's shell has to run for an approved line. */
  lineFor(event: CallEvent, approved: string): string;
  /** Whether the host runs none of the calls that its agent makes at once before all of them are decided. */
  readonly startsTogether: boolean;
  /** How often in a row the host lets a hook refuse the end of a turn. */
  readonly refusedStops: number;
  /**
   * Reads what a host sent. `event` is the event's name, for hosts that do not put it into the payload. Throws Validation
   * `hook_payload_invalid`.
   */
  read(event: string | undefined, payload: Json): HookEvent;
  /** The host's form of a decision. A decision that the event cannot carry becomes the refusal of the event. */
  answer(event: HookEvent, decision: HookDecision): HookAnswer;
  /** The refusal of an event that could not be read. */
  refuse(event: string | undefined, reason: string): HookAnswer;
}

export interface AdapterOptions {
  /** The MCP servers of the host, for hosts whose tool names join the server and the tool ambiguously. */
  readonly mcpServers?: readonly string[];
  /** The names that the gateway's own MCP server may have at the host. Their calls pass, so no project may know one before. */
  readonly ownServers?: readonly string[];
}

export function invalidPayload(message: string): SluiceError {
  return new SluiceError("Validation", "hook_payload_invalid", `this hook payload cannot be used: ${message}`);
}
