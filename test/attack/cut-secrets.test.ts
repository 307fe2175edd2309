import { done, field, pipeline, stage } from "@sluice/core";
import { createSecretFilter, type SecretFilter } from "@sluice/core/runtime";
import { createSession } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { outputIn, textIn } from "../../packages/gateway/src/hooks/adapters/fields.ts";
import { nativeTools } from "../../packages/gateway/src/hooks/tools/native-tools.ts";
import { pageText } from "../../packages/stages/src/models/reply/html-page.ts";
import { clean } from "../../packages/stages/src/opentelemetry/names.ts";
import { filesNow } from "../../packages/stages/src/pipelines/changes.ts";
import { maskedCut, maskedTail } from "../../packages/stages/src/secrets/cut-text.ts";
import { secretForms } from "../../packages/stages/src/secrets/encodings.ts";
import { projectReader } from "../../packages/stages/src/session/project-facts.ts";
import { readTool } from "../../packages/stages/src/tools/files/read.ts";
import { readMcpServers } from "../../packages/stages/src/tools/mcp/config.ts";
import { readAnswer } from "../../packages/stages/src/tools/mcp/content.ts";
import type { ListedTool } from "../../packages/stages/src/tools/mcp/definition.ts";
import { offeredOf } from "../../packages/stages/src/tools/mcp/offered.ts";
import { grepTool } from "../../packages/stages/src/tools/search/grep.ts";
import { readSkillTool } from "../../packages/stages/src/tools/skills/read-skill.ts";
import { findSkills } from "../../packages/stages/src/tools/skills/skill-folders.ts";
import {
  caller,
  completed,
  dataOf,
  eventsOf,
  work as kind,
  noModel,
  session as testSession,
} from "../support/run-kit.ts";
import { talker } from "../support/talker.ts";
import { stageIn, tempFolder, textOf } from "../support/tools.ts";

// An output that is cut in the middle of a secret, of which no part may remain.

const KEY = "c4stle-of-sand-and-glass";
const MOST_AGENTS = 32_768;

test.each([14_980, 14_990, 14_999])(
  "a key that the cut of an output at character 15,000 would halve is masked whole: it begins at %i",
  async (at) => {
    const folder = tempFolder();
    folder.put("long.txt", `${"x".repeat(at)}${KEY}${"y".repeat(60_000)}`);
    const model = talker(({ turn }) =>
      turn === 0
        ? { calls: [{ tool: "Bash", input: { command: "cat long.txt" } }] }
        : { calls: [{ tool: "submit", input: { text: "done" } }] },
    );
    const work = stage({
      prompt: "Look.",
      completionTool: "submit",
      completionSchema: z.object({ text: z.string() }),
      turnCap: 3,
      allowedTools: ["Bash"],
    });
    const made = pipeline({
      id: "cut",
      input: z.object({ task: z.string() }),
      stages: { work },
      initial: "work",
      next: { work: () => done(null) },
    });
    const env = { PATH: process.env.PATH, SOME_API_KEY: KEY };
    const session = createSession({ model, cwd: folder.root, env, sandbox: "off" });
    expect(await session.run(made, { task: "x" })).toMatchObject({ status: "completed", denied: [] });
    const read = JSON.stringify(model.heard.at(-1)?.messages);
    expect(read).toContain("characters omitted");
    for (let length = 6; length <= KEY.length; length += 1) {
      expect(read).not.toContain(KEY.slice(0, length));
      expect(read).not.toContain(KEY.slice(-length));
    }
    await session.close();
  },
);

const LONG_KEY = Array.from({ length: 70 }, (_, at) => `k${at}Zq`).join("");
const PEM = [
  "-----BEGIN PRIVATE KEY-----",
  "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
  "BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
  "-----END PRIVATE KEY-----",
];

