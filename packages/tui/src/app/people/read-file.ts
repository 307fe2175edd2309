import { constants, open } from "node:fs/promises";
import { relative, sep } from "node:path";
import { messageOf } from "@sluice/core";
import type { FileNow } from "./change.ts";

/** Bytes up to which a file is compared with what would be written. */
const MOST_BYTES = 500_000;

/** What is in a file of the run's folder, to be compared with a change. `path` is absolute and after links, as it was judged. */
export async function readFileNow(path: string, root: string): Promise<FileNow> {
  const inside = relative(root, path);
  if (inside === ".." || inside.startsWith(`..${sep}`) || inside === "" || inside.startsWith(sep))
    return { kind: "unread", why: "it is not in the run's folder" };
  try {
    // What became a link or a pipe since then is not followed and not waited for.
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const stats = await file.stat();
      if (!stats.isFile()) return { kind: "unread", why: "it is no file" };
      if (stats.size > MOST_BYTES) return { kind: "unread", why: "it is too large" };
      return decoded(await file.readFile());
    } finally {
      await file.close();
    }
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT") return { kind: "absent" };
    return { kind: "unread", why: messageOf(thrown) };
  }
}

function decoded(bytes: Buffer): FileNow {
  if (bytes.includes(0)) return { kind: "unread", why: "it is no text" };
  try {
    return { kind: "text", text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) throw thrown;
    return { kind: "unread", why: "it is no UTF-8 text" };
  }
}
