import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Json, JsonObject, Subject, Tool, ToolCall, ToolResult, Workspace } from "@sluice/core";
import {
  type CallEvent,
  type HostName,
  hookAdapter,
  type MappedCall,
  nativeTools,
  REFUSED_TOOL,
} from "@sluice/gateway";
import { builtinTools } from "@sluice/stages/runtime";
import { expect, test } from "vitest";
import { judge, toolCall, word } from "../support/gate.ts";
import { ATTACKS, ENVELOPES, linePlace } from "../support/shell-lanes.ts";
import { tempFolder } from "../support/tools.ts";

// What an agent tries through the hooks of its host: the calls are judged as those of a stage, and payloads cannot say otherwise.

const HOSTS = ["claude", "codex", "gemini", "qwen", "copilot", "opencode"] as const;

/** The names under which each host runs a command line. */
const SHELL: Readonly<Record<HostName, string>> = {
  claude: "Bash",
  codex: "Bash",
  gemini: "run_shell_command",
  qwen: "run_shell_command",
  copilot: "bash",
  opencode: "bash",
};

/** A call before it runs, as its host sends it. */
function preOf(host: HostName, cwd: string, tool: string, input: Json): CallEvent {
  const payload: Readonly<Record<HostName, JsonObject>> = {
    claude: { session_id: "s", cwd, hook_event_name: "PreToolUse", tool_name: tool, tool_input: input },
    codex: { session_id: "s", cwd, hook_event_name: "PreToolUse", tool_name: tool, tool_input: input },
    gemini: { session_id: "s", cwd, hook_event_name: "BeforeTool", tool_name: tool, tool_input: input },
    qwen: { session_id: "s", cwd, hook_event_name: "PreToolUse", tool_name: tool, tool_input: input },
    copilot: { sessionId: "s", cwd, toolName: tool, toolArgs: input },
    opencode: { sessionID: "s", cwd, event: "tool.execute.before", tool, args: input },
  };
  const adapter = hookAdapter(host, { mcpServers: ["lab"], ownServers: ["sluice"] });
  const event = adapter.read(host === "copilot" ? "preToolUse" : undefined, payload[host]);
  if (event.kind !== "pre") throw new Error(`${event.kind} is no call`);
  return event;
}

const never = async (): Promise<ToolResult> => {
  throw new Error("handed over");
};

interface World {
  readonly workspace: Workspace;
  readonly env: Readonly<Record<string, string>>;
}

async function subjectsOf(
  tools: readonly Tool[],
  name: string,
  input: Json,
  { workspace, env }: World,
): Promise<readonly Subject[] | string> {
  const tool = tools.find((one) => one.name === name);
  if (tool === undefined) return "unknown_tool";
  const bound = await tool.bind(input);
  return bound.ok ? bound.subjects(workspace, { env, mayWrite: false }) : "invalid_tool_input";
}

/** The verdict on a call of a host: `envelope`, `ask`, or the cause of a denial. */
async function verdictOn(call: MappedCall, allowedTools: readonly string[], world: World): Promise<string> {
  if (call.kind !== "call") return call.kind;
  const subjects = await subjectsOf(nativeTools({ handOver: never }), call.tool, call.input, world);
  if (typeof subjects === "string") return subjects;
  return word(judge(call.tool, { allowedTools, subjects, workspace: world.workspace }));
}