/** What a model would read of calls in a workspace with these files. */
async function readOf(files: Readonly<Record<string, string>>, calls: readonly (readonly [string, object])[]) {
  const folder = tempFolder();
  for (const [name, text] of Object.entries(files)) folder.put(name, text);
  const env = { LONG_API_KEY: LONG_KEY, SIGNING: PEM.join("\n") };
  const live = testSession({ model: noModel, cwd: folder.root, env, secrets: ["SIGNING"] });
  const allowedTools = ["Read", "Grep", "Edit"];
  const looking = kind({
    allowedTools,
    act: async (scope) => {
      const call = caller(scope);
      const outputs: string[] = [];
      for (const [name, input] of calls)
        outputs.push(JSON.stringify(await call(name, JSON.parse(JSON.stringify(input)))));
      return completed(outputs);
    },
  });
  const made = pipeline({
    id: "cut",
    input: z.object({}),
    stages: { looking },
    initial: "looking",
    next: { looking: ({ output }) => done(output) },
  });
  const run = live.start(made, {});
  expect(await run).toMatchObject({ status: "completed", denied: [] });
  return JSON.stringify(await live.host.journal(run.runId));
}

function expectNoPart(text: string, secret: string, most = 8): void {
  for (let at = 0; at + most <= secret.length; at += 1) expect(text).not.toContain(secret.slice(at, at + most));
}

test.each([
  ["Read", 1_950, { file_path: "long.txt" }],
  ["Grep", 450, { pattern: "needle", output_mode: "content" }],
  ["Edit", 450, { file_path: "long.txt", old_string: "needle", new_string: "thread" }],
])("a key that %s would cut in a long line is masked whole", async (name, at, input) => {
  const line = `needle ${"x".repeat(at)}${LONG_KEY}${"y".repeat(3_000)}`;
  const calls: [string, object][] = name === "Edit" ? [["Read", { file_path: "long.txt" }]] : [];
  const read = await readOf({ "long.txt": line }, [...calls, [name, input]]);
  expectNoPart(read, LONG_KEY);
  expect(read).toContain("[redacted:LONG_API_KEY");
});

test("a declared secret of several lines is masked where its lines are numbered, searched or read in part", async () => {
  const read = await readOf({ "key.pem": `${PEM.join("\n")}\n` }, [
    ["Read", { file_path: "key.pem" }],
    ["Read", { file_path: "key.pem", offset: 3, limit: 1 }],
    ["Grep", { pattern: "^BKcw", output_mode: "content" }],
  ]);
  for (const line of PEM.slice(1, 3)) expectNoPart(read, line);
  expect(read).toContain("[redacted:SIGNING");
});

/** Secrets with blanks and with letters of any language: no rule about words finds their end. */
const PHRASES = [
  LONG_KEY,
  "correct horse battery staple 7",
  "geheim-zugang-für-alle-übrigen-1234567",
  "пароль-для-входа-12345678",
  "パスワード秘密情報一二三四五六",
];

function filterOf(secret: string) {
  return createSecretFilter(secretForms(new Map([[secret, "SECRET"]])));
}

/** The tools that are offered of those that a server lists. */
function offered(listed: readonly ListedTool[], filter: SecretFilter) {
  const [server] = readMcpServers({ one: { command: "server" } });
  if (server === undefined) throw new Error("there is no server");
  return offeredOf(server, listed, filter);
}

/** Every place of a secret around a cut, such that the cut goes through it. */
function placesAround(cut: number, secret: string): readonly number[] {
  return Array.from({ length: Math.min(secret.length + 1, 40) }, (_, back) => cut - back);
}

