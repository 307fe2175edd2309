import { lstatSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { COMMANDS_FOLDER } from "@sluice/core/runtime";

/** What the record of a command says that had begun when nothing was at these paths. */
export interface LeftCommand {
  readonly root: string;
  /** Folders that it could write. */
  readonly tops: readonly string[];
  readonly paths: readonly string[];
}

/** Puts the record of a command of a process that is gone into a store. */
export function putRecord(store: string, { root, tops, paths }: LeftCommand): void {
  const { dev, ino } = lstatSync(root);
  const lists = { marks: [], holders: [], repository: [], paths: paths.map((path) => [path, ""]) };
  putRecordText(store, JSON.stringify({ root: [root, `${dev}:${ino}`], tops, ...lists }));
}

/** The same, with what the record says. */
export function putRecordText(store: string, text: string): void {
  const folder = join(store, COMMANDS_FOLDER);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "1-1-00000000-0000-4000-8000-000000000000"), text);
}
