import { open } from "node:fs/promises";
import { resolve } from "node:path";
import { SluiceError, visibleJson } from "@sluice/core";
import type { Command } from "./command.ts";

export const exportRun: Command = {
  name: "export",
  description: "write a run's events to a file, as --output-format stream-json prints them",
  usage: "[run] [file]",
  takes: [{ kind: "run", optional: true }],
  run: async (words, app) => {
    const [first = "", second] = words.split(/\s+/, 2);
    const isFile = second === undefined && /[./\\]/.test(first);
    const { runId, host } = await app.named(isFile ? "" : first);
    const path = resolve(app.here, isFile ? first : (second ?? `${runId}.jsonl`));
    let lines = 0;
    const file = await openNew(path);
    try {
      for await (const event of host.events(runId, { children: true })) {
        await file.write(`${visibleJson({ ...event })}\n`);
        lines += 1;
      }
    } finally {
      await file.close();
    }
    app.say(`${lines} events of run ${runId} are in ${path}`, "good");
  },
};

/** Nothing is overwritten, and only its owner reads it. */
async function openNew(path: string): Promise<Awaited<ReturnType<typeof open>>> {
  try {
    return await open(path, "wx", 0o600);
  } catch (cause) {
    const why =
      cause instanceof Error && "code" in cause && cause.code === "EEXIST" ? "is there already" : String(cause);
    throw new SluiceError("Validation", "usage", `${path} ${why}; name another file: /export <run> <file>`, { cause });
  }
}