describe.each(PHRASES)("of the secret %s, no part is left where", (secret) => {
  const filter = filterOf(secret);
  const part = Math.min(8, secret.length - 1);

  test.each([
    ["ripgrep", grepTool()],
    ["the built-in search", grepTool({ ripgrep: null })],
  ])("%s cuts a line before it is masked", async (_name, grep) => {
    const folder = tempFolder();
    const places = [7_970, 7_990, 7_999, 8_000 - Math.floor(secret.length / 2)];
    // Masks are shorter than secrets, so what is cut at 8,000 characters comes near the beginning.
    const lines = places.map((at) => {
      const copies = `${secret} `.repeat(Math.floor((at - 7) / (secret.length + 1)));
      return `needle ${copies}${"-".repeat(at - 7 - copies.length)}${secret}${"y".repeat(9_000)}`;
    });
    folder.put("long.txt", `${lines.join("\n")}\nneedle ${secret.repeat(Math.ceil(9_000 / secret.length))}\n`);
    const result = await stageIn(folder, { secrets: filter }).use(grep, { pattern: "needle", output_mode: "content" });
    expect(textOf(result).match(/\[\.\.\. line cut\]/g)).toHaveLength(lines.length + 1);
    expectNoPart(filter.text(textOf(result)), secret, part);
  });

  test("AGENTS.md is cut", async () => {
    for (const at of [MOST_AGENTS - 1, MOST_AGENTS - 5, MOST_AGENTS - Math.floor(Buffer.byteLength(secret) / 2)]) {
      const folder = tempFolder();
      folder.put("AGENTS.md", `${"x".repeat(at)}${secret}${" y".repeat(500)}`);
      const read = projectReader({ agents: true, skills: false }, { root: folder.root }, false);
      const { agents = "" } = await read.read(filter);
      expect(agents).toContain("[only its first 32768 bytes are shown]");
      expectNoPart(filter.text(agents), secret, part);
    }
  });

  test("a skill and its description are cut", async () => {
    for (const at of [59_995, 59_970]) {
      const folder = tempFolder();
      const head = `---\nname: deploy\ndescription: ${"w".repeat(at - 58_980)}${secret} and more words\n---\n`;
      folder.put(".agents/skills/deploy/SKILL.md", `${head}${"x".repeat(at)}${secret}${" y".repeat(130_000)}`);
      const [skill] = await findSkills({ root: folder.root }, filter);
      expectNoPart(filter.text(skill?.description ?? ""), secret, part);
      const result = await stageIn(folder, { secrets: filter }).use(readSkillTool, { name: "deploy" });
      expectNoPart(filter.text(textOf(result)), secret, part);
    }
  });

  test("the title of an HTML page is too long", () => {
    for (const limit of [100, 200, 1_000])
      for (const at of placesAround(limit, secret)) {
        const title = `${"a".repeat(at)}${secret} and more`;
        expectNoPart(filter.text(pageText(`<title>${title}</title>`, undefined)), secret, part);
      }
    const page = `<title>${" ".repeat(64 * 1024 - 20)}${secret}</title>`;
    expectNoPart(filter.text(pageText(page, undefined)), secret, part);
  });

  test("a link in an answer of an MCP server is cut", () => {
    for (const at of placesAround(300, secret)) {
      const link = { type: "resource_link", name: "x", uri: `${"h".repeat(at)}${secret} and more` };
      expectNoPart(JSON.stringify(readAnswer("T", { content: [link] }, filter)), secret, part);
    }
  });

  test("the description of a tool of an MCP server is cut", () => {
    const inputSchema = { type: "object" } as const;
    for (const at of placesAround(4_000, secret)) {
      const description = `${"w".repeat(at)}${secret} and more words ${"x ".repeat(300)}`;
      const listed = [
        { name: "t", description, inputSchema },
        { name: "other", inputSchema },
      ];
      const { tools, faults } = offered(listed, filter);
      expect(tools.map(({ own }) => own)).toEqual(["other"]);
      expect(faults).toEqual(['its tool "t" is excluded: its definition contains a key']);
    }
  });

  test("a file that a review reads is cut", () => {
    for (const at of placesAround(20_000, secret)) {
      const folder = tempFolder();
      folder.put("a.txt", `first line\n${"x".repeat(at - 11)}${secret}${"y".repeat(100)}`);
      const shown = JSON.stringify(filter.json(filesNow(folder.root, ["a.txt"])));
      expect(shown).toContain("first line");
      expectNoPart(shown, secret, part);
    }
  });

  test("the result of a call of another agent is cut", async () => {
    const folder = tempFolder();
    folder.put("a.txt", "");
    const input = { file_path: folder.path("a.txt") };
    const output = `${"x".repeat(499_990)}${secret}`;
    const tools = nativeTools({ handOver: () => Promise.resolve({ ok: true, output }) });
    const bound = await tools.find(({ name }) => name === "Read")?.bind(input);
    if (bound?.ok !== true) throw new Error("there is no Read");
    const result = await bound.execute(stageIn(folder, { secrets: filter }).judge(readTool, input).call);
    expect(textOf(result).length).toBeLessThanOrEqual(500_000);
    expectNoPart(textOf(result), secret, part);
  });

  test("the error output of an MCP server is cut", () => {
    for (let at = 0; at < secret.length; at += 3) {
      const said = `${"x".repeat(3_000)}${secret}${"y".repeat(2_000 - at)}`;
      let kept = "";
      for (const chunk of said.match(/.{1,700}/gs) ?? []) kept = maskedTail(kept + chunk, 2_000, filter);
      expectNoPart(filter.text(kept), secret, part);
    }
  });
});

