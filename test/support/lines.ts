import type { Subject } from "@sluice/core";
import { lineSubjects } from "../../packages/stages/src/tools/bash/language/line-subjects.ts";

/** What the gate is given of a command line in a stage that may not write, without a sandbox. */
export function lineIn(root: string, command: string, env: Readonly<Record<string, string>> = {}): readonly Subject[] {
  const PATH = process.env.PATH ?? "/usr/bin:/bin";
  return lineSubjects(command, { root }, { env: { PATH, LANG: "C.UTF-8", ...env }, mayWrite: false }, {});
}

/** The line that is written from what was judged; undefined where it could not be read. */
export function printedLine(subjects: readonly Subject[]): string | undefined {
  return subjects.find((subject) => subject.kind === "line")?.text;
}
