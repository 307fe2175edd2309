import { done, pipeline, stage } from "@sluice/core";
import { createSession } from "@sluice/stages";
import { expect, test } from "vitest";
import { z } from "zod";
import { talker } from "../support/talker.ts";
import { tempFolder } from "../support/tools.ts";

// An output that is cut in the middle of a secret, of which no part may remain.

const KEY = "c4stle-of-sand-and-glass";

test.each([14_980, 14_990, 14_999])(
  "a key that the cut of an output at character 15,000 would halve is masked whole: it begins at %i",
  async (at) => {
    const folder = tempFolder();
    folder.put("long.txt", `${"x".repeat(at)}${KEY}${"y".repeat(60_000)}`);
    const model = talker(({ turn }) =>
      turn === 0
        ? { calls: [{ tool: "Bash", input: { command: "cat long.txt" } }] }
        : { calls: [{ tool: "submit", input: { text: "done" } }] },
    );
    const work = stage({
      prompt: "Look.",
      completionTool: "submit",
      completionSchema: z.object({ text: z.string() }),
      turnCap: 3,
      allowedTools: ["Bash"],
    });
    const made = pipeline({
      id: "cut",
      input: z.object({ task: z.string() }),
      stages: { work },
      initial: "work",
      next: { work: () => done(null) },
    });
    const env = { PATH: process.env.PATH, SOME_API_KEY: KEY };
    const session = createSession({ model, cwd: folder.root, env, sandbox: "off" });
    expect(await session.run(made, { task: "x" })).toMatchObject({ status: "completed", denied: [] });
    const read = JSON.stringify(model.heard.at(-1)?.messages);
    expect(read).toContain("characters omitted");
    for (let length = 6; length <= KEY.length; length += 1) {
      expect(read).not.toContain(KEY.slice(0, length));
      expect(read).not.toContain(KEY.slice(-length));
    }
    await session.close();
  },
);