test("the results that a host reports, and prompts, come whole to where they are masked", () => {
  const long = `${"x".repeat(499_950)}${LONG_KEY}`;
  expect(outputIn({ tool_response: long }, "tool_response")).toBe(long);
  expect(outputIn({ tool_response: { text: long } }, "tool_response")).toEqual({ text: long });
  expect(textIn({ prompt: long }, "prompt")).toBe(long);
});

test("the last line of a file of more than 10 MB is cut before a secret that would not be whole", async () => {
  const folder = tempFolder();
  const secret = "пароль-для-входа-12345678";
  folder.put("big.txt", `${"x\n".repeat(5 * 1024 * 1024 - 10)}zz${secret}${"y".repeat(100)}`);
  const input = { file_path: "big.txt", offset: 5 * 1024 * 1024 - 10 };
  const result = await stageIn(folder, { secrets: filterOf(secret) }).use(readTool, input);
  expect(textOf(result)).toContain("Only the first 10485760 can be shown");
  expectNoPart(textOf(result), secret, 3);
});

test("a secret that ends where another one may begin is masked whole", () => {
  const filter = createSecretFilter(
    new Map([
      ["alpha-omega-1234", "A"],
      ["1234-and-more-of-it", "B"],
    ]),
  );
  expectNoPart(maskedCut("the key is alpha-omega-1234", filter), "alpha-omega-1234", 4);
});

/** Why the calls of these commands are denied, as events tell it. */
async function denials(
  commands: readonly string[],
  env: Readonly<Record<string, string>>,
  limits: { readonly maxEditLines?: number },
): Promise<string> {
  const live = testSession({ model: noModel, cwd: tempFolder().root, env, secrets: Object.keys(env) });
  const denied = kind({
    allowedTools: ["Read", "Bash(npm *)"],
    limits,
    act: async (scope) => {
      const call = caller(scope);
      for (const command of commands) await call("Bash", { command });
      return completed([]);
    },
  });
  const next = { denied: () => done(null) };
  const made = pipeline({ id: "denied", input: z.object({}), stages: { denied }, initial: "denied", next });
  const run = live.start(made, {});
  expect(await run).toMatchObject({ status: "completed" });
  const events = await eventsOf(live.host, run.runId);
  const asked = dataOf(events, "grant.requested").map(({ body }) => field(body, "why"));
  const decided = dataOf(events, "call.decided").map(({ result }) => field(result, "reason"));
  return [...asked, ...decided].map((reason) => JSON.stringify(reason)).join("\n");
}

