import { visible } from "@sluice/core/runtime";
import type { Tone } from "@sluice/view/words";
import { createTwoFilesPatch } from "diff/lib/patch/create.js";
import type { Terminal } from "./terminal.ts";

/** The unified diff of one file; undefined is a file that does not exist. Empty if nothing differs. */
export function fileDiff(
  names: { readonly old: string; readonly now: string },
  before?: string,
  after?: string,
): string {
  if (before === after) return "";
  const from = before === undefined ? "/dev/null" : names.old;
  const to = after === undefined ? "/dev/null" : names.now;
  const patch = createTwoFilesPatch(from, to, before ?? "", after ?? "", undefined, undefined, { context: 3 });
  return patch.replace(/^=+\n/, "");
}

export function paintedDiff(diff: string, terminal: Terminal): string {
  return diff
    .split("\n")
    .map((line) => terminal.paint("out", toneOf(line), visible(line)))
    .join("\n");
}

function toneOf(line: string): Tone {
  if (line.startsWith("+++") || line.startsWith("---")) return "strong";
  if (line.startsWith("@@")) return "name";
  if (line.startsWith("+")) return "good";
  return line.startsWith("-") ? "bad" : "plain";
}
