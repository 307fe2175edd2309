import { hash } from "node:crypto";
import { constants, existsSync, fstatSync, lstatSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { storeError, storeFault, systemCode } from "./faults.ts";
import { syncFolder, withFile, writeSynced } from "./folder.ts";

/** Longer texts are stored outside the database. */
const INLINE_BYTES = 256 * 1024;

/** A text as its row stores it: itself, or the name of its blob. */
export interface StoredBlob {
  readonly text: string | null;
  readonly blob: string | null;
  /** Called in the transaction that names the blob; writes it again if another process removed it meanwhile. */
  readonly confirm?: () => void;
}

/** Long texts in files that are named by their SHA-256, so that changes are detected and equal texts are stored once. */
export interface Blobs {
  /** Durably writes a long text before the row that names it. */
  keep(text: string): StoredBlob;
  /** Reads a blob. Throws `blob_missing` or `blob_damaged`, which name the file and `of`, its owner. */
  read(digest: string, of: string): string;
  /** The names of all blobs. */
  names(): readonly string[];
  /** Removes blobs. Call it only in a write transaction that found no row that names them. */
  remove(digests: readonly string[]): void;
  /** Removes unfinished files of dead writers. */
  sweep(isLive: (ownerId: string) => boolean): void;
  /** Copies all blobs that `folder` does not have. */
  copyTo(folder: string): void;
}

const DIGEST = /^[0-9a-f]{64}$/;
const DRAFT = /^[0-9a-f]{64}\.([0-9a-z-]+)\.tmp$/;

export function createBlobs(folder: string, ownerId: string): Blobs {
  const write = (digest: string, bytes: Buffer): void => {
    const file = join(folder, digest);
    // An existing blob was synced before it was renamed; a changed one is written again.
    if (!(existsSync(file) && isText(readPlain(file), digest))) {
      const draft = join(folder, `${digest}.${ownerId}.tmp`);
      writeSynced(draft, bytes, "w");
      renameSync(draft, file);
    }
    syncFolder(folder);
  };

  const blobs: Blobs = {
    keep(text) {
      // A UTF-16 unit is at most three bytes of UTF-8, which spares most texts the count.
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
      if (!DIGEST.test(digest)) throw storeError("blob_damaged", `${of} names a blob that is not a digest`, { of });
      let bytes: Buffer | undefined;
      try {
        bytes = readPlain(file);
      } catch (thrown) {
        if (systemCode(thrown) !== "ENOENT") throw storeFault(thrown, file);
        throw storeError(
          "blob_missing",
          `${of} is kept in ${file}, which is missing; restore it from a backup`,
          detail,
          thrown,
        );
      }
      if (!isText(bytes, digest)) {
        throw storeError(
          "blob_damaged",
          `${of} is kept in ${file}, which was changed; restore it from a backup`,
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
          // Pruned after its name was read.
          if (systemCode(thrown) !== "ENOENT") throw thrown;
          continue;
        }
        // An audit of the copy reports it as missing.
        if (bytes !== undefined) writeSynced(copy, bytes, "wx");
      }
    },
  };
  return blobs;
}

function isText(bytes: Buffer | undefined, digest: string): bytes is Buffer {
  return bytes !== undefined && hash("sha256", bytes) === digest;
}

/** Undefined for anything but a plain file, since a hostile store may hold devices or links. */
function readPlain(file: string): Buffer | undefined {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  if (!lstatSync(file).isFile()) return undefined;
  return withFile(file, O_RDONLY | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0), (handle) =>
    fstatSync(handle).isFile() ? readFileSync(handle) : undefined,
  );
}
