import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

/** The programs that tests run and that a machine may lack; `.ci/run` installs them. */
const OPTIONAL = ["rg", "jq", "tree", "xxd", "file"];

/** The first optional program that a command line names and that this machine lacks. */
export function missingProgram(line: string): string | undefined {
  const words = line.split(/[\s|;&()'"]+/);
  return OPTIONAL.find((program) => words.includes(program) && !isInstalled(program));
}

function isInstalled(program: string): boolean {
  return (process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, program)));
}
