import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { secretForms } from "../../packages/stages/src/secrets/encodings.ts";
import { startAnthropicServer } from "../support/anthropic-server.ts";
import { COMPATIBLE_CHAT, startChatServer } from "../support/chat-server.ts";
import { at, type Desk, desk, type Ended, PIPELINES, printed, textAt } from "../support/command.ts";
import { sluiceHere } from "../support/command-here.ts";
import { startHttpServer } from "../support/mcp-http.ts";
import { bytesOf, leaks, type Plants, plants, type Sink } from "../support/planted.ts";
import { PHRASE, saysSecrets } from "../support/planted-model.ts";
import { plantProject } from "../support/planted-project.ts";

/** Where a secret stands; each place has secrets of its own. */
const PLACES = [
  // what a run is started with
  ...["task", "input-value", "provider-key", "other-key", "proxy-url", "database-url"],
  // what providers answer
  ...["provider-limit", "provider-page", "provider-stream", "provider-header", "provider-refusal", "redirect"],
  // what models say
  ...["text", "reasoning", "completion", "invalid-completion", "second-completion", "last-completion"],
  // what models ask for
  ...["argument", "argument-key", "tool-name", "call-id", "broken-arguments", "write-content", "edit-old", "edit-new"],
  ...[
    "bash-header",
    "bash-login",
    "bash-query",
    "bash-variable",
    "glob-path",
    "grep-pattern",
    "question",
    "refused-call",
  ],
  // what tools return
  ...["env-file", "private-key", "grep-result", "bash-stdout", "bash-stderr", "bash-exit", "encoded"],
  ...["blob-head", "blob-middle", "blob-tail", "tool-output", "result-key", "tool-facts", "tool-throws", "tool-cause"],
  // MCP servers
  ...["mcp-output", "mcp-failure", "mcp-error", "mcp-stderr", "mcp-page", "mcp-argument", "mcp-env"],
  ...["mcp-query", "mcp-header", "mcp-other-header"],
  // the project's code
  ...[
    "setup",
    "prompt",
    "retry-feedback",
    "exit-hook",
    "hook-throws",
    "route-input",
    "context",
    "output",
    "output-key",
  ],
  ...["fail-reason", "config-throws", "crash", "tool-pattern", "allow-pattern"],
  // what people say
  ...["deny-reason", "answer", "cancel-reason"],
] as const;

/** Secrets that the session knows from other places than a variable of their own, and what they are called. */
const ELSEWHERE = {
  "provider-key": "ANTHROPIC_API_KEY",
  "other-key": "OPENAI_COMPATIBLE_API_KEY",
  "proxy-url": "HTTPS_PROXY",
  "database-url": "DATABASE_URL",
  "mcp-argument": "--api-key of near",
  "mcp-env": "SERVICE_API_KEY of near",
  "mcp-query": "access of far",
  "mcp-header": "Authorization of far",
  "mcp-other-header": "x-note of far",
} as const;
/** What is read and not kept, so that there is nothing to be marked. */
const NOT_KEPT = ["provider-page", "provider-header", "redirect", "reasoning", "tool-cause"];
/** What runs leave that fail, are cancelled, or cannot begin. */
const OF_FAILURES = ["provider-refusal", "exit-hook", "fail-reason", "config-throws", "crash", "cancel-reason"];

const json = ["--output-format", "json"];

interface World {
  readonly here: Desk;
  readonly planted: Plants;
  readonly env: Readonly<Record<string, string>>;
  readonly sinks: Sink[];
  sink(name: string, ended: Ended): Ended;
}

async function world(): Promise<World> {
  const planted = plants(PLACES, ELSEWHERE);
  const here = desk();
  // Answers that a server over HTTP should not give, with a page that says too much.
  const far = await startHttpServer(({ message }, response) => {
    if (message.method !== "tools/list") return false;
    response.writeHead(500, { "content-type": "text/html" }).end(`<p>${planted.at("mcp-page")}</p>`);
    return true;
  });
  plantProject(here, planted, far.url);
  const { known: proxy } = planted.one("proxy-url");
  const { known: database } = planted.one("database-url");
  const env = {
    ...planted.env,
    DEPLOY_PHRASE: PHRASE,
    HTTPS_PROXY: `http://me:${proxy}@127.0.0.1:9`,
    DATABASE_URL: `postgres://me:${database}@127.0.0.1:9/db`,
    ANTHROPIC_API_KEY: planted.one("provider-key").known,
    OPENAI_COMPATIBLE_API_KEY: planted.one("other-key").known,
  };
  const sinks: Sink[] = [];
  return {
    here,
    planted,
    env,
    sinks,
    sink: (name, ended) => {
      sinks.push({ name: `${name}, stdout`, text: ended.stdout }, { name: `${name}, stderr`, text: ended.stderr });
      return ended;
    },
  };
}

