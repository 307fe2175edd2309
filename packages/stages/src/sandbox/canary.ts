import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, readlinkSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { messageOf } from "@sluice/core/runtime";
import type { ProcessEnd, ProcessOptions } from "../tools/bash/process.ts";
import type { SandboxPlan } from "../tools/sandbox.ts";

const PATIENCE_MS = 10_000;
const MOST_TEXT = 64 * 1024;
const MOST_SHOWN = 500;
/** Namespaces that the sandbox must not share with this process. */
const NAMESPACES = ["net", "pid", "ipc", "uts", "user", "mnt"];

/** Prints one word per line for each action that succeeded, then `end`. Uses builtins, and `readlink`. */
const SCRIPT = `
exec 2>/dev/null
( : >"$CANARY_FILE" ) && echo wrote
[ -w /proc/sys/kernel/core_pattern ] && echo kernel
( exec 7<>"/dev/tcp/127.0.0.1/$CANARY_PORT" ) && echo connected
while IFS= read -r place; do [ -n "$place" ] || continue
  [ -f "$place" ] && [ -s "$place" ] && echo store
  shopt -s dotglob nullglob; inside=("$place"/*); [ \${#inside[@]} -eq 0 ] || echo store
done <<<"$CANARY_ABSENT"
while IFS= read -r -d "" entry; do case $entry in CANARY_*) ;; *) echo environment;; esac; done </proc/1/environ
for open in /proc/self/fd/*; do case \${open##*/} in [012]|255) ;; *) [ ! -e "$open" ] || [ "$open" -ef /dev/null ] || echo descriptor;; esac; done
readlink ${NAMESPACES.map((name) => `/proc/self/ns/${name}`).join(" ")}
echo end
`;

/** The hole that each word reports. */
const HOLES: Readonly<Record<string, string>> = {
  wrote: "it could write in the workspace",
  kernel: "it could change settings of the kernel",
  connected: "it could connect to a port of this machine",
  store: "it could see the run store",
  environment: "it could see variables of this process",
  descriptor: "it had a descriptor of this process",
};

export interface CanaryOptions {
  readonly bash: string;
  readonly root: string;
  readonly absent: readonly string[];
  /** Whether this kind of sandbox creates namespaces. */
  readonly hasNamespaces: boolean;
  /** Runs a program in the sandbox under test; undefined if the sandbox could not be created. */
  readonly run: (program: ProcessOptions, plan: SandboxPlan) => Promise<ProcessEnd | undefined>;
}

/** Tries what a read-only sandbox must prevent. Returns why the sandbox does not hold, or undefined if it does. */
export async function tryCanary(options: CanaryOptions): Promise<string | undefined> {
  const { bash, root, absent, run } = options;
  const file = join(root, `.canary-${randomUUID()}`);
  let connected = false;
  const server = createServer((socket) => {
    connected = true;
    socket.destroy();
  });
  const port = await listen(server);
  const output = { stdout: "", stderr: "" };
  const take = (stream: keyof typeof output) => (text: string) => {
    output[stream] += text;
    return output[stream].length < MOST_TEXT;
  };
  const plan = { root, reads: [""], writes: [], scratch: [], network: false, absent, readOnly: [] };
  try {
    const end = await run(
      {
        file: bash,
        args: ["--noprofile", "--norc", "-c", SCRIPT],
        cwd: root,
        env: { CANARY_FILE: file, CANARY_PORT: String(port), CANARY_ABSENT: absent.join("\n") },
        signal: new AbortController().signal,
        timeoutMs: PATIENCE_MS,
        stdout: take("stdout"),
        stderr: take("stderr"),
      },
      plan,
    );
    if (end === undefined) return output.stderr.trim().slice(0, MOST_SHOWN) || "it could not be created";
    const lines = output.stdout.split("\n");
    const holes = new Set(lines.flatMap((line) => HOLES[line] ?? []));
    if (existsSync(file)) holes.add(HOLES.wrote ?? "");
    if (connected) holes.add(HOLES.connected ?? "");
    if (holes.size > 0) return [...holes].join(" and ");
    if (!lines.includes("end")) return `a program in it ended with exit code ${end.exitCode}`;
    if (!options.hasNamespaces) return undefined;
    const shared = NAMESPACES.filter((name) => lines.includes(readlinkSync(`/proc/self/ns/${name}`)));
    const seen = lines.filter((line) => NAMESPACES.some((name) => line.startsWith(`${name}:[`)));
    if (seen.length !== NAMESPACES.length) return "its namespaces cannot be read";
    return shared.length === 0 ? undefined : `it shares this process's ${shared.join(" and ")} namespace`;
  } catch (thrown) {
    return messageOf(thrown);
  } finally {
    server.close();
    rmSync(file, { force: true });
  }
}

async function listen(server: Server): Promise<number> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}
