import { cpSync, lstatSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadCodeReview } from "@sluice/stages/runtime";
import { ownFile } from "../../options.ts";
import type { RunPlan } from "../../runs/run-plan.ts";

/** The unchanged sample repository. */
export const SAMPLE = ownFile("sample/repository/");
const SCRIPT = ownFile("sample/demo-script.json");
export const DEMO_TASK =
  'parseDuration("1h 30m") is an hour: everything after the first unit is dropped. It must be 90 minutes.';

const TEMPORARY = "sluice-demo-";
const KEPT = "sluice-kept-demo-";
const ONE_DAY_MS = 86_400_000;

/** A copy of the sample repository in a temporary folder, which a later demo deletes after a day unless `keep` is set. */
export function demoFolder(keep: boolean): string {
  removeOldDemos();
  const folder = realpathSync(mkdtempSync(join(tmpdir(), keep ? KEPT : TEMPORARY)));
  cpSync(SAMPLE, folder, { recursive: true });
  return folder;
}

/** codeReview with a scripted model. */
export async function demoPlan(): Promise<RunPlan> {
  const codeReview = await loadCodeReview();
  const source = { kind: "bundled", name: "codeReview" } as const;
  return {
    name: source.name,
    code: [],
    model: { id: `scripted:${SCRIPT}` },
    mode: "ask",
    allow: [],
    config: undefined,
    resumed: false,
    spec: codeReview.spec,
    begin: (session) => session.start(codeReview, { task: DEMO_TASK }, { source }),
  };
}

/** Deletes temporary demo folders of this user that are older than a day. */
function removeOldDemos(): void {
  const own = process.getuid?.();
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(TEMPORARY)) continue;
    const path = join(tmpdir(), name);
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat?.isDirectory() !== true || (own !== undefined && stat.uid !== own)) continue;
    if (Date.now() - stat.mtimeMs > ONE_DAY_MS) rmSync(path, { recursive: true, force: true });
  }
}
