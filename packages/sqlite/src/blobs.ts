import { hash } from "node:crypto";
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { storeError, storeFault, systemCode } from "./faults.ts";
import { syncFolder } from "./folder.ts";

/** Texts up to this many bytes stay in the database. */
const INLINE_BYTES = 256 * 1024;

/** A text as a row keeps it: itself, or the name of the blob that holds it. */
export interface StoredBlob {
  readonly text: string | null;
  readonly blob: string | null;
  /** Called in the transaction that names the blob, where nobody else can remove it: puts it back if somebody did. */
  readonly confirm?: () => void;
}

/** Long texts, each in a file named by its own SHA-256: a change shows, and equal texts are kept once. */
export interface Blobs {
  /** Writes a long text, durably, before the row that will name it. */
  keep(text: string): StoredBlob;
  /** The text of a blob. `blob_missing` or `blob_damaged`, both naming the file and what it belongs to. */
  read(digest: string, of: string): string;
  /** The names of all blobs. */
  names(): readonly string[];
  /** Removes blobs. Only in a transaction that holds the store's write lock and has seen that nothing names them. */
  remove(digests: readonly string[]): void;
  /** Removes what writers left half-written that are gone. */
  sweep(isLive: (ownerId: string) => boolean): void;
  /** Copies all blobs that are not there yet. */
  copyTo(folder: string): void;
}

const DIGEST = /^[0-9a-f]{64}$/;
const DRAFT = /^[0-9a-f]{64}\.([0-9a-z-]+)\.tmp$/;

export function createBlobs(folder: string, ownerId: string): Blobs {
  const write = (digest: string, bytes: Buffer): void => {
    const file = join(folder, digest);
    // A blob that is there was synced before it got its name; one that was changed since is written anew.
    if (!(existsSync(file) && isText(readPlain(file), digest))) {
      const draft = join(folder, `${digest}.${ownerId}.tmp`);
      const handle = openSync(draft, "w", 0o600);
      try {
        writeFileSync(handle, bytes);
        fsyncSync(handle);
      } finally {
        closeSync(handle);
      }
      renameSync(draft, file);
    }
    syncFolder(folder);
  };

  const blobs: Blobs = {
    keep(text) {
      // A UTF-16 unit is at most three bytes of UTF-8: most texts need no counting.
      if (text.length * 3 <= INLINE_BYTES || Buffer.byteLength(text) <= INLINE_BYTES) return { text, blob: null };
      const bytes = Buffer.from(text);
      const digest = hash("sha256", bytes);
      const put = (): void => {
        try {
          write(digest, bytes);
        } catch (thrown) {
          throw storeFault(thrown, join(folder, digest));
        }
      };
      put();
      const confirm = (): void => {
        if (!existsSync(join(folder, digest))) put();
      };
      return { text: null, blob: digest, confirm };
    },

    read(digest, of) {
      const file = join(folder, digest);
      const detail = { path: file, of };
      if (!DIGEST.test(digest)) throw storeError("blob_damaged", `${of} names a blob by what is no digest`, { of });
      let bytes: Buffer | undefined;
      try {
        bytes = readPlain(file);
      } catch (thrown) {
        if (systemCode(thrown) !== "ENOENT") throw storeFault(thrown, file);
        throw storeError(
          "blob_missing",
          `${of} is kept in ${file}, which is not there; put it back from a backup`,
          detail,
          thrown,
        );
      }
      if (!isText(bytes, digest)) {
        throw storeError(
          "blob_damaged",
          `${of} is kept in ${file}, which was changed; put it back from a backup`,
          detail,
        );
      }
      return bytes.toString();
    },

    sweep(isLive) {
      for (const name of readdirSync(folder)) {
        const writer = DRAFT.exec(name)?.[1];
        if (writer !== undefined && !isLive(writer)) rmSync(join(folder, name), { force: true });
      }
    },

    names: () => (existsSync(folder) ? readdirSync(folder).filter((name) => DIGEST.test(name)) : []),

    remove(digests) {
      for (const digest of digests) rmSync(join(folder, digest), { force: true });
      if (digests.length > 0) syncFolder(folder);
    },

    copyTo(target) {
      for (const name of blobs.names()) {
        const copy = join(target, name);
        if (existsSync(copy)) continue;
        let bytes: Buffer | undefined;
        try {
          bytes = readPlain(join(folder, name));
        } catch (thrown) {
          // Removed since its name was read, with the run that named it.
          if (systemCode(thrown) !== "ENOENT") throw thrown;
          continue;
        }
        // An audit of the copy says that it is not there.
        if (bytes === undefined) continue;
        const handle = openSync(copy, "wx", 0o600);
        try {
          writeFileSync(handle, bytes);
          fsyncSync(handle);
        } finally {
          closeSync(handle);
        }
      }
    },
  };
  return blobs;
}

function isText(bytes: Buffer | undefined, digest: string): bytes is Buffer {
  return bytes !== undefined && hash("sha256", bytes) === digest;
}

/** A store may come from anybody: what is no plain file, such as a device or a link out of it, is not read, and undefined. */
function readPlain(file: string): Buffer | undefined {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  if (!lstatSync(file).isFile()) return undefined;
  const handle = openSync(file, O_RDONLY | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0));
  try {
    return fstatSync(handle).isFile() ? readFileSync(handle) : undefined;
  } finally {
    closeSync(handle);
  }
}
