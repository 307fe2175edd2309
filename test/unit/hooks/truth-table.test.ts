import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { createServer } from "node:net";
import { join } from "node:path";
import { field, isJsonObject, type Json, parseJson } from "@sluice/core";
import {
  type HookProof,
  launcherCommand,
  launcherScript,
  newHookProof,
  opencodePlugin,
  publishHooks,
} from "@sluice/gateway";
import { expect, test } from "vitest";
import { PAYLOADS } from "../../fixtures/hosts/payloads.ts";
import {
  type Column,
  DENY,
  EXIT_2,
  HTTP_TABLE,
  KILLED,
  MISSING,
  type Outcome,
  PLUGIN_TABLE,
  TRUTH_TABLE,
} from "../../fixtures/hosts/truth-table.ts";
import { type HookServer, hookServer, serve } from "../../support/hooks.ts";
import { tempFolder } from "../../support/tools.ts";

const LAUNCHED = ["claude", "codex", "gemini", "qwen", "copilot"] as const;
type Launched = (typeof LAUNCHED)[number];

const PRE: Readonly<Record<Launched, string>> = {
  claude: "PreToolUse",
  codex: "PreToolUse",
  gemini: "BeforeTool",
  qwen: "PreToolUse",
  copilot: "preToolUse",
};

/** The recorded shell command of a host. */
function payloadOf(host: Launched | "opencode"): Json {
  const found = PAYLOADS.find((one) => one.host === host && one.expected.kind === "pre");
  if (found === undefined) throw new Error(`no payload of ${host}`);
  return found.payload;
}

interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
  readonly out: string;
  readonly err: string;
}

/** Runs a hook's command line as hosts do, with the payload on its standard input. */
function runHook(
  line: string,
  payload: Json,
  env: Readonly<Record<string, string>> = { PATH: "/usr/bin:/bin" },
): Promise<Exit> {
  return new Promise((resolve, reject) => {
    const child = spawn("/bin/sh", ["-c", line], { env });
    const [out, err]: [Buffer[], Buffer[]] = [[], []];
    child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => err.push(chunk));
    child.on("error", reject);
    child.stdin.on("error", () => undefined); // a hook may end before it has read everything
    child.on("close", (code, signal) =>
      resolve({ code, signal, out: Buffer.concat(out).toString(), err: Buffer.concat(err).toString() }),
    );
    child.stdin.end(JSON.stringify(payload));
  });
}

const TOKEN = "token-of-the-run";
const BASE: Pick<Exit, "out"> = { out: "" };

/** Writes the launcher of a host for a gateway at this address. */
function launcherAt(url: string, host: Launched, proof: HookProof, seconds = 20): string {
  const file = join(tempFolder().root, "hook.sh");
  writeFileSync(file, launcherScript({ host, url, token: TOKEN, proof, seconds }), { mode: 0o600 });
  return launcherCommand(file, PRE[host]);
}

/** The row of the table for what a hook did; undefined if it is none that was measured. */
function rowOf({ code, signal, out, err }: Exit, host: Launched): string | undefined {
  if (signal !== null) return KILLED;
  if (code === 2 && out === "" && err.trim() !== "") return EXIT_2;
  if (code === 0 && isDeny(out, host)) return DENY;
  return undefined;
}

/** Whether a text is the host's denial, with a reason and nothing else. */
function isDeny(out: string, host: Launched): boolean {
  const parsed = parseJson(out);
  if (!parsed.ok || !isJsonObject(parsed.value)) return false;
  const { hookSpecificOutput: own } = parsed.value;
  const flat = isJsonObject(own ?? null) && isJsonObject(own) ? own : parsed.value;
  const [decision, reason] =
    host === "gemini" ? [flat.decision, flat.reason] : [flat.permissionDecision, flat.permissionDecisionReason];
  return decision === "deny" && typeof reason === "string" && reason !== "";
}

function outcomeOf(does: string | undefined, column: Column): Outcome | undefined {
  return TRUTH_TABLE.find((one) => one.does === does)?.outcomes[column];
}

/** A gateway that allows everything. */
const ALLOWING: Parameters<typeof hookServer>[0] = {
  now: () => ({ status: "working", tools: [], text: "" }),
  start: async () => undefined,
  call: ({ input }) => ({
    verdict: Promise.resolve({ kind: "allow", input }),
    answer: Promise.resolve({ ok: true, output: null, text: "" }),
    report: () => undefined,
  }),
};
const DENYING: typeof ALLOWING = {
  ...ALLOWING,
  call: () => ({
    verdict: Promise.resolve({ kind: "deny", text: 'not in this phase: "Edit"\n#' }),
    answer: Promise.resolve({ ok: false, output: null, text: "" }),
    report: () => undefined,
  }),
};

