import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Desk, desk } from "../support/command.ts";

// An agent that works on what stands around its run: the command, the settings of its host, the store.

const BIN = join(import.meta.dirname, "../../packages/cli/bin/sluice.js");
const OPEN = `
id: open
initial: work
states:
  work:
    instructions: Work.
    allowed_tools: [Read, Write, Edit, Bash]
    on: { DONE: done }
  done: { type: final }
`;

type Call = (tool: string, args?: Record<string, unknown>) => Promise<{ ok: boolean; text: string }>;

async function agentAt({ folder }: Desk, args: readonly string[] = []): Promise<Call> {
  const client = new Client({ name: "agent", version: "1.0.0" });
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [BIN, "gateway", "--workflow", "flow.yaml", "--task", "work", "--no-wait", ...args],
      cwd: folder,
      env: {
        PATH: process.env.PATH ?? "",
        HOME: join(folder, "../home"),
        XDG_STATE_HOME: join(folder, "../state"),
        SLUICE_GATEWAY_TOKEN: "token-of-another-run",
      },
      stderr: "ignore",
    }),
  );
  onTestFinished(() => client.close());
  return async (name, input = {}) => {
    const { content, isError } = CallToolResultSchema.parse(await client.callTool({ name, arguments: input }));
    const text = content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
    return { ok: isError !== true, text };
  };
}

const runOf = (text: string): string => /"runId": ?"(r\w+)"|run (r\w+)/.exec(text)?.[1] ?? "r0000000000";

describe.each(["off", "try"])("with sandbox %s", (sandbox) => {
  async function working() {
    const at = desk();
    at.write("flow.yaml", OPEN);
    at.write("a.txt", "one\n");
    const call = await agentAt(at, ["--sandbox", sandbox]);
    const { text } = await call("get_state");
    return { at, call, runId: runOf(text) };
  }

  test("no file from which a host takes hooks or servers can be written", async () => {
    const { at, call } = await working();
    at.write("elsewhere/x.txt", "x\n");
    symlinkSync(join(at.folder, ".claude"), join(at.folder, "link"));
    const files = [
      ".mcp.json",
      ".claude/settings.json",
      ".claude/settings.local.json",
      ".claude/hooks/a.sh",
      "link/settings.json",
      ".codex/config.toml",
      ".codex/hooks.json",
      ".gemini/settings.json",
      ".qwen/settings.json",
      ".github/copilot/settings.json",
      ".github/hooks/sluice.json",
      ".opencode/plugin/evil.js",
      ".opencode/tools/evil.ts",
      "opencode.json",
    ];
    for (const file of files) {
      const reply = await call("Write", { file_path: file, content: '{"disableAllHooks": true}' });
      expect(reply.ok, file).toBe(false);
      await call("Bash", { command: `echo '{}' > ${file}` });
      // Without a wall, a phase that may run every line writes with programs that the gate cannot see through.
      if (sandbox === "try") await call("Bash", { command: `mkdir -p "$(dirname ${file})"; echo '{}' > ${file}` });
      expect(existsSync(join(at.folder, file)), file).toBe(false);
    }
    // What people write for agents is not about hooks.
    expect((await call("Write", { file_path: "CLAUDE.md", content: "Be brief.\n" })).ok).toBe(true);
    for (const file of [".claude/commands/a.md", ".opencode/command/a.md"])
      expect(await call("Write", { file_path: file, content: "a\n" }), file).toMatchObject({
        ok: true,
        text: expect.stringContaining("Created"),
      });
    expect((await call("Write", { file_path: ".github/workflows/a.yml", content: "a: 1\n" })).ok).toBe(true);
  });

  test("neither the workflow nor the store nor the user's state can be changed", async () => {
    const { at, call } = await working();
    for (const file of ["flow.yaml", ".sluice/store/x", "sluice.config.ts", "../state/sluice/trust.json"]) {
      expect((await call("Write", { file_path: file, content: "evil: true\n" })).ok, file).toBe(false);
      await call("Bash", { command: `echo 'evil' >> ${file}` });
    }
    expect(readFileSync(join(at.folder, "flow.yaml"), "utf8")).toBe(OPEN);
    expect(existsSync(join(at.folder, "sluice.config.ts"))).toBe(false);
    expect(existsSync(join(at.folder, "../state/sluice/trust.json"))).toBe(false);
    expect((await call("Read", { file_path: ".sluice/store/journal.db" })).ok).toBe(false);
  });

  test("no command of people can be run, whatever hides its name", async () => {
    const { at, call, runId } = await working();
    const lines = [
      `sluice answer ${runId} work#1/a1/t0.c0 approve`,
      `sluice resume ${runId}`,
      `sluice cancel ${runId}`,
      `sluice gateway --resume ${runId}`,
      "sluice gateway run claude",
      "sluice hook remove claude",
      "sluice acp",
      "npx sluice hook remove claude",
      "npx -y @sluice/cli gateway --http",
      `node ${BIN} cancel ${runId}`,
      `sh -c 'node ${BIN} cancel ${runId}'`,
      `env -u SLUICE_RUN node ${BIN} cancel ${runId}`,
    ];
    for (const command of lines) {
      const { ok, text } = await call("Bash", { command });
      expect(ok && !/exit|inside_run|no run may use it/.test(text), `${command}: ${text}`).toBe(false);
    }
    const { stdout } = await at.sluice(["runs"]);
    expect(stdout).toMatch(/running|working/);
    expect(stdout).not.toMatch(/cancelled/);
    expect((await call("Read", { file_path: "a.txt" })).ok).toBe(true);
  });

  test("the environment of its commands has no token, and says that they are inside a run", async () => {
    const { call, runId } = await working();
    const { text } = await call("Bash", { command: "env" });
    expect(text).not.toContain("token-of-another-run");
    expect(text).toMatch(/SLUICE_RUN=r\w+/);
    expect(runId).toMatch(/^r\w+/);
  });
});

test("a second gateway cannot work on a run that has one", async () => {
  const at = desk();
  at.write("flow.yaml", OPEN);
  const call = await agentAt(at);
  const runId = runOf((await call("get_state")).text);
  const second = await at.sluice(["gateway", "--resume", runId], { input: "" });
  expect(second.stdout).toBe("");
  expect((await call("Write", { file_path: "b.txt", content: "b\n" })).ok).toBe(true);
});

test("a process that a host starts may not do what people do", async () => {
  const at = desk();
  at.write("flow.yaml", OPEN);
  const bin = join(at.folder, "../bin");
  mkdirSync(bin);
  const said = join(at.folder, "said.txt");
  const script = [
    "#!/bin/sh",
    'case "$1" in --version) echo 2.1.330; exit 0;; esac',
    `for verb in "answer r0 x approve" "resume r0" "gateway" "gateway run claude"; do`,
    `  "${process.execPath}" "${BIN}" $verb < /dev/null >> "${said}" 2>&1; echo "exit $?" >> "${said}"`,
    "done",
  ];
  writeFileSync(join(bin, "claude"), `${script.join("\n")}\n`);
  chmodSync(join(bin, "claude"), 0o755);
  const env = { PATH: `${bin}:${process.env.PATH ?? ""}` };
  const ended = await at.sluice(["gateway", "run", "claude", "--workflow", "flow.yaml"], { env });
  expect(existsSync(said), ended.stderr).toBe(true);
  const text = readFileSync(said, "utf8");
  expect(text.match(/no run may use it/g)).toHaveLength(4);
  expect(text).not.toContain("exit 0");
});
