import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { visible } from "@sluice/core/runtime";
import type { CommandContext } from "../../command-context.ts";
import { fileDiff, paintedDiff } from "../../output/diff.ts";
import type { OutputFormat } from "../../output/formats.ts";
import { commandLine, projectPathsOf } from "../../project/project-paths.ts";
import { executeRun } from "../../runs/execute-run.ts";
import { DEMO_TASK, demoFolder, demoPlan, SAMPLE } from "./demo-run.ts";

/** `sluice demo`: runs codeReview on a copy of the sample repository with a scripted model. */
export async function demo(
  context: CommandContext,
  { outputFormat, keep = false }: { readonly outputFormat: OutputFormat; readonly keep?: boolean },
): Promise<number> {
  const { terminal, env, here } = context;
  const folder = demoFolder(keep);
  const place = projectPathsOf({ cwd: folder }, here);
  const say = (text: string): void => (outputFormat === "text" ? terminal.out(text) : undefined);
  say(
    [
      "This demo is offline: no key, no network. The model is a script that plays the same turns every time; the pipeline,",
      "the permission gate, the tools, the files and the journal are real.",
      "",
      "  pipeline    codeReview: plan, then execute, then review",
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
      plan: await demoPlan(),
      extraJson: { demo: { folder, store: place.store } },
    },
    context,
  );
  const line = (...words: readonly string[]): string => visible(commandLine(words, place, here, env));
  const lineHere = (...words: readonly string[]): string =>
    visible(commandLine(words, projectPathsOf({}, here), here, env));
  const runId = report.runId ?? "";
  say(
    [
      "",
      "Changes in the workspace:",
      "",
      paintedDiff(folderDiff(SAMPLE, folder), terminal),
      `The journal of the run is in ${place.store}`,
      keep
        ? "The folder is kept."
        : "The folder is temporary: a later demo deletes it after a day. Use --keep to keep it.",
      "",
      "Try next:",
      `  ${line("audit", runId, "--verify")}`,
      `  ${line("show", runId)}`,
      `  ${lineHere("run", "codeReview", "<task>", "--model", "anthropic/<model>", "--cwd", "<your repository>")}`,
      `  ${lineHere()}  (without a command: the app)`,
      "",
    ].join("\n"),
  );
  return exitCode;
}

/** The unified diff between two folders of text files, without folders whose names begin with a dot. */
function folderDiff(before: string, after: string): string {
  const paths = new Set([...filesOf(before), ...filesOf(after)]);
  return [...paths]
    .sort()
    .map((path) => {
      const [old, now] = [contentOf(before, path), contentOf(after, path)];
      return fileDiff({ old: `a/${path}`, now: `b/${path}` }, old, now);
    })
    .join("");
}

function filesOf(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .filter((path) => !path.split(/[\\/]/).some((part) => part.startsWith(".")));
}

function contentOf(folder: string, path: string): string | undefined {
  const file = join(folder, path);
  return existsSync(file) ? readFileSync(file, "utf8") : undefined;
}
