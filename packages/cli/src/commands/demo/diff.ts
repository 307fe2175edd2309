import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { visible } from "@sluice/core";
import type { Tone } from "@sluice/view/words";
import { createTwoFilesPatch } from "diff";
import type { Terminal } from "../../output/terminal.ts";

/** The unified diff between two folders of text files. What lies in a folder whose name begins with a dot does not count. */
export function folderDiff(before: string, after: string): string {
  const paths = [...new Set([...filesOf(before), ...filesOf(after)])].sort();
  return paths
    .filter((path) => contentOf(before, path) !== contentOf(after, path))
    .map((path) => patchOf(path, contentOf(before, path), contentOf(after, path)))
    .join("");
}

function patchOf(path: string, before: string | undefined, after: string | undefined): string {
  const from = before === undefined ? "/dev/null" : `a/${path}`;
  const to = after === undefined ? "/dev/null" : `b/${path}`;
  return createTwoFilesPatch(from, to, before ?? "", after ?? "", undefined, undefined, { context: 3 }).replace(
    /^=+\n/,
    "",
  );
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

/** A diff as a person is shown it. */
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
