// Servers that took the gateway's place, and what a host makes of their answers.
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import {
  examineHost,
  HOSTS,
  launcherCommand,
  launcherScript,
  newHookProof,
  opencodePlugin,
  readVersion,
} from "@sluice/gateway";

/** Seconds that a hook of the lab waits. */
const HOOK_SECONDS = 4;

const ALLOW = JSON.stringify({
  decision: "allow",
  behavior: "allow",
  permissionDecision: "allow",
  hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "allow", decision: { behavior: "allow" } },
});

const ANSWERS = {
  "answers nothing": (res) => res.writeHead(200).end(),
  "answers text": (res) => res.writeHead(200).end("hello\n"),
  "answers half of its JSON": (res) => res.writeHead(200).end(ALLOW.slice(0, 30)),
  "is another server that guesses the proof": (res) => res.writeHead(200).end(`${ALLOW}\n#${"0".repeat(64)}`),
  fails: (res) => res.writeHead(500).end("boom"),
  "closes the connection": (res) => res.destroy(),
  hangs: () => undefined,
};

/** Starts one server for each kind of answer. */
export async function faultsOf() {
  const servers = [];
  const all = [];
  for (const [name, answer] of Object.entries(ANSWERS)) {
    const server = createServer((req, res) => {
      req.resume();
      if (req.url?.startsWith("/hook/")) answer(res);
      else res.writeHead(404).end();
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    servers.push(server);
    all.push({ name, url: `http://127.0.0.1:${server.address().port}` });
  }
  return {
    all,
    close: async () => {
      for (const server of servers) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
    },
  };
}

/** Examines a host as doctor does, also with faulty gateways. */
export async function probe({ host, mode, env, scratch, faults }) {
  const version = await readVersion(HOSTS[host].command, env);
  const hookFiles = ({ url, token, secret }, folder) => {
    const options = { url, token, proof: newHookProof(secret), seconds: HOOK_SECONDS };
    const launcher = join(folder, "hook.sh");
    writeFileSync(launcher, launcherScript({ ...options, host }), { mode: 0o600 });
    return { hookCommand: (event) => launcherCommand(launcher, event), plugin: opencodePlugin(options) };
  };
  return await examineHost({ host, version, mode, scratch, env, hookFiles, faults, timeoutMs: 60_000 });
}