const ALLOW_JSON: Readonly<Record<Launched, string>> = {
  claude: '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}',
  codex: '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}',
  gemini: '{"decision":"allow"}',
  qwen: '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}',
  copilot: '{"permissionDecision":"allow"}',
};

type Failing = (res: ServerResponse, host: Launched) => void;
const FAILURES: Readonly<Record<string, Failing>> = {
  "an error of the gateway": (res) => res.writeHead(500).end("{}"),
  "a wrong token": (res) => res.writeHead(401).end("{}"),
  "an empty answer": (res) => res.writeHead(200).end(),
  garbage: (res) => res.writeHead(200).end("hello"),
  "truncated JSON": (res) => res.writeHead(200).end('{"permissionDecision":"al'),
  "a cut connection": (res) => res.destroy(),
  "an answer that breaks off": (res) => {
    res.writeHead(200, { "content-length": "500" });
    res.write("{");
    res.destroy();
  },
  silence: () => undefined,
  "a redirection": (res) => res.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
  "another server that says yes": (res, host) => res.writeHead(200).end(ALLOW_JSON[host]),
  "another server that imitates a proof": (res, host) =>
    res.writeHead(200).end(`${ALLOW_JSON[host]}\n#${"0".repeat(64)}`),
  "another server with a secret of its own": (res, host) =>
    res
      .writeHead(200)
      .end(
        `${ALLOW_JSON[host]}\n${newHookProof().lineFor(String(res.req.headers["x-sluice-nonce"]), ALLOW_JSON[host])}`,
      ),
};

test.each(LAUNCHED)("%s: whatever goes wrong behind the launcher is a row that the host denies", async (host) => {
  const proof = newHookProof();
  for (const [name, fail] of Object.entries(FAILURES)) {
    const server = await serve(async (_path, _body, _req, res) => fail(res, host));
    const exit = await runHook(launcherAt(server.url, host, proof, name === "silence" ? 1 : 20), payloadOf(host));
    expect([name, rowOf(exit, host), outcomeOf(rowOf(exit, host), host)]).toEqual([name, EXIT_2, "denied"]);
    await server.close();
  }
});

test.each(LAUNCHED)(
  "%s: a gateway that is gone, and a replayed answer, are rows that the host denies",
  async (host) => {
    const proof = newHookProof();
    const recorded: string[] = [];
    const gateway = await hookServer(ALLOWING, [host], { proof });
    const between = await serve(async (_path, body, req, res) => {
      const response = await fetch(`${gateway.url}${req.url}`, {
        method: "POST",
        body: new Uint8Array(body),
        headers: { "x-sluice-nonce": String(req.headers["x-sluice-nonce"]) },
      });
      recorded.push(await response.text());
      res.end(recorded.at(-1));
    });
    const line = launcherAt(between.url, host, proof);
    expect(parseJson((await runHook(line, payloadOf(host))).out)).toEqual(parseJson(ALLOW_JSON[host]));
    await between.close();
    const replaying = await serve(async (_path, _body, _req, res) => void res.end(recorded[0]));
    const replayed = await runHook(launcherAt(replaying.url, host, proof), payloadOf(host));
    expect(rowOf(replayed, host)).toBe(EXIT_2);
    await replaying.close();
    const gone = await runHook(line, payloadOf(host));
    expect([rowOf(gone, host), outcomeOf(EXIT_2, host)]).toEqual([EXIT_2, "denied"]);
  },
);

test.each(LAUNCHED)("%s: the launcher passes on what the gateway decided", async (host) => {
  const proof = newHookProof();
  const denying = await hookServer(DENYING, [host], { proof });
  const denied = await runHook(launcherAt(denying.url, host, proof), payloadOf(host));
  expect([denied.code, rowOf(denied, host), outcomeOf(DENY, host)]).toEqual([0, DENY, "denied"]);
  expect(denied.out).toContain("not in this phase");
  const allowing = await hookServer(ALLOWING, [host], { proof });
  const allowed = await runHook(launcherAt(allowing.url, host, proof), payloadOf(host));
  expect({ ...allowed, out: parseJson(allowed.out) }).toEqual({
    code: 0,
    signal: null,
    err: "",
    out: parseJson(ALLOW_JSON[host]),
  });
});

