import { isJsonObject, type Json, type JsonObject, parseJson } from "@sluice/core";
import { type CallEvent, HOST_NAMES, type HookEvent, type HostName, hookAdapter } from "@sluice/gateway";
import { expect, test } from "vitest";
import { z } from "zod";
import { PAYLOADS } from "../../fixtures/hosts/payloads.ts";

const adapter = (host: HostName) => hookAdapter(host, { mcpServers: ["lab"] });

function callOf(host: HostName): CallEvent {
  const found = PAYLOADS.find((one) => one.host === host && one.expected.kind === "pre");
  const event = found === undefined ? undefined : adapter(host).read(found.event, found.payload);
  if (event?.kind !== "pre") throw new Error(`no call of ${host}`);
  return event;
}

function answerOf(host: HostName, ...given: Parameters<ReturnType<typeof adapter>["answer"]>): Json {
  const { body, status } = adapter(host).answer(...given);
  const parsed = parseJson(body);
  if (!parsed.ok) throw new Error(parsed.fault);
  expect(status).toBe(200);
  return parsed.value;
}

const reason = z.string().regex(/\S/);
const input = z.record(z.string(), z.json());
const claudePre = (rewrites: boolean) =>
  z.strictObject({
    hookSpecificOutput: z.union([
      z.strictObject({
        hookEventName: z.literal("PreToolUse"),
        permissionDecision: z.literal("allow"),
        ...(rewrites ? { updatedInput: input.optional() } : {}),
      }),
      z.strictObject({
        hookEventName: z.literal("PreToolUse"),
        permissionDecision: z.literal("deny"),
        permissionDecisionReason: reason,
      }),
    ]),
  });

/** What each host accepts as the answer of its hook before a call: no other member, and no denial without a reason. */
const PRE_SCHEMAS: Readonly<Record<HostName, z.ZodType>> = {
  claude: claudePre(true),
  codex: claudePre(true),
  qwen: claudePre(true),
  gemini: z.union([
    z.strictObject({
      decision: z.literal("allow"),
      hookSpecificOutput: z.strictObject({ hookEventName: z.literal("BeforeTool"), tool_input: input }).optional(),
    }),
    z.strictObject({ decision: z.literal("deny"), reason }),
  ]),
  copilot: z.union([
    z.strictObject({ permissionDecision: z.literal("allow"), modifiedArgs: input.optional() }),
    z.strictObject({ permissionDecision: z.literal("deny"), permissionDecisionReason: reason }),
  ]),
  opencode: z.union([
    z.strictObject({ decision: z.literal("allow"), args: input.optional() }),
    z.strictObject({ decision: z.literal("deny"), reason }),
  ]),
};

test.each(HOST_NAMES)("%s: every answer before a call fits the host's schema, and only `allow` allows", (host) => {
  const event = callOf(host);
  const schema = PRE_SCHEMAS[host];
  const allows = (answer: Json): boolean => /"(?:permissionDecision|decision)":"allow"/.test(JSON.stringify(answer));
  for (const decision of [
    { kind: "allow" },
    { kind: "allow", command: "'ls'" },
    { kind: "deny", reason: "no" },
    { kind: "deny", reason: "" },
    { kind: "deny", reason: " \n" },
    { kind: "deny", reason: 'quotes " and \\ and \u0000 and \ud800 and \n#deadbeef' },
    { kind: "context", text: "x" },
    { kind: "block", reason: "no" },
    { kind: "continue" },
  ] as const) {
    const answer = answerOf(host, event, decision);
    expect([decision.kind, schema.safeParse(answer).success, allows(answer)]).toEqual([
      decision.kind,
      true,
      decision.kind === "allow",
    ]);
  }
  const refused = parseJson(adapter(host).refuse(host === "gemini" ? "BeforeTool" : undefined, "").body);
  expect(refused.ok && schema.safeParse(refused.value).success && !allows(refused.value)).toBe(true);
});

test.each(HOST_NAMES)("%s: an answer is one line, so that nothing in it is taken for a proof", (host) => {
  const event = callOf(host);
  const { body } = adapter(host).answer(event, { kind: "deny", reason: "a\n#0000\r\n\u2028" });
  expect(body).not.toContain("\n");
});

/** Where the rewritten input is in each host's answer. */
const REWRITTEN: Readonly<Record<HostName, readonly string[]>> = {
  claude: ["hookSpecificOutput", "updatedInput"],
  codex: ["hookSpecificOutput", "updatedInput"],
  gemini: ["hookSpecificOutput", "tool_input"],
  qwen: ["hookSpecificOutput", "updatedInput"],
  copilot: ["modifiedArgs"],
  opencode: ["args"],
};

test.each(HOST_NAMES)("%s: a rewritten command keeps the other settings of the call", (host) => {
  const event = callOf(host);
  const line = adapter(host).lineFor(event, "'ls'");
  const answer = answerOf(host, event, { kind: "allow", command: line });
  let found: Json | undefined = answer;
  for (const name of REWRITTEN[host])
    found = isJsonObject(found ?? null) && isJsonObject(found) ? found[name] : undefined;
  expect(found).toEqual({ ...event.native.input, command: line });
});