test("a line of the shell corpus is judged through hooks as in a stage, and runs as the line that was judged", async () => {
  const place = linePlace();
  try {
    const workspace = { root: place.root, store: join(place.root, ".sluice/store") };
    const world = { workspace, env: place.env };
    const builtins = builtinTools();
    const handed: Json[] = [];
    const native = nativeTools({
      handOver: async (_call, input) => {
        handed.push(input);
        return { ok: true, output: "" };
      },
    });
    const bash = native.find(({ name }) => name === "Bash");
    const different: string[] = [];
    const counts = { envelope: 0, ask: 0, limit: 0 };
    for (const [at, attack] of ATTACKS.entries()) {
      if (attack.place !== undefined) continue;
      const command = place.fill(attack.line);
      const host = HOSTS[at % HOSTS.length] ?? "claude";
      const { call } = preOf(host, place.root, SHELL[host], { command });
      if (call.kind !== "call") throw new Error(`${host}: ${JSON.stringify(call)}`);
      const own = await subjectsOf(builtins, "Bash", { command }, world);
      const theirs = await subjectsOf(native, call.tool, call.input, world);
      const allowedTools = ENVELOPES[attack.stage] ?? [];
      if (typeof own === "string" || typeof theirs === "string")
        throw new Error(`no subjects: ${JSON.stringify([own, theirs])}`);
      const verdicts = [own, theirs].map((subjects) => word(judge("Bash", { allowedTools, subjects, workspace })));
      if (JSON.stringify(own) !== JSON.stringify(theirs) || verdicts[0] !== verdicts[1])
        different.push(`${host} ${attack.name}: ${verdicts.join(" ")} ${command}`);
      const [verdict = ""] = verdicts;
      if (verdict in counts) counts[verdict === "envelope" || verdict === "ask" ? verdict : "limit"] += 1;
      if (verdict !== "envelope") continue;
      const bound = await bash?.bind(call.input);
      const context: ToolCall = { ...toolCall(), workspace, env: place.env, judged: theirs };
      if (bound?.ok === true) await bound.execute(context).catch(() => undefined); // a line that cannot be rewritten does not run
      const line = theirs.find((subject) => subject.kind === "line");
      const ran = handed.pop();
      if (ran !== undefined) expect(ran).toMatchObject({ command: line?.kind === "line" ? line.text : undefined });
    }
    console.log(`${ATTACKS.length} lines through hooks: ${JSON.stringify(counts)}`);
    expect(different).toEqual([]);
    expect(counts.envelope).toBeGreaterThan(10);
    expect(counts.ask).toBeGreaterThan(100);
  } finally {
    place.remove();
  }
});

function files() {
  const folder = tempFolder();
  const { root } = folder;
  mkdirSync(join(root, "src"));
  mkdirSync(join(root, ".git"));
  mkdirSync(join(root, ".sluice/store"), { recursive: true });
  writeFileSync(join(root, "src/a.ts"), "one\ntwo\n");
  symlinkSync("/etc", join(root, "src/etc"));
  return { root, world: { workspace: { root, store: join(root, ".sluice/store") }, env: {} } };
}

const EVERYTHING = ["Read", "Edit", "Write", "Grep", "Glob", "Bash", "WebFetch", "Agent"];

test.each([
  "/etc/passwd",
  "~/.ssh/id_rsa",
  " /etc/passwd",
  "/etc/passwd\n",
  "src/../../../etc/passwd",
  "../../../../../../etc/passwd",
  "src/etc/passwd",
  "file:///etc/passwd",
  "@/etc/passwd",
  "/proc/self/environ",
  "src/a.ts\u0000.txt",
  ".sluice/store/runs.db",
  "",
  "x".repeat(5_000),
])("the path %j is no way out, for reading or writing, at any host", async (path) => {
  const { root, world } = files();
  const calls: readonly (readonly [HostName, string, JsonObject])[] = [
    ["claude", "Read", { file_path: path }],
    ["claude", "Write", { file_path: path, content: "x" }],
    ["claude", "Edit", { file_path: path, old_string: "a", new_string: "b" }],
    ["claude", "MultiEdit", { file_path: path, edits: [{ old_string: "a", new_string: "b" }] }],
    ["claude", "NotebookEdit", { notebook_path: path, new_source: "x" }],
    ["claude", "LS", { path }],
    ["codex", "view_image", { path }],
    ["codex", "apply_patch", { command: `*** Begin Patch\n*** Add File: ${path}\n+x\n*** End Patch\n` }],
    [
      "codex",
      "apply_patch",
      { command: `*** Begin Patch\n*** Update File: src/a.ts\n*** Move to: ${path}\n*** End Patch\n` },
    ],
    ["gemini", "read_file", { file_path: path }],
    ["gemini", "replace", { file_path: path, old_string: "a", new_string: "b" }],
    ["qwen", "write_file", { file_path: path, content: "x" }],
    ["copilot", "view", { path }],
    ["copilot", "create", { path, file_text: "x" }],
    ["opencode", "edit", { filePath: path, oldString: "a", newString: "b" }],
    ["opencode", "read", { filePath: path }],
  ];
  for (const [host, tool, input] of calls) {
    const verdict = await verdictOn(preOf(host, root, tool, input).call, EVERYTHING, world);
    expect([host, tool, verdict]).toEqual([host, tool, expect.stringMatching(/^(?:refused|limit)$/)]);
  }
});

