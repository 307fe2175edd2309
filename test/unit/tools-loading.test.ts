import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { tempFolder } from "../support/tools.ts";

function runWith(...call: readonly string[]): unknown {
  const folder = tempFolder();
  folder.put("a.txt", "text\n");
  const program = join(import.meta.dirname, "../fixtures/loads-bash.ts");
  const text = execFileSync(process.execPath, [program, ...call], { cwd: folder.root, encoding: "utf8" });
  return JSON.parse(text);
}

test("a run without Bash loads neither the sandbox nor the shell analyser", () => {
  expect(runWith("Read", "file_path", "a.txt")).toEqual({ status: "completed", loaded: [] });
});

test("a run with Bash loads both", () => {
  expect(runWith("Bash", "command", "ls")).toEqual({ status: "completed", loaded: ["line-subjects", "sandbox"] });
});
