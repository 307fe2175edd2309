import { hash, randomUUID } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { homedir, hostname } from "node:os";
import { join, sep } from "node:path";
import { systemCode } from "./faults.ts";

/** What statfs(2) calls file systems that several machines write to. */
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
/** FUSE says only what stands behind it in the mount table; most of what is behind it is local. */
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
 * The name of the shared file system a folder lies on, or undefined for one that belongs to this machine. Locks do not
 * hold there. Container and virtual machine mounts (overlay, 9p, virtiofs) are let through: one kernel uses them at a
 * time, and the machine's id catches the other side.
 */
export function sharedFilesystem(folder: string): string | undefined {
  if (process.platform === "win32") return folder.startsWith("\\\\") ? "a network share" : undefined;
  if (process.platform !== "linux") return undefined;
  // statfs types are unsigned 32-bit numbers, which some systems hand out with the sign extended.
  const magic = Number(statfsSync(folder).type) >>> 0;
  if (magic !== FUSE_MAGIC) return SHARED_MAGIC.get(magic);
  return sharedFuse(mountType(folder, readMounts() ?? ""));
}

/** The text of the mount table; undefined where the system has none. */
export function readMounts(): string | undefined {
  return process.platform === "linux" ? readFileSync("/proc/self/mountinfo", "utf8") : undefined;
}

/** `fuse.sshfs` -> `sshfs` when that is shared between machines. */
export function sharedFuse(type: string | undefined): string | undefined {
  const name = type?.replace(/^fuse(blk)?\./, "");
  return name !== undefined && SHARED_FUSE.has(name) ? name : undefined;
}

/** The type of the mount that holds a path, by the text of /proc/self/mountinfo; the last of the longest wins. */
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