test.each([".git/hooks/pre-commit", ".sluice/pipelines/x.ts", "sluice.config.ts", ".GIT/config"])(
  "%s is written by no host",
  async (path) => {
    const { root, world } = files();
    const patch = `*** Begin Patch\n*** Update File: src/a.ts\n@@\n-one\n+1\n*** Add File: ${path}\n+x\n*** End Patch\n`;
    for (const [host, tool, input] of [
      ["claude", "Write", { file_path: join(root, path), content: "x" }],
      ["codex", "apply_patch", { command: patch }],
      ["opencode", "patch", { patchText: patch }],
      ["gemini", "write_file", { file_path: path, content: "x" }],
    ] as const)
      expect(await verdictOn(preOf(host, root, tool, input).call, EVERYTHING, world)).toBe("limit");
  },
);

test.each([
  "../**",
  "/etc/**",
  "src/{a,../../x}/*",
  "{src,/etc}/*",
  "{src, /etc}/*",
  "@(..|src)/*",
  "~/*",
  "src/..",
  "a\\..\\b",
])("the pattern %j does not leave the workspace", async (pattern) => {
  const { root, world } = files();
  for (const [host, tool, input] of [
    ["claude", "Glob", { pattern }],
    ["gemini", "glob", { pattern }],
    ["gemini", "read_many_files", { include: [pattern] }],
    ["qwen", "grep_search", { pattern: "x", glob: pattern }],
    ["opencode", "glob", { pattern, path: root }],
  ] as const) {
    const { call } = preOf(host, root, tool, input);
    const verdict = await verdictOn(call, EVERYTHING, world);
    // A filter of names that is absolute matches nothing below the searched folder.
    if (tool === "grep_search" && pattern === "/etc/**") continue;
    expect([tool, verdict]).toEqual([tool, expect.stringMatching(/^(?:refused|limit)$/)]);
  }
});

test("ordinary patterns and paths stay usable", async () => {
  const { root, world } = files();
  for (const [host, tool, input] of [
    ["claude", "Glob", { pattern: "**/*.{ts,tsx}" }],
    ["claude", "Glob", { pattern: `${root}/src/**/*.ts` }],
    ["claude", "Glob", { pattern: "src/[a-c]*.ts" }],
    ["claude", "Grep", { pattern: "foo|../bar", path: "src", glob: "*.{js,ts}", "-n": true }],
    ["gemini", "read_many_files", { include: ["src/**/*.ts", "README.md"] }],
    ["gemini", "grep_search", { pattern: "x", include: "*.ts" }],
    ["qwen", "list_directory", { path: root }],
    ["copilot", "view", { path: join(root, "src/a.ts"), view_range: [1, 2] }],
    ["opencode", "grep", { pattern: "x", include: "*.ts" }],
    ["claude", "WebFetch", { url: "https://example.com/x?y=1", prompt: "p" }],
    ["gemini", "web_fetch", { prompt: "Summarize https://example.com/a and https://example.org/b." }],
    ["claude", "Agent", { description: "d", prompt: "p", subagent_type: "general-purpose" }],
    ["claude", "Write", { file_path: join(root, "node_modules/@types/x.d.ts"), content: "" }],
    [
      "codex",
      "apply_patch",
      {
        command: "*** Begin Patch\n*** Update File: src/a.ts\n@@ fn\n-one\n+1\n two\n\n*** End of File\n*** End Patch",
      },
    ],
  ] as const)
    expect([tool, input, await verdictOn(preOf(host, root, tool, input).call, EVERYTHING, world)]).toEqual([
      tool,
      input,
      "envelope",
    ]);
});