function expectNoLeak({ planted, sinks }: Pick<World, "planted" | "sinks">): void {
  const phrase = [...secretForms(new Map([[PHRASE, ""]])).keys()].map((form) => [form, "the named variable"] as const);
  const named = ["setup", "route", "context", "output", "result", "facts", "argument", "input"];
  const words = named.map((name) => [`tulip-${name}-window`, `${name} (by its key)`] as const);
  const found = leaks(planted.all, sinks, { known: new Map(phrase), looks: new Map(words) });
  expect(found, found.join("\n")).toEqual([]);
}

/** The places whose known secret left no mark anywhere: there was nothing to be found of them. */
function unmarked({ planted, sinks }: World): readonly string[] {
  const whole = sinks.map(({ text }) => text).join("\n");
  return planted.all.filter(({ name }) => !whole.includes(`[redacted:${name}]`)).map(({ place }) => place);
}

test("no secret of a run is in what it leaves: events, export, report, output, errors, cassette; the known ones are in no byte of the store", async () => {
  const all = await world();
  const { here, planted, env, sinks, sink } = all;
  const server = await startAnthropicServer(saysSecrets(planted, Object.keys(ELSEWHERE)));
  onTestFinished(() => server.close());
  const provider = { ...env, ANTHROPIC_BASE_URL: server.url };
  const running = here.start(
    ["run", "planned", `do ${planted.at("task")} with ${PHRASE}`]
      .concat(["--input", `note=${planted.at("input-value")}`, "--input", "password=tulip-input-window"])
      .concat(["--model", "anthropic/some-model", "--trust", "--wait", "--record", "calls.jsonl"])
      .concat(["--output-format", "stream-json"]),
    { env: provider },
  );
  const asked = /"type":"(?:grant.requested|request.opened)".*?"requestId":"([^"]+)"/g;
  const answers = [
    ["deny", "--reason", `not ${planted.at("deny-reason")} ${PHRASE}`],
    ["--value", `it is ${planted.at("answer")}`],
  ];
  const runId = (await running.said("stdout", /"runId":"([^"]+)"/))[1] ?? "";
  for (const [at, answer] of answers.entries()) {
    const whole = new RegExp(`(?:${asked.source}[\\s\\S]*?){${at + 1}}`);
    const requestId = (await running.said("stdout", whole))[1] ?? "";
    sink("show of a run that waits", await here.sluice(["show", runId, ...json], { env }));
    const format = at === 0 ? [] : ["--output-format", "json"];
    sink(`answer ${at}`, await here.sluice(["answer", runId, requestId, ...answer, ...format], { env }));
  }
  const ended = sink("stream-json", await running.ended);
  expect([ended.code, ended.stdout.split("\n").at(-2)]).toEqual([0, expect.any(String)]);
  const inside = readerOf(here, env);

  const look = async (...args: readonly string[]): Promise<Ended> => sink(args.join(" "), await inside(args));
  await look("show", runId);
  await look("show", runId, ...json);
  await look("runs");
  await look("runs", ...json);
  await look("audit", runId, "--verify");
  await look("audit", runId, ...json);
  await look("report", runId, "-o", "run.html");
  await look("export", runId, "-o", "run.jsonl");
  await look("export", runId, "--values", "-o", "values.jsonl");
  await look("audit", "./run.jsonl", "--verify");
  await look("audit", "./values.jsonl", "--verify");
  mkdirSync(join(here.folder, "kept"));
  await look("export", "--all", "-o", "kept/store");
  sink("replay", await here.sluice(["replay", runId], { env }));
  const config = readFileSync(join(here.folder, "sluice.config.ts"), "utf8");
  here.write(
    "sluice.config.ts",
    config.replace('hint: planted["route-input"]', 'hint: "now " + planted["route-input"]'),
  );
  const changed = sink("replay of a changed pipeline", await here.sluice(["replay", runId, "--trust"], { env }));
  expect(changed.stdout).toContain("the replay differs from the record");
  const file = (name: string): string => readFileSync(join(here.folder, name), "utf8");
  sinks.push(
    { name: "the report", text: file("run.html") },
    { name: "the export", text: file("run.jsonl") },
    // As the docs say, it holds what tools returned, as the store does.
    { name: "the export with values", text: file("values.jsonl"), keepsLooks: true },
    // As the docs say, answers are whole there, since they are what is played.
    { name: "the cassette", text: file("calls.jsonl"), keepsLooks: true },
    // As the docs say, step values keep what tools returned.
    { name: "the store", text: bytesOf(here.store), keepsLooks: true },
    { name: "a copy of the store", text: bytesOf(join(here.folder, "kept/store")), keepsLooks: true },
    {
      name: "what the model was asked",
      text: JSON.stringify(server.requests.map(({ body }) => body)),
      keepsLooks: true,
    },
  );
  // All of it happened: what is not planted cannot leak.
  const events = ended.stdout;
  for (const said of [
    "grant.answered",
    "request.answered",
    "model.retried",
    "completion.rejected",
    "context.changed",
    "hook.vetoed",
  ])
    expect(events).toContain(`"type":"${said}"`);
  expect(server.requests).toHaveLength(9);
  const kept = bytesOf(here.store);
  for (const place of ["bash-stdout", "tool-output", "output", "answer", "mcp-output", "text"])
    expect(kept).toContain(planted.one(place).looks);
  expectNoLeak(all);
  expect(unmarked(all).toSorted()).toEqual([...NOT_KEPT, ...OF_FAILURES].toSorted());
});

