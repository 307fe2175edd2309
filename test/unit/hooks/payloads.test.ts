import { isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { type CallEvent, HOST_NAMES, type HostName, hookAdapter } from "@sluice/gateway";
import { expect, test } from "vitest";
import { OFFERED_TOOLS, REFUSED } from "../../fixtures/hosts/offered-tools.ts";
import { PAYLOADS } from "../../fixtures/hosts/payloads.ts";

const adapter = (host: HostName) => hookAdapter(host, { mcpServers: ["lab"], ownServers: ["sluice"] });

test.each(PAYLOADS.map((one) => [one.host, one.about, one] as const))(
  "%s: %s is read as recorded",
  (host, _about, { event, payload, expected }) => {
    expect(adapter(host).read(event, payload)).toMatchObject(expected);
  },
);

/** The recorded shell command of a host. */
function shellOf(host: HostName): { readonly event: string | undefined; readonly payload: JsonObject } {
  const found = PAYLOADS.find((one) => one.host === host && one.expected.kind === "pre");
  if (found === undefined || !isJsonObject(found.payload)) throw new Error(`no payload of ${host}`);
  return { event: found.event, payload: found.payload };
}

/** The member of a payload that holds the tool's input. */
const INPUT: Readonly<Record<HostName, string>> = {
  claude: "tool_input",
  codex: "tool_input",
  gemini: "tool_input",
  qwen: "tool_input",
  copilot: "toolArgs",
  opencode: "args",
};

function changed(host: HostName, more: JsonObject): CallEvent {
  const { event, payload } = shellOf(host);
  const member = INPUT[host];
  const input = payload[member] ?? {};
  if (!isJsonObject(input)) throw new Error("the input is no object");
  const read = adapter(host).read(event, { ...payload, [member]: { ...input, ...more } });
  if (read.kind !== "pre") throw new Error("not a call");
  return read;
}

test.each(HOST_NAMES)("%s: a shell command with a setting that the gate does not know is refused", (host) => {
  expect(changed(host, { sandbox_permissions: "require_escalated" }).call).toEqual({
    kind: "refused",
    reason: expect.stringContaining("sandbox_permissions"),
  });
  expect(changed(host, { tty: true }).call.kind).toBe("refused");
});

test.each(HOST_NAMES)("%s: a command that is not a text is refused", (host) => {
  expect(changed(host, { command: ["bash", "-lc", "id"] }).call.kind).toBe("refused");
});

/** The call of another tool. */
function called(host: HostName, tool: string, input?: JsonObject): CallEvent["call"] {
  const { event, payload } = shellOf(host);
  const name = host === "copilot" ? "toolName" : host === "opencode" ? "tool" : "tool_name";
  const read = adapter(host).read(event, { ...payload, [name]: tool, ...(input && { [INPUT[host]]: input }) });
  if (read.kind !== "pre") throw new Error("not a call");
  return read.call;
}

test.each(HOST_NAMES)("%s: a tool that the gate does not know is refused", (host) => {
  expect(called(host, "write_stdin")).toEqual({
    kind: "refused",
    reason: expect.stringContaining("write_stdin"),
  });
});

const OLD_AND_NEW = { file_path: "/w/a", old_string: "a", new_string: "b" };

test.each([
  ["claude", "Edit", { ...OLD_AND_NEW, replace_all: true }],
  ["claude", "Write", { file_path: "/w/a", content: "" }],
  ["claude", "NotebookEdit", { notebook_path: "/w/a", new_source: "" }],
  ["claude", "LS", { path: "/w" }],
  ["claude", "WebFetch", { url: "https://example.com", prompt: "" }],
  ["claude", "WebSearch", { query: "a" }],
  ["codex", "view_image", { path: "/w/a" }],
  ["gemini", "replace", { ...OLD_AND_NEW, allow_multiple: true, instruction: "" }],
  ["gemini", "list_directory", { dir_path: "/w" }],
  ["qwen", "edit", { ...OLD_AND_NEW, replace_all: true }],
  ["qwen", "read_file", { absolute_path: "/w/a" }],
  ["copilot", "edit", { path: "/w/a", old_str: "a", new_str: "b" }],
  ["copilot", "web_fetch", { url: "https://example.com", raw: true }],
  ["opencode", "edit", { filePath: "/w/a", oldString: "a", newString: "b", replaceAll: true }],
  ["opencode", "list", {}],
] satisfies [HostName, string, JsonObject][])("%s: %s with one more member is refused", (host, tool, input) => {
  expect(called(host, tool, input).kind).toBe("call");
  for (const more of ["replace_all", "follow", "path_override"])
    if (!Object.hasOwn(input, more))
      expect(called(host, tool, { ...input, [more]: true })).toEqual({
        kind: "refused",
        reason: expect.stringContaining(more),
      });
});

test.each(HOST_NAMES)("%s: a payload without a session, with an odd folder or of another shape is invalid", (host) => {
  const { event, payload } = shellOf(host);
  const invalid = { class: "Validation", code: "hook_payload_invalid" };
  const session = host === "copilot" ? "sessionId" : host === "opencode" ? "sessionID" : "session_id";
  for (const odd of [
    null,
    1,
    "{}",
    [payload],
    {},
    { ...payload, [session]: 7 },
    { ...payload, [session]: "x".repeat(5_000) },
  ]) {
    expect(() => adapter(host).read(event, odd)).toThrow(expect.objectContaining(invalid));
  }
  expect(() => adapter(host).read(event, { ...payload, cwd: "w" })).toThrow(expect.objectContaining(invalid));
  expect(() => adapter(host).read("anotherEvent", { ...payload })).not.toThrow(TypeError);
});

test("the gateway's own MCP tools are left to the gateway, at every host that names them", () => {
  const { payload } = shellOf("claude");
  const read = adapter("claude").read(undefined, { ...payload, tool_name: "mcp__sluice__transition", tool_input: {} });
  expect(read).toMatchObject({ call: { kind: "own" } });
  const spoofed = adapter("claude").read(undefined, {
    ...payload,
    tool_name: "mcp__sluice_x__transition",
    tool_input: {},
  });
  expect(spoofed).toMatchObject({ call: { kind: "call", tool: "mcp__sluice_x__transition" } });
});

test("a Gemini call whose name and MCP context differ is refused", () => {
  const { payload } = shellOf("gemini");
  const read = adapter("gemini").read(undefined, {
    ...payload,
    tool_name: "run_shell_command",
    mcp_context: { server_name: "sluice", tool_name: "transition" },
  });
  expect(read).toMatchObject({ call: { kind: "refused" } });
});

/** A value that fits the settings of this name. */
function settingOf(name: string): Json {
  const patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch";
  if (/^(?:url)$/.test(name)) return "https://example.com/";
  if (
    /^(?:run_in_background|replace_all|replaceAll|is_background|detach|dangerouslyDisableSandbox|allow_multiple)$/.test(
      name,
    )
  )
    return true;
  if (name === "paths") return ["/w/a", "/w/b"];
  if (name === "mode") return "async";
  if (name === "prompt") return "See https://example.com/.";
  return name === "command" ? patch : "x";
}

test.each(HOST_NAMES)(
  "%s: a tool that it offers is known with all of its settings, unless it is refused by name",
  (host) => {
    const isRefused = (tool: string, names: readonly string[]): boolean => {
      const { event, payload } = shellOf(host);
      const member = host === "copilot" ? "toolName" : host === "opencode" ? "tool" : "tool_name";
      const input = Object.fromEntries(names.map((name) => [name, settingOf(name)]));
      const read = adapter(host).read(event, { ...payload, [member]: tool, [INPUT[host]]: input });
      return read.kind === "pre" && read.call.kind === "refused";
    };
    const refused: string[] = [];
    for (const [tool, settings] of Object.entries(OFFERED_TOOLS[host])) {
      const names = settings.split(" ").filter((name) => name !== "");
      const known = names.filter((name) => !REFUSED[host].includes(`${tool}.${name}`));
      if (isRefused(tool, known)) refused.push(tool);
      for (const name of names)
        if (!known.includes(name) && isRefused(tool, [...known, name])) refused.push(`${tool}.${name}`);
    }
    expect(refused).toEqual(REFUSED[host]);
  },
);

test("Qwen Code's agents that are other programs are refused, because their calls reach no hook", () => {
  const { payload } = shellOf("qwen");
  const typed = (subagent_type: string) =>
    adapter("qwen").read(undefined, {
      ...payload,
      tool_name: "agent",
      tool_input: { description: "d", prompt: "p", subagent_type },
    });
  expect(typed("claude-code")).toMatchObject({ call: { kind: "refused" } });
  expect(typed("codex")).toMatchObject({ call: { kind: "refused" } });
  expect(typed("general-purpose")).toMatchObject({ call: { kind: "call", tool: "Agent" } });
});

test("Copilot CLI's subagents of subagents belong to the session of the main agent", () => {
  const copilot = adapter("copilot");
  const start = (sessionId: string, agentId: string, parentAgentId: string) =>
    copilot.read("subagentStart", { sessionId, cwd: "/w", agentId, parentAgentId });
  start("root", "child", "root");
  start("child", "grandchild", "child");
  const event = copilot.read("preToolUse", {
    sessionId: "grandchild",
    cwd: "/w",
    toolName: "view",
    toolArgs: { path: "/w/a" },
    agentId: "grandchild",
    parentAgentId: "child",
  });
  expect(event).toMatchObject({ session: "root", agent: "grandchild" });
});

test("the prompt of Gemini CLI is what the user wrote, without the text of other hooks before it", () => {
  const payload = {
    session_id: "s",
    transcript_path: "/t",
    cwd: "/w",
    hook_event_name: "BeforeAgent",
    timestamp: "2026-11-22T14:55:23.631Z",
    prompt: "<hook_context>You are in the phase plan.</hook_context>\n\nRename the option.",
  };
  expect(adapter("gemini").read("BeforeAgent", payload)).toMatchObject({
    kind: "prompt",
    prompt: "Rename the option.",
  });
});
