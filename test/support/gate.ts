import type { AllowedTool, CallRequest, Json, Subject, ToolCall, ToolSpec, Workspace } from "@sluice/core";
import { type CallScope, type Policy, SealedCall } from "../../packages/core/src/gate/authorize-call.ts";
import { decide, type GateState, type LiveTool, type Verdict } from "../../packages/core/src/gate/decide.ts";
import { compileEnvelope } from "../../packages/core/src/gate/envelope.ts";
import { type BoundInput, defineTool, type Tool } from "../../packages/core/src/gate/tool.ts";

export const workspace: Workspace = { root: "/ws", store: "/ws/.sluice/store" };

export function path(real: string, access: "read" | "write" = "read", from?: "redirect" | "operand" | "cd"): Subject {
  return { kind: "path", real, access, ...(from === undefined ? {} : { from }) };
}

/** A path with all below it. */
export function tree(...given: Parameters<typeof path>): Subject {
  return { ...path(...given), tree: true } as Subject;
}

interface CommandOptions {
  readonly readOnly?: boolean;
  readonly assignments?: readonly string[];
  /** Positions of the words that are only known at run time. */
  readonly dynamic?: readonly number[];
  readonly via?: readonly string[];
  readonly why?: string;
  readonly hasReadingForms?: true;
  readonly folder?: string;
  readonly script?: readonly string[];
}
/** `npm test` -> the simple command of these words. */
export function command(line: string, options: CommandOptions = {}): Subject {
  return words(line.split(" "), options);
}
export function words(argv: readonly string[], options: CommandOptions = {}): Subject {
  const { readOnly = false, assignments = [], dynamic = [], via = [], ...known } = options;
  const unknown = argv.map((_, at) => dynamic.includes(at));
  return { kind: "command", argv, dynamic: unknown, readOnly, assignments, via, ...known };
}

const attempt = { runId: "r1", executionId: "plan#1", attempt: 1 };

/** An attempt that goes on until it is ended. */
export function scopeOf(number = 1): CallScope & { end(): void } {
  let open = true;
  return { ...attempt, attempt: number, isOpen: () => open, end: () => (open = false) };
}

export function sealed(request: Partial<CallRequest> = {}, scope: CallScope = scopeOf()): SealedCall {
  return new SealedCall(scope, { id: "t1.c0", tool: "Echo", ...request });
}

/** A policy of one tool and of an envelope, without a session's mode. */
export function policyOf(tool: Tool, policy: Partial<Policy> = {}): Policy {
  return {
    tools: new Map([[tool.name, tool]]),
    builtins: new Set(),
    envelope: compileEnvelope([]),
    mode: "ask",
    allow: compileEnvelope([]),
    workspace,
    scene: { env: {}, mayWrite: false },
    alternatives: { allowedTools: [], completionTool: "finish" },
    ...policy,
  };
}

export interface Judged extends Partial<Omit<GateState, "tool" | "allow">> {
  readonly allowedTools?: readonly AllowedTool[] | undefined;
  readonly subjects?: readonly Subject[];
  readonly tool?: Partial<LiveTool>;
  readonly allow?: readonly AllowedTool[];
}

/** What the gate says of one call of a live tool. */
export function judge(tool: string, given: Judged = {}): Verdict {
  const { allowedTools, subjects = [], allow = [], tool: live, ...state } = given;
  return decide({ tool }, compileEnvelope(allowedTools), {
    mode: "ask",
    workspace,
    ...state,
    allow: compileEnvelope(allow),
    tool: { effect: "write", builtin: true, bound: { ok: true, subjects }, ...live },
  });
}

/** The verdict in one word: `envelope`, `mode`, `ask`, or the cause of a refusal. */
export function word(verdict: Verdict): string {
  if (verdict.kind === "allow") return verdict.by;
  return verdict.kind === "prompt" ? "ask" : verdict.cause;
}

export function echoTool(spec: Partial<ToolSpec> = {}): Tool {
  return defineTool<Json>({
    name: "Echo",
    description: "Says what it was given.",
    input: { type: "object" },
    effect: "write",
    subjects: () => [],
    execute: async (input) => ({ ok: true, output: input }),
    ...spec,
  });
}

export async function bound(tool: Tool, input: Json): Promise<BoundInput> {
  const result = await tool.bind(input);
  if (!result.ok) throw new Error(`refused: ${JSON.stringify(result.issues)}`);
  return result;
}

export function toolCall(): ToolCall {
  return {
    ...attempt,
    proposalId: "t1.c0",
    idempotencyKey: "key",
    workspace,
    signal: new AbortController().signal,
    env: {},
    notes: {},
    mayWrite: false,
    reach: { reads: [""], writes: [], scratch: [], network: false, readOnly: [] },
    anyLine: false,
    othersAtWork: () => false,
    startsUnwalled: () => undefined,
    judged: [],
  };
}
