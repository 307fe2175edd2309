import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { field, isJsonObject, type Json, parseJson } from "@sluice/core";
import { digestOf } from "@sluice/core/runtime";
import type { HostName } from "../../host-names.ts";
import { type HostClass, type LaunchRequest, SERVER_NAME } from "../host.ts";
import { launchPlan } from "../launch-plan.ts";
import type { Examination } from "./examine-host.ts";

/** How a host is started, as far as a proof depends on it. */
export type ProofKey = Pick<LaunchRequest, "mode"> & { readonly host: HostName; readonly native: boolean };

/** What doctor proved on this machine. A proof holds for one version and for the way in which this version of Sluice starts the host. */
export function hostProofs(stateFolder: string) {
  const file = join(stateFolder, "host-proofs.json");
  const readAll = (): Readonly<Record<string, Json>> => {
    const parsed = parseJson(textOf(file) ?? "{}");
    return parsed.ok && isJsonObject(parsed.value) ? parsed.value : {};
  };
  return {
    /** Undefined if nothing was proven, or something else. */
    read(key: ProofKey, version: string | undefined): HostClass | undefined {
      const found = readAll()[nameOf(key)];
      if (version === undefined || field(found, "version") !== version || field(found, "plan") !== planDigest(key))
        return undefined;
      const proven = field(found, "proven");
      return proven === "hard" || proven === "guarded" || proven === "advisory" ? proven : undefined;
    },
    write({ version, proven, ...key }: Examination): void {
      if (version === undefined) return;
      const all = { ...readAll(), [nameOf(key)]: { version, proven, plan: planDigest(key) } };
      mkdirSync(stateFolder, { recursive: true, mode: 0o700 });
      const draft = `${file}.${process.pid}.tmp`;
      writeFileSync(draft, `${JSON.stringify(all, null, 2)}\n`, { mode: 0o600 });
      renameSync(draft, file);
    },
  };
}

function nameOf({ host, mode, native }: ProofKey): string {
  return `${host} ${mode}${native ? " native" : ""}`;
}

/** The digest of a plan with placeholders for what differs between runs. */
function planDigest({ host, mode, native }: ProofKey): string {
  const { args, env, files, form } = launchPlan(host, {
    url: "http://127.0.0.1:1",
    token: "token",
    workspace: "/workspace",
    folder: "/folder",
    mode,
    native,
    server: SERVER_NAME,
    tools: [],
    args: [],
    version: undefined,
    user: { home: "/home", env: {}, read: () => undefined, exists: () => false },
    hookCommand: (event) => `hook ${event}`,
    plugin: "",
  });
  const set = Object.entries(env).map(([name, value]) => [name, value ?? null]);
  return digestOf({ args: [...args], env: set, files: files.map(({ path, text }) => [path, text]), form });
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT") return undefined;
    throw thrown;
  }
}
