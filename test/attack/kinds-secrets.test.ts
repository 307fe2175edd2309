import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { done, pipeline, stage, to } from "@sluice/core";
import { sqliteHost } from "@sluice/sqlite";
import { human, poll, script } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type AnyScript, commandSession, node, only } from "../support/commands.ts";
import { eventsOf, json } from "../support/run-kit.ts";
import { scratch } from "../support/sqlite-store.ts";
import { lastResults, talker } from "../support/talker.ts";
import { tempFolder } from "../support/tools.ts";

// A script that has a secret, and lets it out where it can: each way is one that a package, a hook or an agent may have put there.

const NAME = "RELEASE_CODE";
const VALUE = 'Zq81-c4stle/gate?9"x';
const ENV = { [NAME]: VALUE };
const SECRET = `const secret = process.env.${NAME};`;
/** Anything of the secret that would help to guess it. */
const PARTS = [
  VALUE,
  JSON.stringify(VALUE).slice(1, -1),
  encodeURIComponent(VALUE),
  VALUE.slice(0, 12),
  VALUE.slice(-12),
];
const inBase64 = Buffer.from(VALUE).toString("base64").slice(0, -4);
const leaked = (text: string): readonly string[] => [...PARTS, inBase64].filter((part) => text.includes(part));

/** Runs a script with the secret, and returns all that anyone can read of it afterwards. */
async function everything(options: Omit<AnyScript, "secrets">) {
  const [store, workspace] = [scratch(), tempFolder()];
  const host = sqliteHost(store);
  const session = commandSession({ workspace, env: ENV, host });
  const result = await session.run(only(script({ ...options, secrets: [NAME] })), {});
  const events = await eventsOf(host, result.runId);
  const journals = await host.journal(result.runId);
  await session.close();
  await host.close();
  const stored = readdirSync(store, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const bytes = stored.map((file) => readFileSync(join(file.parentPath, file.name), "latin1"));
  return {
    result,
    output: result.status === "completed" ? json(result.output) : null,
    text: JSON.stringify([result, events, journals]),
    bytes: bytes.join("\n"),
    workspace,
  };
}

describe("a secret of a script is nowhere, although its program", () => {
  const write = (text: string, stream = "stdout"): string => `${SECRET} process.${stream}.write(${text});`;
  test.each<[string, AnyScript["command"]]>([
    ["prints it", node(write("secret"))],
    ["prints it on standard error and fails", node(`${write('"x" + secret + "y"', "stderr")} process.exitCode = 9;`)],
    [
      "prints it in two pieces",
      node(
        `${SECRET} const w = (t) => new Promise((r) => process.stdout.write(t, r)); w("a" + secret.slice(0, 7)).then(() => setTimeout(() => w(secret.slice(7) + "b"), 60));`,
      ),
    ],
    [
      "prints it character by character",
      node(`${SECRET} const fs = require("node:fs"); for (const c of secret) fs.writeSync(1, c);`),
    ],
    ["prints it as JSON in JSON", node(write("JSON.stringify({ a: JSON.stringify({ secret }) })"))],
    ["prints it as the name of a field", node(write("JSON.stringify({ [secret]: 1, list: [secret] })"))],
    [
      "prints it with escapes that only JSON reads",
      node(
        write(
          String.raw`'{"a":"' + [...secret].map((c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0")).join("") + '"}'`,
        ),
      ),
    ],
    [
      "prints it in base64, at each offset",
      node(write('["", "a", "ab"].map((p) => Buffer.from(p + secret).toString("base64")).join(" ")')),
    ],
    ["prints it in a URL", node(write('"https://x.example/?t=" + encodeURIComponent(secret)'))],
    ["prints it in hex", node(write('Buffer.from(secret).toString("hex")'))],
    ["dies of it", node(`${SECRET} throw new Error("token " + secret);`)],
    [
      "is killed after it printed it",
      node(`${SECRET} require("node:fs").writeSync(1, secret); process.kill(process.pid, "SIGKILL");`),
    ],
    ["prints it where the output is cut", node(write('"x".repeat(4800 - 8) + secret + "y".repeat(40000)'))],
    ["prints it where the output's tail begins", node(write('"x".repeat(40000) + secret + "y".repeat(11200 - 8)'))],
    ["shows its environment", { shell: "env; set; cat /proc/self/environ" }],
    ["traces itself", { shell: `set -x; : "$${NAME}"; printf '%s\\n' "$${NAME}" >&2` }],
  ])("%s", async (_, command) => {
    const { text, bytes, output } = await everything({ command });
    expect([leaked(text), leaked(bytes)]).toEqual([[], []]);
    expect(JSON.stringify(output)).toMatch(/\[redact|LEASE_CODE\]|CODE\]yy/);
  });

  test("prints so much that it is cut in the middle of the secret", async () => {
    const HALF = 5_000_000;
    const program = `${SECRET} process.stdout.write("x".repeat(${HALF} - 14) + secret + "y".repeat(${HALF} + 100));`;
    const { text, bytes, workspace } = await everything({ command: node(program) });
    expect([leaked(text), leaked(bytes)]).toEqual([[], []]);
    const folder = workspace.path(".sluice/output");
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    expect(files.flatMap((file) => leaked(readFileSync(join(file.parentPath, file.name), "utf8")))).toEqual([]);
  });

  test("is not found, since the message names it", async () => {
    const { text, output } = await everything({ command: [`./${VALUE.replaceAll("/", "_")}`] });
    expect(output).toMatchObject({ code: "script" });
    expect(text).not.toContain(VALUE);
  });
});

