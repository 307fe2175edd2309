// A custom tool that declares which files a call accesses; the gate decides. examples/custom-tool.ts uses it.
import { createHash } from "node:crypto";
import { readFileSync, realpathSync, renameSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { defineTool, field, isJsonObject, parseJson, type Workspace } from "@sluice/core";
import { z } from "zod";

const input = z.strictObject({
  file: z.string().endsWith("package.json").describe("A package.json of the workspace."),
  version: z.string().regex(/^\d+\.\d+\.\d+$/),
});
type Input = z.infer<typeof input>;

export const setVersion = defineTool<Input>({
  name: "SetVersion",
  description: "Sets the version in a package.json.",
  input,
  effect: "write", // runs alone, after an open record is committed
  // The accessed file, links resolved. The gate compares it with SetVersion(app/**) and the hard limits.
  subjects: ({ file }, workspace) => [{ kind: "path", real: realPath(file, workspace), access: "write" }],
  // The intent is recorded before the call runs, so that a later process can find out whether it took effect.
  prepare: (call, { workspace }) => {
    const file = realPath(call.file, workspace);
    return { file, before: digest(readFileSync(file, "utf8")), after: digest(withVersion(file, call.version)) };
  },
  execute: async (call, { workspace }) => {
    const file = realPath(call.file, workspace);
    const draft = `${file}.draft`;
    writeFileSync(draft, withVersion(file, call.version));
    renameSync(draft, file); // atomic
    return { ok: true, output: `${call.file} now has version ${call.version}.`, facts: { version: call.version } };
  },
  // Called if an earlier process may have executed the call. "unknown" is reported to the model, and the call is not repeated.
  recover: (intent) => {
    const now = digest(readFileSync(String(field(intent, "file")), "utf8"));
    if (now === field(intent, "after")) return "done";
    return now === field(intent, "before") ? "not_started" : "unknown";
  },
});

/** Throws for a missing file, which the gate treats as a hard limit. */
function realPath(file: string, { root }: Workspace): string {
  return realpathSync(resolve(root, file));
}

function withVersion(file: string, version: string): string {
  const manifest = parseJson(readFileSync(file, "utf8"));
  if (!manifest.ok || !isJsonObject(manifest.value)) throw new Error(`${file} is not a package.json`);
  return `${JSON.stringify({ ...manifest.value, version }, null, 2)}\n`;
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
