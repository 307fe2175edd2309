import { spawnSync } from "node:child_process";
import { join } from "node:path";

/** Some tests start what is built: without changes this takes a tenth of a second. */
export function setup(): void {
  const script = join(import.meta.dirname, "../../scripts/bundle.mjs");
  const { status, stderr } = spawnSync(process.execPath, [script], { encoding: "utf8" });
  if (status !== 0) throw new Error(`the packages cannot be bundled:\n${stderr}`);
}