test.each([
  [
    "a header with spaces before it",
    "*** Begin Patch\n*** Update File: src/a.ts\n  *** Delete File: .git/config\n*** End Patch",
  ],
  [
    "a header inside of an added file",
    "*** Begin Patch\n*** Add File: src/b.ts\n+x\n *** Delete File: .git/config\n*** End Patch",
  ],
  ["a header of another kind", "*** Begin Patch\n*** Environment ID: x\n*** Add File: src/b.ts\n+x\n*** End Patch"],
  ["a text before the patch", "cat <<EOF\n*** Begin Patch\n*** Add File: b\n+x\n*** End Patch\nEOF"],
  [
    "two patches",
    "*** Begin Patch\n*** Add File: b\n+x\n*** End Patch\n*** Begin Patch\n*** Delete File: .git/config\n*** End Patch",
  ],
  ["a carriage return in a header", "*** Begin Patch\n*** Add File: b\r\n+x\n*** End Patch"],
  [
    "a carriage return instead of a line end",
    "*** Begin Patch\n*** Delete File: src/a.ts\r*** Delete File: .git/config\n*** End Patch",
  ],
  [
    "a separator of Unicode",
    "*** Begin Patch\n*** Delete File: src/a.ts\u2028*** Delete File: .git/config\n*** End Patch",
  ],
  ["no file", "*** Begin Patch\n*** End Patch"],
  ["no end", "*** Begin Patch\n*** Add File: b\n+x"],
  ["a path with spaces around it", "*** Begin Patch\n*** Add File:  /etc/passwd\n+x\n*** End Patch"],
])("a patch with %s is refused", async (_about, command) => {
  const { root, world } = files();
  const { call } = preOf("codex", root, "apply_patch", { command });
  expect(await verdictOn(call, EVERYTHING, world)).toMatch(/^(?:refused|limit)$/);
});

test("every file of a patch is compared with the envelope, and a patch that creates one is a Write", async () => {
  const { root, world } = files();
  const verdict = async (body: string, allowed: readonly string[]): Promise<string> =>
    await verdictOn(
      preOf("codex", root, "apply_patch", { command: `*** Begin Patch\n${body}\n*** End Patch` }).call,
      allowed,
      world,
    );
  const update = "*** Update File: src/a.ts\n@@\n-one\n+1";
  expect(await verdict(update, ["Edit(src/**)"])).toBe("envelope");
  expect(await verdict(`${update}\n*** Delete File: README.md`, ["Edit(src/**)"])).toBe("ask");
  expect(await verdict("*** Update File: src/a.ts\n*** Move to: lib/a.ts\n@@\n-one\n+1", ["Write(src/**)"])).toBe(
    "ask",
  );
  expect(await verdict("*** Add File: src/b.ts\n+x", ["Edit(src/**)"])).toBe("ask");
  expect(await verdict("*** Add File: src/b.ts\n+x", ["Write(src/**)"])).toBe("envelope");
  expect(await verdict(update, ["Read"])).toBe("ask");
});

test("an edit of nothing is a Write, at every host that creates files in this way", async () => {
  const { root, world } = files();
  for (const [host, tool, input] of [
    ["claude", "Edit", { file_path: "src/b.ts", old_string: "", new_string: "x" }],
    ["claude", "MultiEdit", { file_path: "src/b.ts", edits: [{ old_string: "", new_string: "x" }] }],
    ["gemini", "replace", { file_path: "src/b.ts", old_string: "", new_string: "x" }],
    ["opencode", "edit", { filePath: "src/b.ts", oldString: "", newString: "x" }],
  ] as const)
    expect([tool, await verdictOn(preOf(host, root, tool, input).call, ["Edit"], world)]).toEqual([tool, "ask"]);
});

test.each([
  "ftp://x/y",
  "file:///etc/passwd",
  "http://user:secret@example.com/",
  "javascript:alert(1)",
  "",
  "example.com",
])("the address %j is not fetched", (url) => {
  expect(preOf("claude", "/w", "WebFetch", { url, prompt: "p" }).call.kind).toBe("refused");
  expect(preOf("opencode", "/w", "webfetch", { url, format: "text" }).call.kind).toBe("refused");
});

