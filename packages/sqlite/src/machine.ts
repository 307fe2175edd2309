import { hash, randomUUID } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, hostname } from "node:os";
import { join } from "node:path";
import { systemCode } from "./faults.ts";

/** What a store keeps to know its machine again: a digest, since the id itself is nobody's business. */
export function machineDigest(machineId: string | undefined, { make = true } = {}): string {
  return hash("sha256", `sluice-store ${machineId ?? readMachineId(make)}`);
}

function readMachineId(make: boolean): string {
  for (const path of ["/etc/machine-id", "/var/lib/dbus/machine-id"]) {
    const id = readIfThere(path);
    if (id !== undefined && /^[0-9a-f]{32}$/.test(id)) return id;
  }
  // A home folder may be shared by several machines, a host name may be common: together they tell machines apart.
  const [name = ""] = hostname().toLowerCase().split(".");
  return `${name} ${ownId(make) ?? ""}`;
}

/** An id of our own in the user's state folder, made when it is not there; undefined where there is no such place. */
function ownId(make: boolean): string | undefined {
  const state = process.env.XDG_STATE_HOME ?? join(homedir(), ".local", "state");
  const path = join(state, "sluice", "machine-id");
  const known = readIfThere(path);
  if (!make || (known !== undefined && known !== "")) return known;
  const id = randomUUID();
  const draft = `${path}.${id}`;
  try {
    mkdirSync(join(state, "sluice"), { recursive: true, mode: 0o700 });
    writeFileSync(draft, `${id}\n`, { flag: "wx", mode: 0o600 });
    // A link appears whole and never replaces the id another process made just now.
    linkSync(draft, path);
  } catch (thrown) {
    // No place to write (a read-only home), or somebody was faster: what can be read decides.
    if (systemCode(thrown) === undefined) throw thrown;
  } finally {
    rmSync(draft, { force: true });
  }
  return readIfThere(path);
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    return undefined;
  }
}
