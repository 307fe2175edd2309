import { LINE_BUGS, type LineBug } from "./line-bugs.ts";
import { MACHINE_BUGS } from "./machine-bugs.ts";
import { WALL_BUGS, WALL_TESTS } from "./wall-bugs.ts";

/** What `npm run bugs` puts into a copy of the sources, by area. */
export const SEEDED_BUGS: Readonly<Record<string, readonly LineBug[]>> = {
  "command lines, gate and tool calls": LINE_BUGS,
  machine: MACHINE_BUGS,
  sandbox: WALL_BUGS.map((bug) => ({ ...bug, file: `stages/src/${bug.file}`, tests: WALL_TESTS })),
};