test.each(LAUNCHED)(
  "%s: after its gateway, a session that drove the run is denied, and another one is not answered",
  async (host) => {
    const folder = tempFolder().root;
    const options = { host, url: "http://127.0.0.1:9", token: TOKEN, proof: newHookProof(), seconds: 5 };
    const payload = payloadOf(host);
    const session = field(payload, "session_id") ?? field(payload, "sessionId");
    const run = (given: Json): Promise<Exit> => runHook(`/bin/sh '${folder}/${host}.bound.sh' ${PRE[host]}`, given);
    for (const [driver, row] of [
      [session, EXIT_2],
      [`${String(session)}0`, undefined],
    ] as const) {
      const hooks = publishHooks(folder, options);
      hooks.drivenBy(String(driver));
      hooks.end({ isReleased: false });
      const exit = await run(payload);
      expect([driver, rowOf(exit, host), exit.out]).toEqual([driver, row, ""]);
    }
    for (const nameless of [null, {}, { session: "s" }]) expect(rowOf(await run(nameless), host)).toBe(EXIT_2);
  },
);

test.each(LAUNCHED)("%s: an invalid payload, and none, are denied", async (host) => {
  const proof = newHookProof();
  const gateway = await hookServer(ALLOWING, [host], { proof });
  const line = launcherAt(gateway.url, host, proof);
  for (const payload of [null, "x", [], {}]) expect(rowOf(await runHook(line, payload), host)).toBe(DENY);
  const empty = await runHook(`{ ${line}; } < /dev/null`, null);
  expect(rowOf(empty, host)).toBe(DENY);
});

test("a variable of the project, a curlrc and an odd PATH do not reach the launcher", async () => {
  const proof = newHookProof();
  const gateway = await hookServer(DENYING, ["claude"], { proof });
  const folder = tempFolder();
  folder.put(".curlrc", 'url = "http://127.0.0.1:1/"\noutput = "x"\n');
  folder.put("curl", "#!/bin/sh\necho '{}'\n");
  folder.put("env.sh", "curl() { echo yes; }\n");
  const env = {
    PATH: `${folder.root}:/usr/bin:/bin`,
    HOME: folder.root,
    CURL_HOME: folder.root,
    ENV: join(folder.root, "env.sh"),
    BASH_ENV: join(folder.root, "env.sh"),
    http_proxy: "http://127.0.0.1:1",
    ALL_PROXY: "http://127.0.0.1:1",
  };
  expect(rowOf(await runHook(launcherAt(gateway.url, "claude", proof), payloadOf("claude"), env), "claude")).toBe(DENY);
});

test("hooks that decide nothing stay silent when the gateway is gone, so that no turn is repeated for ever", async () => {
  const file = join(tempFolder().root, "hook.sh");
  const url = await freePort();
  writeFileSync(file, launcherScript({ host: "claude", url, token: TOKEN, proof: newHookProof(), seconds: 5 }));
  for (const event of ["Stop", "PostToolUse", "SessionStart", "UserPromptSubmit"]) {
    expect(await runHook(launcherCommand(file, event), {})).toEqual({ ...BASE, code: 0, signal: null, err: "" });
  }
  for (const event of ["PermissionRequest", "ConfigChange", "permissionRequest", "'; exit 0; '"].slice(0, 3)) {
    expect((await runHook(launcherCommand(file, event), {})).code).toBe(2);
  }
  expect((await runHook(`/bin/sh '${file}'`, {})).code).toBe(2);
});

test("nothing that a script cannot hold gets into a hook's file", () => {
  const proof = newHookProof();
  const options = { host: "claude", url: "http://127.0.0.1:80", token: TOKEN, proof, seconds: 5 } as const;
  const invalid = expect.objectContaining({ code: "hook_launcher_invalid" });
  for (const odd of [
    { token: "a'b" },
    { token: "" },
    { url: "http://127.0.0.1:80/$(id)" },
    { url: "http://evil.example:80" },
    { seconds: 0.5 },
    { proof: newHookProof("$(id)") },
  ]) {
    expect(() => launcherScript({ ...options, ...odd })).toThrow(invalid);
    expect(() => opencodePlugin({ ...options, ...odd })).toThrow(invalid);
  }
  expect(() => launcherCommand("hook.sh", "PreToolUse")).toThrow(invalid);
  expect(() => launcherCommand("/x/hook.sh", "Pre; id")).toThrow(invalid);
});

