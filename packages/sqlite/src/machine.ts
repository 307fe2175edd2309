import { hash, randomUUID } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { homedir, hostname } from "node:os";
import { join, sep } from "node:path";
import { systemCode } from "./faults.ts";

/** statfs(2) types of file systems that several machines share. */
const SHARED_MAGIC: ReadonlyMap<number, string> = new Map([
  [0x6969, "nfs"],
  [0x517b, "smb"],
  [0xff534d42, "cifs"],
  [0xfe534d42, "smb"],
  [0x5346414f, "afs"],
  [0x6b414653, "afs"],
  [0x73757245, "coda"],
  [0x00c36400, "ceph"],
  [0x0bd00bd0, "lustre"],
  [0x47504653, "gpfs"],
  [0x19830326, "beegfs"],
  [0x01161970, "gfs2"],
  [0x7461636f, "ocfs2"],
  [0xaad7aaea, "panfs"],
]);
const FUSE_MAGIC = 0x65735546;
/** Shared file systems behind FUSE, by their type in the mount table; most others are local. */
const SHARED_FUSE: ReadonlySet<string> = new Set([
  "sshfs",
  "s3fs",
  "goofys",
  "geesefs",
  "mountpoint-s3",
  "gcsfuse",
  "blobfuse",
  "blobfuse2",
  "rclone",
  "davfs",
  "davfs2",
  "curlftpfs",
  "glusterfs",
  "ceph",
  "ceph-fuse",
  "juicefs",
  "seaweedfs",
  "moosefs",
  "mfs",
  "lizardfs",
  "nfs",
  "smbnetfs",
]);

/**
 * The name of a folder's shared file system, on which locks do not work; undefined for a local one. Container and virtual machine
 * mounts (overlay, 9p, virtiofs) count as local: one kernel uses them at a time, and the machine id detects another.
 */
export function sharedFilesystem(folder: string): string | undefined {
  if (process.platform === "win32") return folder.startsWith("\\\\") ? "a network share" : undefined;
  if (process.platform !== "linux") return undefined;
  // statfs types are unsigned 32-bit numbers, which some systems sign-extend.
  const magic = Number(statfsSync(folder).type) >>> 0;
  if (magic !== FUSE_MAGIC) return SHARED_MAGIC.get(magic);
  return sharedFuse(mountType(folder, readMounts() ?? ""));
}

/** The text of the mount table, on Linux. */
export function readMounts(): string | undefined {
  return process.platform === "linux" ? readFileSync("/proc/self/mountinfo", "utf8") : undefined;
}

/** `fuse.sshfs` -> `sshfs`, for a shared file system. */
export function sharedFuse(type: string | undefined): string | undefined {
  const name = type?.replace(/^fuse(blk)?\./, "");
  return name !== undefined && SHARED_FUSE.has(name) ? name : undefined;
}

/** The type of a path's mount, by the text of /proc/self/mountinfo; the last of the longest matches wins. */
export function mountType(path: string, mountinfo: string): string | undefined {
  let longest = -1;
  let type: string | undefined;
  for (const line of mountinfo.split("\n")) {
    const fields = line.split(" ");
    const point = fields[4]?.replace(/\\([0-7]{3})/g, (_all, octal: string) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    );
    const separator = fields.indexOf("-", 6);
    if (point === undefined || separator === -1 || point.length < longest) continue;
    const inside = path === point || path.startsWith(point.endsWith(sep) ? point : `${point}${sep}`);
    if (!inside) continue;
    longest = point.length;
    type = fields[separator + 1];
  }
  return type;
}

/** A digest that identifies this machine without revealing its id. */
export function machineDigest(machineId: string | undefined, { make = true } = {}): string {
  return hash("sha256", `sluice-store ${machineId ?? readMachineId(make)}`);
}

function readMachineId(make: boolean): string {
  for (const path of ["/etc/machine-id", "/var/lib/dbus/machine-id"]) {
    const id = readIfThere(path);
    if (id !== undefined && /^[0-9a-f]{32}$/.test(id)) return id;
  }
  // Machines may share a home folder or a host name, but rarely both.
  const [name = ""] = hostname().toLowerCase().split(".");
  return `${name} ${ownId(make) ?? ""}`;
}

/** An id in the user's state folder, created if missing; undefined if it cannot be written. */
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
    // A link appears atomically and never replaces another process's id.
    linkSync(draft, path);
  } catch (thrown) {
    // A read-only home, or another process was faster: the id is read below.
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
