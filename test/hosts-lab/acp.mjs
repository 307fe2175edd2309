// A real host works on a stage over ACP, without tools of its own.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { done, pipeline } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { externalAgent, externalAgents, HEADLESS, HOSTS, startScriptedModel } from "@sluice/gateway";
import { createSession } from "@sluice/stages";
import { z } from "zod";

/** The hosts that speak ACP themselves, with the arguments that make them do so. */
const COMMANDS = {
  gemini: ["--acp", "--model=gemini-2.5-pro", "--skip-trust"],
  qwen: ["--acp"],
  copilot: ["--acp"],
  opencode: ["acp"],
};

/** Returns the checks: what should hold, and whether it does. None for a host that needs an adapter. */
export async function overAcp(host, bin) {
  const args = COMMANDS[host];
  if (args === undefined) return [];
  const parent = join(process.env.XDG_STATE_HOME ?? join(homedir(), ".local", "state"), "sluice-hosts-lab");
  mkdirSync(parent, { recursive: true });
  const base = realpathSync(mkdtempSync(join(parent, `acp-${host}-`)));
  const [home, work] = [join(base, "home"), join(base, "work")];
  mkdirSync(home);
  mkdirSync(work);
  writeFileSync(join(work, "a.txt"), "one\n");
  const headless = HEADLESS[host];
  // The name of the server is random; the prompt says it.
  const ours = (tool, input) => (request) => {
    const [, server = ""] = /the MCP server (\w+)/.exec(JSON.stringify(request.messages)) ?? [];
    return { calls: [{ name: headless.gatewayTool(server, tool), input }] };
  };
  const model = await startScriptedModel({
    main: [
      { calls: [headless.calls.shell(`echo x > ${join(work, "native.txt")}`)] },
      ours("Write", { file_path: "b.txt", content: "x\n" }),
      ours("Read", { file_path: "a.txt" }),
      ours("Edit", { file_path: "a.txt", old_string: "one", new_string: "two" }),
      ours("finish", { text: "done" }),
      { text: "done" },
    ],
  });
  for (const [path, content] of Object.entries(headless.settings?.(model.url) ?? {})) {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), JSON.stringify(content));
  }
  const stage = externalAgent({
    agent: {
      command: [join(bin, HOSTS[host].command), ...args],
      host,
      env: { ...headless.env(model.url, home), HOME: home },
    },
    prompt: "SCRIPT:main Change a.txt.",
    allowedTools: ["Read", "Edit(a.txt)", "Write(c/**)"],
    completionTool: "finish",
    completionSchema: z.object({ text: z.string() }),
    turnCap: 8,
  });
  const lab = pipeline({
    id: "overAcp",
    input: z.object({ task: z.string() }),
    stages: { stage },
    initial: "stage",
    next: { stage: ({ output }) => done(output.text) },
  });
  const session = createSession({
    cwd: work,
    host: createHost(createMemoryJournals().connect()),
    sandbox: "off",
    env: { PATH: `${dirname(process.execPath)}:${process.env.PATH}`, HOME: home },
    traffic: externalAgents({ sandbox: "off" }),
  });
  try {
    const result = await session.run(lab, { task: "x" });
    const offered = model.requests.find(({ tools }) => tools.length > 0)?.tools ?? [];
    return [
      ["over ACP, the stage is completed", result.status === "completed"],
      ["over ACP, a call of the stage's tools runs", readFileSync(join(work, "a.txt"), "utf8") === "two\n"],
      ["over ACP, a denied call does not run", result.denied.length > 0 && !existsSync(join(work, "b.txt"))],
      ["over ACP, the host's own shell does not run", !existsSync(join(work, "native.txt"))],
      [
        "over ACP, the host offers no shell and no editor",
        !offered.some((name) => /shell|bash|write_|edit_|create/i.test(name)),
      ],
    ];
  } finally {
    await session.close();
    await model.close();
    rmSync(base, { recursive: true, force: true });
  }
}
