import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { type Ended, printed, textAt } from "../support/command.ts";
import { sluiceHere } from "../support/command-here.ts";
import { GOLDEN, PIPELINES } from "./fixtures.ts";
import { rewrite } from "./rewrite.ts";
import type { Turns } from "./script.ts";

/** A recorded case in a folder of its own, which is removed with the test. */
export interface Copy {
  readonly workspace: string;
  readonly store: string;
  /** The run that was started last. */
  readonly runId: string;
  /** Those that were there before. */
  readonly others: readonly string[];
  sluice(...args: readonly string[]): Promise<Ended>;
  script(turns: Turns): string;
}

/** A case as it was recorded, in this folder. */
export async function copyOf(recorded: string): Promise<Copy> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "sluice-golden-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const workspace = join(folder, "workspace");
  const store = join(folder, "store");
  cpSync(recorded, folder, { recursive: true });
  // Git keeps no empty folder.
  mkdirSync(workspace, { recursive: true });
  // Vitest loads the pipelines, and looks for a package beside them, unless it has loaded it before.
  mkdirSync(join(folder, "node_modules/@sluice"), { recursive: true });
  for (const name of ["core", "stages", "workflows"])
    symlinkSync(join(import.meta.dirname, "../../packages", name), join(folder, "node_modules/@sluice", name));
  for (const file of PIPELINES) cpSync(join(GOLDEN, file), join(workspace, file));
  const here = sluiceHere(workspace);
  const sluice: Copy["sluice"] = (...args) => here([...args, "--store", store]);
  const { runs } = printed(await sluice("runs", "--output-format", "json"));
  const [runId = "", ...others] = Array.isArray(runs) ? runs.map((run) => textAt(run, "runId")) : [];
  return {
    workspace,
    store,
    runId,
    others,
    sluice,
    script(turns) {
      writeFileSync(join(folder, "script.json"), JSON.stringify({ stages: turns }));
      return `scripted:${join(folder, "script.json")}`;
    },
  };
}

/** A case as it would have been recorded in the folder of this copy, where it can be resumed. */
export async function movedCopyOf(recorded: string): Promise<Copy> {
  const copy = await copyOf(recorded);
  const shown = printed(await copy.sluice("show", copy.runId, "--output-format", "json"));
  rewrite(copy.store, dirname(textAt(shown, "cwd")), dirname(copy.workspace));
  return copy;
}
