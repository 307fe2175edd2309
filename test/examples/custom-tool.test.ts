import { createHash } from "node:crypto";
import type { ToolSpec } from "@sluice/core";
import { expect, test } from "vitest";
import { z } from "zod";
import { setVersion } from "../../examples/set-version.ts";
import { stageIn, tempFolder } from "../support/tools.ts";

const nothing: ToolSpec<null> = {
  name: "Nothing",
  description: "Does nothing.",
  input: z.null(),
  effect: "read",
  subjects: () => [],
  execute: () => Promise.resolve({ ok: true, output: "" }),
};
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

test.each([
  ["done", "after"],
  ["not_started", "before"],
  ["unknown", "something else"],
])("after a crash the custom tool answers %s when the file holds %s", async (answer, content) => {
  const folder = tempFolder();
  const file = folder.put("package.json", content);
  const { call } = stageIn(folder).judge(nothing, null);
  const intent = { file, before: sha256("before"), after: sha256("after") };
  expect(await setVersion.recover?.(intent, call)).toBe(answer);
});

test("the custom tool does not take a file that is no package.json", async () => {
  expect(await setVersion.bind({ file: "src/main.js", version: "1.0.0" })).toMatchObject({ ok: false });
});