describe("a secret of a script", () => {
  test("is not in the transcript of an agent that lists, reads and searches what the script left behind", async () => {
    const leave = script({
      command: node(
        `${SECRET} const fs = require("node:fs"); fs.writeFileSync("left-" + encodeURIComponent(secret), secret); fs.writeFileSync("note.txt", "it is " + secret);`,
      ),
      secrets: [NAME],
    });
    const look = stage({
      prompt: "Look.",
      allowedTools: ["Read", "Glob", "Grep", "Bash"],
      completionTool: "submit",
      completionSchema: z.object({}),
      turnCap: 3,
    });
    const leaving = pipeline({
      id: "leaving",
      input: { type: "object" },
      stages: { leave, look },
      initial: "leave",
      next: { leave: () => to("look"), look: () => done("") },
    });
    const model = talker(({ turn }) =>
      turn === 0
        ? {
            calls: [
              { tool: "Glob", input: { pattern: "left-*" } },
              { tool: "Read", input: { file_path: "note.txt" } },
              { tool: "Grep", input: { pattern: "it is", output_mode: "content" } },
              { tool: "Bash", input: { command: "cat note.txt" } },
              { tool: "Bash", input: { command: "env" } },
            ],
          }
        : { calls: [{ tool: "submit", input: {} }] },
    );
    const session = commandSession({ env: ENV, model, mode: "yolo" });
    const result = await session.run(leaving, {});
    expect(result.status).toBe("completed");
    const [, second] = model.heard;
    if (second === undefined) throw new Error("the model was not asked twice");
    const results = JSON.stringify(lastResults(second));
    expect(results).toContain("left-");
    expect(leaked(results + JSON.stringify([model.heard, result, await eventsOf(session.host, result.runId)]))).toEqual(
      [],
    );
  });

  test("reaches no template, question, poll, hook or other script of its pipeline, even by its name", async () => {
    const program = "console.log(JSON.stringify(process.env))";
    const stages = {
      other: script({ command: node(program), env: { COPY: `$${NAME} \${${NAME}}` } }),
      ask: poll({ command: { shell: `echo "[$${NAME}]"` }, every: "1s" }),
      question: human({ question: `$${NAME}` }),
      publish: script({ command: ["true"], secrets: [NAME] }),
    };
    const all = pipeline({
      id: "all",
      input: { type: "object" },
      stages,
      initial: "other",
      next: {
        other: () => to("ask"),
        ask: () => to("question"),
        question: { completed: () => done(""), failed: (failure, ctx) => done(json([ctx.upstream, failure.message])) },
        publish: () => done(""),
      },
    });
    const result = await commandSession({ env: { ...ENV, ALIAS: `Bearer ${VALUE}` }, passEnv: [NAME, "ALIAS"] }).run(
      all,
      {},
    );
    expect(result).toMatchObject({ status: "completed" });
    const text = JSON.stringify(result);
    expect(leaked(text)).toEqual([]);
    expect(text).toContain('"stdout":"[]"');
    expect(text).not.toMatch(/ALIAS/);
  });
});
