import { visible } from "@sluice/core";
import type { CommandContext } from "../../command-context.ts";
import type { OutputFormat } from "../../output/formats.ts";
import { commandLine, projectPathsOf } from "../../project/project-paths.ts";
import { executeRun } from "../../runs/execute-run.ts";
import { DEMO_TASK, demoFolder, demoPlan, SAMPLE } from "./demo-run.ts";
import { folderDiff, paintedDiff } from "./diff.ts";

export interface DemoRequest {
  readonly flags: { readonly outputFormat: OutputFormat; readonly keep?: boolean };
}

/** `sluice demo`: codeReview on a copy of the sample repository, with a model that is a script. */
export async function demo({ flags }: DemoRequest, context: CommandContext): Promise<number> {
  const { terminal, env, here } = context;
  const { outputFormat, keep = false } = flags;
  const folder = demoFolder(keep);
  const place = projectPathsOf({ cwd: folder }, here);
  const say = (text: string): void => (outputFormat === "text" ? terminal.out(text) : undefined);
  say(
    [
      "This demo is offline: no key, no network. The model is a script that plays the same turns every time; the pipeline,",
      "its gate, the tools, the files and the journal are the real ones.",
      "",
      `  pipeline    codeReview: plan, then execute, then review`,
      `  workspace   ${folder} (a copy of the sample repository)`,
      `  task        ${DEMO_TASK}`,
      "",
      "",
    ].join("\n"),
  );
  const { report, exitCode } = await executeRun(
    {
      place,
      flags: { outputFormat, headless: true },
      plan: demoPlan(),
      extraJson: { demo: { folder, store: place.store } },
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
      `  ${visible(commandLine(["run", "codeReview", "<what to do>", "--model", "anthropic/<model>", "--cwd", "<a repository of yours>"], projectPathsOf({}, here), here, env))}`,
      `  ${visible(commandLine([], projectPathsOf({}, here), here, env))}  (without a command: the app in the terminal)`,
      "",
    ].join("\n"),
  );
  return exitCode;
}
