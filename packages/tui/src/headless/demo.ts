import { cpSync, lstatSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { visible } from "@sluice/core";
import { codeReview } from "@sluice/stages";
import { commandLine, placeOf } from "../project/place.ts";
import type { CommandContext } from "./context.ts";
import { folderDiff, paintedDiff } from "./diff.ts";
import type { OutputFormat } from "./format.ts";
import { work } from "./work.ts";

const SAMPLE = fileURLToPath(new URL("../../sample/repository/", import.meta.url));
const SCRIPT = fileURLToPath(new URL("../../sample/demo-script.json", import.meta.url));
const TASK = 'parseDuration("1h 30m") is an hour: everything after the first unit is dropped. It must be 90 minutes.';

const TEMPORARY = "sluice-demo-";
const KEPT = "sluice-kept-demo-";
const ONE_DAY_MS = 86_400_000;

export interface DemoRequest {
  readonly flags: { readonly outputFormat: OutputFormat; readonly keep?: boolean };
}

/** `sluice demo`: codeReview on a copy of the sample repository, with a model that is a script. */
export async function demo({ flags }: DemoRequest, context: CommandContext): Promise<number> {
  const { terminal, env, here } = context;
  const { outputFormat, keep = false } = flags;
  removeOldDemos();
  const folder = realpathSync(mkdtempSync(join(tmpdir(), keep ? KEPT : TEMPORARY)));
  cpSync(SAMPLE, folder, { recursive: true });
  const place = placeOf({ cwd: folder }, here);
  const say = (text: string): void => (outputFormat === "text" ? terminal.out(text) : undefined);
  say(
    [
      "This demo is offline: no key, no network. The model is a script that plays the same turns every time; the pipeline,",
      "its gate, the tools, the files and the journal are the real ones.",
      "",
      `  pipeline    codeReview: plan, then execute, then review`,
      `  workspace   ${folder} (a copy of the sample repository)`,
      `  task        ${TASK}`,
      "",
      "",
    ].join("\n"),
  );
  const { report, exitCode } = await work(
    {
      place,
      flags: { outputFormat, headless: true },
      model: { id: `scripted:${SCRIPT}` },
      mode: "ask",
      allow: [],
      beside: { demo: { folder, store: place.store } },
      begin: (session) =>
        session.start(codeReview, { task: TASK }, { source: { kind: "bundled", name: "codeReview" } }),
    },
    context,
  );
  const line = (...words: readonly string[]): string => visible(commandLine(words, place, here, env));
  const runId = report.runId ?? "";
  say(
    [
      "",
      "What changed in the workspace:",
      "",
      paintedDiff(folderDiff(SAMPLE, folder), terminal),
      `The journal of the run is in ${place.store}`,
      `${keep ? "The folder stays." : "The folder is temporary: a demo tomorrow or later removes it; --keep makes one that stays."}`,
      "",
      "What to try next:",
      `  ${line("audit", runId, "--verify")}`,
      `  ${line("show", runId)}`,
      `  ${visible(commandLine(["run", "codeReview", "<what to do>", "--model", "anthropic/<model>", "--cwd", "<a repository of yours>"], placeOf({}, here), here, env))}`,
      "",
    ].join("\n"),
  );
  return exitCode;
}

/** Temporary demos of this user that are older than a day. */
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
