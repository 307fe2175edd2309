/** What a patch does to one file. Paths are as written in the patch. */
export type PatchedFile =
  | { readonly kind: "add"; readonly path: string; readonly added: number }
  | { readonly kind: "delete"; readonly path: string }
  | {
      readonly kind: "update";
      readonly path: string;
      /** Where the file is moved to. */
      readonly to?: string;
      readonly added: number;
      readonly removed: number;
    };

export type ReadPatch =
  | { readonly ok: true; readonly files: readonly PatchedFile[] }
  | { readonly ok: false; readonly reason: string };

const MOST_FILES = 500;

/**
 * The files of a patch in the form of `apply_patch`. Every line has to belong to the grammar: a line that one reader takes for text and
 * another for a header would hide a file.
 */
export function readPatch(patch: string): ReadPatch {
  const lines = patch.replace(/\n+$/, "").split("\n");
  if (lines[0] !== "*** Begin Patch") return bad(0, "a patch starts with *** Begin Patch");
  if (lines.length < 2 || lines.at(-1) !== "*** End Patch")
    return bad(lines.length - 1, "a patch ends with *** End Patch");
  const files: PatchedFile[] = [];
  let at = 1;
  const end = lines.length - 1;
  /** Takes the lines that fit, and counts those that start with + and -. */
  const take = (fits: RegExp): { readonly added: number; readonly removed: number } => {
    let [added, removed] = [0, 0];
    for (; at < end && fits.test(lines[at] ?? ""); at += 1) {
      if (lines[at]?.startsWith("+")) added += 1;
      if (lines[at]?.startsWith("-")) removed += 1;
    }
    return { added, removed };
  };
  while (at < end) {
    const header = /^\*\*\* (Add|Delete|Update) File: (\S(?:.*\S)?)$/.exec(lines[at] ?? "");
    const [, verb, path] = header ?? [];
    if (verb === undefined || path === undefined)
      return bad(at, "expected a file: *** Add File, *** Update File or *** Delete File");
    if (files.length === MOST_FILES) return bad(at, `a patch may change ${MOST_FILES} files`);
    at += 1;
    if (verb === "Add") files.push({ kind: "add", path, added: take(/^\+/).added });
    else if (verb === "Delete") files.push({ kind: "delete", path });
    else {
      const to = /^\*\*\* Move to: (\S(?:.*\S)?)$/.exec(lines[at] ?? "")?.[1];
      if (to !== undefined) at += 1;
      const counted = take(/^(?:@@(?: |$)|[+-]|\*\*\* End of File$|$| (?!\s*\*\*\* ))/);
      files.push({ kind: "update", path, ...(to === undefined ? {} : { to }), ...counted });
    }
  }
  return files.length === 0 ? bad(1, "the patch changes no file") : { ok: true, files };
}

function bad(line: number, reason: string): ReadPatch {
  return { ok: false, reason: `the patch cannot be read, line ${line + 1}: ${reason}` };
}
