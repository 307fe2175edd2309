import { isJsonObject, type JsonObject } from "@sluice/core";
import { type CallEvent, HOST_NAMES, type HostName, hookAdapter } from "@sluice/gateway";
import { expect, test } from "vitest";
import { PAYLOADS } from "../../fixtures/hosts/payloads.ts";

const adapter = (host: HostName) => hookAdapter(host, { mcpServers: ["lab"], ownServer: "sluice" });

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
  expect(changed(host, { shellId: "s1" }).call.kind).toBe("refused");
  expect(changed(host, { tty: true }).call.kind).toBe("refused");
});

test.each(HOST_NAMES)("%s: a command that is not a text is refused", (host) => {
  expect(changed(host, { command: ["bash", "-lc", "id"] }).call.kind).toBe("refused");
});

test.each(HOST_NAMES)("%s: a tool that the gate does not know is refused", (host) => {
  const { event, payload } = shellOf(host);
  const name = host === "copilot" ? "toolName" : host === "opencode" ? "tool" : "tool_name";
  const read = adapter(host).read(event, { ...payload, [name]: "write_stdin" });
  expect(read).toMatchObject({ call: { kind: "refused", reason: expect.stringContaining("write_stdin") } });
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
