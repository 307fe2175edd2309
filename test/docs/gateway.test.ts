import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { HOST_NAMES, HOSTS } from "@sluice/gateway";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { blocksOf, readPage, root, sluice, tableOf } from "./pages.ts";

const page = readPage("docs/gateway.md");
const workflow = join(root, "examples/plan-first.yaml");

test("docs/gateway.md shows the workflow of the examples, which has no mistakes", () => {
  const shown = blocksOf(page).find(({ note }) => note === "file: examples/plan-first.yaml");
  expect(shown?.text).toBe(readFileSync(workflow, "utf8"));
  expect(sluice(["check", workflow], root).stdout).toBe("1 workflow: 0 errors, 0 warnings\n");
});

test("docs/gateway.md lists every host with the versions that were measured", () => {
  const [, after = ""] = page.text.split("<!-- compared by a test with the hosts of the gateway -->");
  const listed = tableOf(after).map(([host = "", version]) => `${host}: ${version}`);
  const known = HOST_NAMES.map((name) => {
    const { title, measured } = HOSTS[name];
    return `\`${name}\`, ${title}: ${measured[0] === measured[1] ? measured[0] : measured.join(" to ")}`;
  });
  expect(listed.toSorted()).toEqual(known.toSorted());
});

/** A user who has a project and no Sluice in it. */
function newcomer() {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "sluice-newcomer-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [project, home] = [join(folder, "project"), join(folder, "home")];
  for (const path of [project, home]) mkdirSync(path);
  writeFileSync(join(project, "cli.js"), "const verbose = false;\n");
  const variables = { HOME: home, XDG_STATE_HOME: join(home, ".local/state"), XDG_CONFIG_HOME: join(home, ".config") };
  return {
    project,
    home,
    source: () => readFileSync(join(project, "cli.js"), "utf8"),
    sluice: (...args: readonly string[]) => sluice(args, project, variables),
    /** What a host does with the server of the page's `.mcp.json`. */
    agent: async (...args: readonly string[]) => {
      const client = new Client({ name: "newcomer", version: "1.0.0" });
      const bin = join(root, "packages/cli/bin/sluice.js");
      const env = { PATH: process.env.PATH ?? "", NO_COLOR: "1", ...variables };
      const command = { command: process.execPath, args: [bin, "gateway", ...args], cwd: project, env };
      await client.connect(new StdioClientTransport({ ...command, stderr: "ignore" }));
      onTestFinished(() => client.close());
      return {
        call: async (name: string, given: Record<string, unknown> = {}) => {
          const { content, isError } = await client.callTool({ name, arguments: given });
          const blocks = z.array(z.object({ text: z.string() })).parse(content);
          return { isError: isError === true, text: blocks.map(({ text }) => text).join("\n\n") };
        },
        leave: () => client.close(),
      };
    },
  };
}

type Newcomer = ReturnType<typeof newcomer>;

const runsOf = ({ sluice: run }: Newcomer) =>
  z
    .object({ runs: z.array(z.object({ runId: z.string(), status: z.string() })) })
    .parse(JSON.parse(run("runs", "--output-format", "json").stdout)).runs;

/** The line with which `sluice show` answers the open request. */
async function answerLine(here: Newcomer): Promise<readonly string[]> {
  for (;;) {
    const [run] = runsOf(here);
    const { stdout } = here.sluice("show", run?.runId ?? "");
    const [, line] = /^ {2}sluice (answer .*) approve$/m.exec(stdout) ?? [];
    if (line !== undefined) return line.replaceAll("'", "").split(" ");
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe("docs/gateway.md leads a newcomer", () => {
  const change = { file_path: "cli.js", old_string: "verbose", new_string: "debug" };

  test("to a denied edit with its reason, a grant, the end of the workflow, and a folder as it was", async () => {
    const here = newcomer();
    const agent = await here.agent("--workflow", workflow);
    expect(runsOf(here)).toEqual([]);
    expect((await agent.call("get_state")).text).toContain("plan this task. Change nothing yet.");
    await agent.call("Read", { file_path: "cli.js" });

    const edit = agent.call("Edit", change);
    const line = await answerLine(here);
    expect(here.sluice(...line, "deny", "--reason", "plan first").status).toBe(0);
    expect(await edit).toMatchObject({ isError: true, text: expect.stringContaining("plan first") });
    expect(here.source()).toContain("verbose");

    const note = agent.call("Write", { file_path: "NOTES.md", content: "a plan\n" });
    expect(here.sluice(...(await answerLine(here)), "approve").status).toBe(0);
    expect((await note).isError).toBe(false);

    await agent.call("transition", { event: "READY", data: { plan: ["rename it"], rationale: "read" } });
    await agent.call("Read", { file_path: "cli.js" });
    expect((await agent.call("Edit", change)).isError).toBe(false);
    expect(here.source()).toContain("debug");
    await agent.call("transition", { event: "CHANGED", data: { rationale: "done" } });
    const end = await agent.call("transition", { event: "GOOD", data: { rationale: "as planned" } });
    expect(end.text).toContain("is over: completed (complete)");
    await agent.leave();

    const [run = { runId: "", status: "" }] = runsOf(here);
    expect(run.status).toBe("completed");
    expect(here.sluice("show", run.runId).stdout).toMatch(
      /denied calls:\n {2}planning#1 .*: Edit \(denied\): .*plan first/,
    );
    expect(here.sluice("audit", run.runId, "--verify").stdout).toContain("verified: every record is unchanged");
    expect(here.sluice("replay", run.runId).stdout).toContain("the replay matches the record");

    const [, removed = ""] = /^rm -r (.*?) +#/m.exec(page.text) ?? [];
    for (const path of removed.split(" "))
      rmSync(join(here.project, path.replace("~", "../home")), { recursive: true });
    expect(readdirSync(here.project).toSorted()).toEqual(["NOTES.md", "cli.js"]);
    expect(filesIn(here.home)).toEqual([]);
  });

  test("to a run that goes on where the agent left it", async () => {
    const here = newcomer();
    const first = await here.agent("--workflow", workflow, "--no-wait", "--task", "rename the option");
    expect((await first.call("Edit", change)).text).toContain("Edit is not in the envelope (Read, Grep, Glob)");
    await first.call("transition", { event: "READY", data: { plan: ["rename it"], rationale: "read" } });
    await first.leave();
    const [{ runId, status } = { runId: "", status: "" }] = runsOf(here);
    expect(status).toBe("suspended");
    expect(here.sluice("resume", runId).stderr).toContain(`sluice gateway --resume ${runId}`);

    const second = await here.agent("--resume", runId);
    expect((await second.call("get_state")).text).toContain('Make the planned change: ["rename it"]');
    await second.call("transition", { event: "GIVE_UP", data: { rationale: "enough" } });
    await second.leave();
    expect(runsOf(here)).toMatchObject([{ runId, status: "failed" }]);
  });
});

function filesIn(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
}
