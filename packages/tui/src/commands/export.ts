import { resolve } from "node:path";
import type { KnownRun } from "../app/engine.ts";
import { replaceQuestion } from "../app/overlay/question.ts";
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
    const file = resolve(app.here, (isFile ? first : second) || app.engine.exportName(run.runId));
    if (await write(app, run, file, false)) return;
    const replace = async (): Promise<void> => void (await write(app, run, file, true));
    app.ask(replaceQuestion(file, () => void app.perform(replace)));
  },
};

/** Whether it was written: a file that is there stays, unless `force` is given. */
async function write(app: Steering, run: KnownRun, file: string, force: boolean): Promise<boolean> {
  const written = await app.engine.export(run, file, force);
  if (written === undefined) return false;
  app.say(written.lines.join("\n"), "good");
  if (written.damage !== undefined) app.say(written.damage, "bad");
  return true;
}
