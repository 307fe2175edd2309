import { resolve } from "node:path";
import { damagedText, exportName, writeExport, writtenText } from "../../work/export-file.ts";
import { replaceQuestion } from "../asking.ts";
import type { KnownRun } from "../engine.ts";
import type { Command, Steering } from "./command.ts";

export const exportRun: Command = {
  name: "export",
  description: "write a run's record to a file that verifies by itself, as sluice export does",
  usage: "[run] [file]",
  takes: [{ kind: "run", optional: true }],
  run: async (words, app) => {
    const [, first = "", second = ""] = /^(\S*)\s*(.*)$/s.exec(words.trim()) ?? [];
    // One word alone may be either.
    const isFile = second === "" && /[./\\]/.test(first);
    const run = await app.named(isFile ? "" : first);
    const file = resolve(app.here, (isFile ? first : second) || exportName(run.runId));
    if (await write(app, run, file, false)) return;
    const replace = async (): Promise<void> => void (await write(app, run, file, true));
    app.ask(replaceQuestion(file, () => void app.perform(replace)));
  },
};

/** Whether it was written: a file that is there stays, unless `force` is given. */
async function write(app: Steering, { runId, host }: KnownRun, file: string, force: boolean): Promise<boolean> {
  const written = await writeExport(host, runId, { file, force });
  if (written === undefined) return false;
  app.say(writtenText(written).join("\n"), "good");
  if (!written.verified) app.say(damagedText(runId), "bad");
  return true;
}