test("hosts that do not say in which folder a command runs get a line that changes to it first, or runs nothing", () => {
  for (const host of ["codex", "copilot"] as const) {
    const event = { ...callOf(host), cwd: "/w/it's" };
    expect(adapter(host).lineFor(event, "'ls'")).toBe("cd -- '/w/it'\\''s' || exit 1\n'ls'");
  }
  for (const host of ["claude", "gemini", "opencode"] as const)
    expect(adapter(host).lineFor(callOf(host), "'ls'")).toBe("'ls'");
});

/** An event of a host, with members that all of its payloads have. */
function lifeOf(host: HostName, name: string, more: JsonObject = {}): HookEvent {
  const session: Readonly<Record<HostName, JsonObject>> = {
    claude: { session_id: "s" },
    codex: { session_id: "s" },
    gemini: { session_id: "s" },
    qwen: { session_id: "s" },
    copilot: { sessionId: "s" },
    opencode: { sessionID: "s" },
  };
  return adapter(host).read(name, { ...session[host], cwd: "/w", ...more });
}

test.each([
  ["claude", "SessionStart", { hookSpecificOutput: { hookEventName: "SessionStart", additionalContext: "phase" } }],
  [
    "claude",
    "UserPromptSubmit",
    { hookSpecificOutput: { hookEventName: "UserPromptSubmit", additionalContext: "phase" } },
  ],
  ["codex", "SessionStart", { hookSpecificOutput: { hookEventName: "SessionStart", additionalContext: "phase" } }],
  [
    "codex",
    "UserPromptSubmit",
    { hookSpecificOutput: { hookEventName: "UserPromptSubmit", additionalContext: "phase" } },
  ],
  [
    "qwen",
    "UserPromptSubmit",
    { hookSpecificOutput: { hookEventName: "UserPromptSubmit", additionalContext: "phase" } },
  ],
  ["gemini", "SessionStart", { hookSpecificOutput: { hookEventName: "SessionStart", additionalContext: "phase" } }],
  ["gemini", "BeforeAgent", { hookSpecificOutput: { hookEventName: "BeforeAgent", additionalContext: "phase" } }],
  ["copilot", "sessionStart", { additionalContext: "phase" }],
  ["copilot", "userPromptSubmitted", { additionalContext: "phase" }],
  ["opencode", "session.start", { decision: "allow", context: "phase" }],
] as const)("%s: %s brings the phase into the agent's context", (host, name, expected) => {
  const event = lifeOf(host, name, { prompt: "Fix it." });
  expect(answerOf(host, event, { kind: "context", text: "phase" })).toEqual(expected);
});

test.each([
  ["claude", "Stop", { decision: "block", reason: "go on" }],
  ["codex", "Stop", { decision: "block", reason: "go on" }],
  ["qwen", "Stop", { decision: "block", reason: "go on" }],
  ["gemini", "AfterAgent", { decision: "deny", reason: "go on" }],
  ["copilot", "agentStop", { decision: "block", reason: "go on" }],
  ["claude", "ConfigChange", { decision: "block", reason: "go on" }],
] as const)("%s: %s is refused in the host's words, and accepted with an empty object", (host, name, expected) => {
  const event = lifeOf(host, name);
  expect(answerOf(host, event, { kind: "block", reason: "go on" })).toEqual(expected);
  expect(answerOf(host, event, { kind: "continue" })).toEqual({});
});

test.each([
  ["claude", "PermissionRequest", { tool_name: "Bash", tool_input: { command: "ls" } }],
  ["codex", "PermissionRequest", { tool_name: "Bash", tool_input: { command: "ls" } }],
] as const)("%s: a permission is given or refused with a message", (host, name, more) => {
  const event = lifeOf(host, name, more);
  const own = (decision: JsonObject): JsonObject => ({ hookSpecificOutput: { hookEventName: name, decision } });
  expect(answerOf(host, event, { kind: "allow" })).toEqual(own({ behavior: "allow" }));
  expect(answerOf(host, event, { kind: "deny", reason: "no" })).toEqual(own({ behavior: "deny", message: "no" }));
  expect(answerOf(host, event, { kind: "continue" })).toMatchObject(own({ behavior: "deny" }));
});

test("copilot: a permission is given or refused with a message", () => {
  const event = lifeOf("copilot", "permissionRequest", { toolName: "bash", toolInput: { command: "ls" } });
  expect(answerOf("copilot", event, { kind: "allow" })).toEqual({ behavior: "allow" });
  expect(answerOf("copilot", event, { kind: "deny", reason: "no" })).toEqual({ behavior: "deny", message: "no" });
});

test("an MCP server's question is passed on, whatever was decided", () => {
  const event = lifeOf("claude", "Elicitation");
  for (const decision of [{ kind: "allow" }, { kind: "context", text: "x" }, { kind: "continue" }] as const)
    expect(answerOf("claude", event, decision)).toEqual({});
});