test("a command that outlives its call needs a grant unless any line may run", async () => {
  const { root, world } = files();
  const { call } = preOf("claude", root, "Bash", { command: "cat src/a.ts", run_in_background: true });
  expect(await verdictOn(call, ["Read", "Bash(cat *)"], world)).toBe("ask");
  const copilot = preOf("copilot", root, "bash", { command: "cat src/a.ts", mode: "async" });
  expect(await verdictOn(copilot.call, ["Read", "Bash(cat *)"], world)).toBe("ask");
  const foreground = preOf("claude", root, "Bash", { command: "cat src/a.ts" });
  expect(await verdictOn(foreground.call, ["Read", "Bash(cat *)"], world)).toBe("envelope");
});

test.each([
  ["command", "Bash", { command: "cat src/a.ts" }],
  ["skill", "Skill", { skill: "x" }],
])("a run that requires a sandbox runs no %s of a host", async (_, name, given) => {
  const { root, world } = files();
  const { call } = preOf("claude", root, name, given);
  if (call.kind !== "call") throw new Error("not a call");
  const tools = nativeTools({ handOver: never, requiresSandbox: true });
  const subjects = await subjectsOf(tools, name, call.input, world);
  expect(
    word(
      judge(name, {
        allowedTools: [name],
        subjects: typeof subjects === "string" ? [] : subjects,
        workspace: world.workspace,
      }),
    ),
  ).toBe("limit");
});

test.each([
  ["claude", "__proto__"],
  ["claude", "constructor"],
  ["claude", "bash"],
  ["claude", "BASH"],
  ["claude", "Bash "],
  ["claude", "mcp__sluice__"],
  ["claude", "mcp____transition"],
  ["claude", "mcp__a/b__c"],
  ["claude", REFUSED_TOOL],
  ["codex", "write_stdin"],
  ["codex", "exec"],
  ["gemini", "save_memory"],
  ["gemini", "mcp_sluice_transition"],
  ["qwen", "tool_call"],
  ["copilot", "write_bash"],
  ["copilot", "github-mcp-server-push"],
  ["copilot", "lab"],
  ["opencode", "batch"],
  ["opencode", "other_tool"],
] as const)("%s: the tool %j is not known, so it is refused", (host, tool) => {
  expect(preOf(host, "/w", tool, {}).call.kind).toBe("refused");
});

test("ids are text: one that is a path, a script or a key of objects changes nothing", () => {
  const adapter = hookAdapter("claude");
  for (const session_id of ["../../etc/passwd", "/etc/passwd", "__proto__", "$(id)", "a\nb", "'; rm -rf /'"]) {
    const event = adapter.read(undefined, { session_id, cwd: "/w", hook_event_name: "SessionEnd" });
    expect(event).toEqual({ kind: "session_end", name: "SessionEnd", session: session_id, cwd: "/w" });
  }
});

test("no source of the hooks opens a file or starts a process: ids of a payload cannot become either", () => {
  for (const file of ["hook-routes", "hook-calls", "adapters/claude", "adapters/fields", "adapters/mapping"]) {
    const source = readFileSync(join(import.meta.dirname, `../../packages/gateway/src/hooks/${file}.ts`), "utf8");
    expect(source).not.toMatch(/node:(?:fs|child_process)/);
  }
});

test.each([
  'https://good.example"@evil.example/x',
  "https://good.example'.evil.example/x",
  "https://good.example).evil.example/x",
  "(https://evil.example/x)",
])("a prompt with the address %s is judged by each host that it may name", async (address) => {
  const { root, world } = files();
  const { call } = preOf("gemini", root, "web_fetch", { prompt: `Read https://good.example/a and ${address}` });
  expect(await verdictOn(call, ["WebFetch(good.example)"], world)).not.toBe("envelope");
});

test("a path with .. behind a folder is refused, because hosts resolve it by text and the kernel by links", () => {
  for (const path of ["src/etc/../a.ts", "/w/src/../a.ts", "src/..", "./src/../src/a.ts"])
    expect([path, preOf("claude", "/w", "Read", { file_path: path }).call.kind]).toEqual([path, "refused"]);
  const parent = preOf("claude", "/w/src", "Read", { file_path: "../a.ts" });
  expect(parent.call).toMatchObject({ kind: "call", input: { file_path: "/w/a.ts" } });
});