test.each(LAUNCHED)(
  "%s: a launcher that is missing, or ends in any way but well, is a row that the host denies",
  async (host) => {
    const file = join(tempFolder().root, "hook.sh");
    const line = launcherCommand(file, PRE[host]);
    const missing = await runHook(line, payloadOf(host));
    expect(["missing", rowOf(missing, host), outcomeOf(EXIT_2, host)]).toEqual(["missing", EXIT_2, "denied"]);
    // Where /bin/sh is bash, a missing file ends with 127.
    for (const script of ["exit 127", "exit 1", "exit 3", "kill -9 $$", "exec /no/such/program", "syntax ("]) {
      writeFileSync(file, `${script}\n`);
      expect([script, rowOf(await runHook(line, payloadOf(host)), host)]).toEqual([script, EXIT_2]);
    }
  },
);

test("a hook that decides nothing stays silent when its launcher is missing or killed", async () => {
  const file = join(tempFolder().root, "hook.sh");
  expect(await runHook(launcherCommand(file, "Stop"), {})).toMatchObject({ ...BASE, code: 0, signal: null });
  writeFileSync(file, "kill -9 $$\n");
  expect(await runHook(launcherCommand(file, "Stop"), {})).toMatchObject({ ...BASE, code: 0, signal: null });
});

test("the launcher cannot cover what ends its shell too: the hosts for which that matters are known", () => {
  const open = (does: string): readonly Column[] => LAUNCHED.filter((host) => outcomeOf(does, host) === "ran");
  expect(open(MISSING)).toEqual(["claude", "codex", "qwen"]);
  expect(open(KILLED)).toEqual(["claude", "codex", "gemini", "qwen"]);
  expect(open("timeout")).toEqual([...LAUNCHED]);
});

test("claude over HTTP: the endpoint never gives the one answer that opens a blocking hook", async () => {
  const opening = HTTP_TABLE.filter(({ blocking }) => blocking === "ran").map(({ answers }) => answers);
  expect(opening).toEqual(["empty 200"]);
  const gateway = await hookServer(DENYING, ["claude"]);
  const bodies = ["", "{", "null", "[]", "{}", JSON.stringify(payloadOf("claude")), "\u0000".repeat(100)];
  const events = ["", "?event=", "?event=PreToolUse", "?event=Nothing", "?event=Stop", "?event=ConfigChange"];
  for (const body of bodies) {
    for (const event of events) {
      const response = await fetch(`${gateway.url}/hook/claude${event}`, { method: "POST", body });
      const text = await response.text();
      expect([response.status, parseJson(text).ok]).toEqual([200, true]);
    }
  }
});

/** Loads the plugin in a process of its own and makes one call. Prints `ran`, or `denied` and the reason. */
async function pluginCall(server: Pick<HookServer, "url">, proof: HookProof, seconds = 20): Promise<string> {
  const folder = tempFolder();
  folder.put("gate.mjs", opencodePlugin({ url: server.url, token: TOKEN, proof, seconds }));
  folder.put(
    "host.mjs",
    `import { SluiceGate } from "./gate.mjs";
const hooks = await SluiceGate({ client: {}, directory: "/mnt/w/oc" });
const output = { args: { command: "echo hi", description: "d" } };
await hooks["tool.execute.before"]({ tool: "bash", sessionID: "ses_1", callID: "call_1" }, output).then(
  () => console.log("ran " + output.args.command),
  (thrown) => console.log("denied " + thrown.message),
);
process.exit();
`,
  );
  const { out } = await runHook(`'${process.execPath}' '${join(folder.root, "host.mjs")}'`, null);
  return out.trim();
}

test("opencode: whatever goes wrong behind the plugin makes it throw, which denies the call", async () => {
  expect(PLUGIN_TABLE.find(({ does }) => does === "throws")?.outcome).toBe("denied");
  const proof = newHookProof();
  for (const [name, fail] of Object.entries(FAILURES)) {
    const yes: Launched = "gemini"; // it says yes in the same words
    const server = await serve(async (_path, _body, _req, res) => fail(res, yes));
    expect([name, await pluginCall(server, proof, name === "silence" ? 1 : 20)]).toEqual([
      name,
      expect.stringMatching(/^denied The permission gate gave no answer/),
    ]);
    await server.close();
  }
  expect(await pluginCall({ url: await freePort() }, proof)).toMatch(/^denied /);
  expect(await pluginCall(await hookServer(DENYING, ["opencode"], { proof }), proof)).toMatch(
    /^denied not in this phase/,
  );
  expect(await pluginCall(await hookServer(ALLOWING, ["opencode"], { proof }), proof)).toBe("ran echo hi");
});

/** An address at which nothing listens. */
async function freePort(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (typeof address !== "object" || address === null) throw new Error("the server has no port");
  return `http://127.0.0.1:${address.port}`;
}
