import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { resolveReal } from "../../packages/stages/src/tools/files/paths.ts";

const piece = fc.constantFrom("a", "b", "c", "file", "l1", "l2", "l3", "..", ".", "");
const path = fc.array(piece, { minLength: 1, maxLength: 6 }).map((pieces) => pieces.join("/"));
const target = fc.record({ absolute: fc.boolean(), path });

/** Where the kernel would go, or the code of its error. */
function byKernel(path: string): string {
  try {
    return realpathSync.native(path);
  } catch (thrown) {
    return thrown instanceof Error && "code" in thrown ? String(thrown.code) : "?";
  }
}

test("a path that exists is resolved as the kernel resolves it, whatever links are on the way", () => {
  fc.assert(
    fc.property(target, target, target, path, (l1, l2, l3, asked) => {
      const root = realpathSync(mkdtempSync(join(tmpdir(), "sluice-paths-")));
      try {
        mkdirSync(join(root, "a/b/c"), { recursive: true });
        mkdirSync(join(root, "b"));
        writeFileSync(join(root, "a/file"), "");
        const to = (link: typeof l1): string =>
          link.absolute ? `${root}/${link.path}` : link.path === "" ? "." : link.path;
        symlinkSync(to(l1), join(root, "l1"));
        symlinkSync(to(l2), join(root, "a/l2"));
        symlinkSync(to(l3), join(root, "a/b/l3"));
        const kernel = byKernel(`${root}/${asked}`);
        const ours = asked === "" ? resolveReal(".", root) : resolveReal(asked.replace(/^\/+/, "./"), root);
        if (kernel.startsWith("/")) expect(ours).toEqual({ ok: true, real: kernel, exists: true });
        else if (kernel === "ELOOP") expect(ours.ok).toBe(false);
        // Where nothing is, a place may still be named, to write there.
        else if (kernel === "ENOENT") expect(ours.ok && ours.exists).toBe(false);
      } finally {
        rmSync(root, { recursive: true, force: true });
      }
    }),
    { numRuns: 300 },
  );
});
