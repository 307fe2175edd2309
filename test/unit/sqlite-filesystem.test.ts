import { expect, test } from "vitest";
import { mountType, sharedFilesystem, sharedFuse } from "../../packages/sqlite/src/machine.ts";
import { scratch } from "../support/sqlite-store.ts";

const MOUNTS = [
  "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw",
  "30 22 0:25 / /home/me/remote rw,nosuid shared:5 - fuse.sshfs me@host: rw",
  "31 22 0:26 / /home/me/with\\040space rw - fuse.rclone remote: rw",
  "32 22 0:27 / /home/me/vault rw - fuse.gocryptfs cipher rw",
  "33 22 0:28 / /mnt/win rw - fuseblk /dev/sdb1 rw",
  "34 33 0:29 / /mnt/win rw - virtiofs host rw",
  "",
].join("\n");

test("a path belongs to the deepest mount above it, and to the last of several on one point", () => {
  expect(mountType("/", MOUNTS)).toBe("ext4");
  expect(mountType("/home/me/project", MOUNTS)).toBe("ext4");
  expect(mountType("/home/me/remote", MOUNTS)).toBe("fuse.sshfs");
  expect(mountType("/home/me/remote/a/b", MOUNTS)).toBe("fuse.sshfs");
  expect(mountType("/home/me/remotely", MOUNTS)).toBe("ext4");
  expect(mountType("/home/me/with space/x", MOUNTS)).toBe("fuse.rclone");
  expect(mountType("/mnt/win/x", MOUNTS)).toBe("virtiofs");
  expect(mountType("/", "")).toBeUndefined();
});

test("of what FUSE brings, only what other machines reach is refused", () => {
  const types = ["fuse.sshfs", "fuse.rclone", "fuse.gocryptfs", "fuseblk", "virtiofs", "fuse.glusterfs", undefined];
  expect(types.map((type) => sharedFuse(type))).toEqual([
    "sshfs",
    "rclone",
    undefined,
    undefined,
    undefined,
    "glusterfs",
    undefined,
  ]);
});

test("a folder on this machine's own disk is not shared", () => {
  expect(sharedFilesystem(scratch())).toBeUndefined();
});