test("no secret is in what runs leave that fail, are cancelled, or cannot begin", async () => {
  const all = await world();
  const { here, planted, env, sinks, sink } = all;
  const { known: key } = planted.one("other-key");
  const server = await startChatServer(
    [
      { text: `I have ${planted.at("text")}` },
      {
        status: 401,
        rawBody: JSON.stringify({
          error: { message: `no such key ${key}: ${planted.at("provider-refusal")}`, type: "auth" },
        }),
      },
      {
        status: 307,
        rawBody: "",
        headers: {
          location: `http://127.0.0.1:9/?token=${planted.one("redirect").known}#${planted.one("redirect").looks}`,
        },
      },
    ],
    COMPATIBLE_CHAT,
  );
  onTestFinished(() => server.close());
  const provider = { ...env, OPENAI_COMPATIBLE_BASE_URL: server.url };
  const failing = ["run", "failing", `do ${planted.at("task")}`, "--model", "openai-compatible/some-model", "--trust"];
  const refused = sink("text", await here.sluice(failing, { env: provider }));
  expect([refused.code, refused.stdout]).toEqual([3, expect.stringContaining("HTTP 401")]);
  const redirected = sink("json", await here.sluice([...failing, ...json], { env: provider }));
  expect(textAt(printed(redirected), "error", "message")).toContain("redirect");
  const crashing = ["run", "crashing", "work", "--model", here.script({}), "--trust", ...json];
  const crashed = sink("a crash", await here.sluice(crashing, { env }));
  expect([crashed.code, at(printed(crashed), "error", "code")]).toEqual([1, "unexpected"]);
  const runs = await readRuns(here, env);
  expect(runs).toHaveLength(3);

  const asks = { calls: [{ tool: "AskUser", input: { question: `Is it ${planted.at("question")}?` } }] };
  const model = here.script({ asker: [asks] });
  const asking = ["run", `${PIPELINES}#asking`, "ask", "--model", model, "--wait=1ms", ...json];
  const waits = sink("suspended", await here.sluice(asking, { env }));
  const runId = textAt(printed(waits), "runId");
  const reason = `not ${planted.at("cancel-reason")} ${PHRASE}`;
  sink("cancel", await here.sluice(["cancel", runId, "--reason", reason], { env }));
  const inside = readerOf(here, env);
  for (const run of [...runs, runId]) {
    sink(`show ${run}`, await inside(["show", run]));
    sink(`audit ${run}`, await inside(["audit", run, "--verify"]));
  }
  sink("doctor", await inside(["doctor", ...json]));

  const code = `throw new Error(${JSON.stringify(`cannot read ${planted.at("config-throws")}`)})`;
  here.write("sluice.config.ts", `${code};\nexport default {};\n`);
  const broken = sink("a config that throws", await here.sluice([...failing, ...json], { env }));
  expect(broken.stderr).toContain("cannot be loaded: cannot read");
  sinks.push({ name: "the store", text: bytesOf(here.store), keepsLooks: true });
  expectNoLeak(all);
  expect(unmarked(all).filter((place) => OF_FAILURES.includes(place))).toEqual([]);
});

/** What only reads is the same in this process, for a user who does not trust the folder: its config is not loaded. */
function readerOf({ folder }: Desk, env: World["env"]): (args: readonly string[]) => Promise<Ended> {
  const sluice = sluiceHere(folder);
  return (args) => sluice(args, { env: { ...env, XDG_STATE_HOME: join(folder, "../other-state") } });
}

async function readRuns({ sluice }: Desk, env: World["env"]): Promise<readonly string[]> {
  const { runs } = printed(await sluice(["runs", ...json], { env }));
  return Array.isArray(runs) ? runs.map((_run, at) => textAt(runs, at, "runId")) : [];
}
