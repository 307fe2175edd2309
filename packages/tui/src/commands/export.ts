import { resolve } from "node:path";
import type { Command, Steering } from "../app/command.ts";
import type { KnownRun } from "../app/engine.ts";
import { confirmation } from "../app/overlay/question.ts";

export const exportRun: Command = {
  name: "export",
  description: "export a run's record to a self-verifying file, like sluice export",
  usage: "[run] [file]",
  takes: [{ kind: "run", optional: true }],
  run: async (words, app) => {
    const [, first = "", second = ""] = /^(\S*)\s*(.*)$/s.exec(words.trim()) ?? [];
    // A single word can be a run or a file.
    const isFile = second === "" && /[./\\]/.test(first);
    const run = await app.named(isFile ? "" : first);
    const file = resolve(app.here, (isFile ? first : second) || app.engine.exportName(run.runId));
    if (await write(app, run, file, false)) return;
    const replace = async (): Promise<void> => void (await write(app, run, file, true));
    const choices = ["No, keep it", "Yes, replace it"] as const;
    app.ask(
      confirmation("This file already exists. Replace it?", [file], choices, (yes) => {
        if (yes) void app.perform(replace);
      }),
    );
  },
};

/** Writes the file, unless it exists and `force` is not set. Returns whether it did. */
async function write(app: Steering, run: KnownRun, file: string, force: boolean): Promise<boolean> {
  const written = await app.engine.export(run, file, force);
  if (written === undefined) return false;
  app.say(written.lines.join("\n"), "good");
  if (written.damage !== undefined) app.say(written.damage, "bad");
  return true;
}