test.each([
  ["a password in a URL", "https://user:", "hunter2-and-hunter3-and-hunter4", "@host.example/"],
  ["a token", "", "ghp_0123456789abcdefghij0123456789abcdef", ""],
  ["a bearer token", "-H 'x: Bearer ", "0123456789abcdefghijklmnop", "'"],
  ["a flag in quotes", "--password 'sesame open ", "wonderfulcave", " now'"],
  ["a word in quotes", "'--password=sesame open ", "wonderfulcave", " now'"],
  ["a declared secret whose words are quoted one by one", "correct 'horse' battery \"staple\" ", "reinforced", " 7"],
])("of %s, no part is left where the reason of a denial is cut", async (_name, before, secret, after) => {
  const end = 120 - "deploy  ".length - before.length;
  const commands = Array.from(
    { length: secret.length + 3 },
    (_, back) => `deploy ${"x".repeat(end - back)} ${before}${secret}${after} ${"y".repeat(50)}`,
  );
  for (const limits of [{}, { maxEditLines: 10 }]) {
    const reasons = await denials(commands, { PHRASE: "correct horse battery staple reinforced 7" }, limits);
    expect(reasons.match(/deploy xxxx/g)?.length).toBeGreaterThanOrEqual(commands.length);
    expectNoPart(reasons, secret, 5);
  }
});

test.each([
  `python3 -c "requests.post(u, json={'password': 'hunter2-and-hunter3'})"`,
  `ssh host "DB_PASSWORD='hunter2-and-hunter3' ./run"`,
  `node -e "const password = 'hunter2-and-hunter3'"`,
  `kubectl create secret --from-literal="password='hunter2-and-hunter3'"`,
])("the reason of a denial shows no secret that the arguments beside it mask: %s", async (command) => {
  for (const limits of [{}, { maxEditLines: 10 }])
    expectNoPart(await denials([command], {}, limits), "hunter2-and-hunter3", 5);
});

test.each([
  ["deploy --password '$ecretPassw0rd' --dry-run", "deploy --password [redacted:password] --dry-run"],
  ["deploy --token '-ecretPassw0rd' x", "deploy --token [redacted:token] x"],
  ["deploy --token '`ecretPassw0rd' x", "deploy --token [redacted:token] x"],
  [String.raw`deploy --token 'ecret\Passw0rd' x`, "deploy --token [redacted:token] x"],
  ["deploy --token='<ecretPassw0rd' x", "deploy --token=[redacted:token] x"],
  ["docker run -e DB_PASSWORD='$ecretPassw0rd' img", "docker run -e DB_PASSWORD=[redacted:DB_PASSWORD] img"],
  ["deploy password='$ecretPassw0rd'", "deploy password=[redacted:password]"],
  ["deploy password='ecretPassw0rd.member'", "deploy password=[redacted:password]"],
  ["deploy password='ecret(Passw0rd'", "deploy password=[redacted:password]"],
  ["deploy password='ecretPassw0rd,'", "deploy password=[redacted:password]"],
  ["deploy db.password='user.ecretPassw0rd'", "deploy db.password=[redacted:db.password]"],
  ["deploy -Dpassword='user.ecretPassw0rd'", "deploy -Dpassword=[redacted:password]"],
  ["deploy --set a=b,db.password='$ecretPassw0rd'", "deploy --set a=b,db.password=[redacted:db.password]"],
  ["deploy password = 'user.ecretPassw0rd' x", "deploy password = [redacted:password] x"],
  ["deploy password= 'user.ecretPassw0rd' x", "deploy password= [redacted:password] x"],
  ["curl -H 'X-Api-Key:Passw' x", "curl -H X-Api-Key:[redacted:X-Api-Key] x"],
  ["deploy --keep '$HOME' --token --dry-run a.b=c,d=e", "deploy --keep $HOME --token --dry-run a.b=c,d=e"],
])(
  "what a line has in single quotes is no reference and no code in the reason of a denial either: %s",
  async (line, shown) => {
    for (const limits of [{}, { maxEditLines: 10 }]) {
      const reasons = await denials([line], {}, limits);
      expect(reasons).not.toContain("Passw");
      expect(reasons).toContain(JSON.stringify(shown).slice(1, -1));
    }
  },
);

test("an attribute of a trace is redacted before it is cut", () => {
  for (let length = 180; length < 240; length += 1) {
    const attribute = clean(`--token ${"a".repeat(length)} https://user:hunter2-and-hunter3-and-hunter4@host.example/`);
    expect(attribute).toMatch(/^--token \[redacted:token\] https:\/\/user:\[redacted:url-password\]@host/);
  }
});
