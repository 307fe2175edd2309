import { type AnalyseOptions, analyseShell, type ShellCommand } from "../../packages/stages/src/tools/shell/analyse.ts";

/** A command as one line: blanks in words stand as `_`, dynamic words stand in angle brackets. */
function shown(command: ShellCommand): string {
  const words = command.argv.map((word, at) => {
    const text = word.replace(/[ \n]/g, "_");
    return command.dynamic[at] === true ? `<${text.slice(1)}>` : text === "" ? "''" : text;
  });
  return words.join(" ");
}

function facts(line: string, options?: AnalyseOptions) {
  const found = analyseShell(line, options);
  if (!found.ok) throw new Error(`${found.code}: ${found.reason} in ${line}`);
  return found;
}

/** Every command of a line. */
export function commandsOf(line: string): readonly string[] {
  return facts(line).commands.map(shown);
}

/** Every command of a line with what it was found inside: `xargs > rm x`. */
export function nestedOf(line: string): readonly string[] {
  return facts(line).commands.map((command) => [...command.via, shown(command)].join(" > "));
}

/** Names changed in the environment, by command. */
export function assignmentsOf(line: string): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(facts(line).commands.map((command) => [shown(command), command.assignments]));
}

/** Every path of a line: `read src/a.ts`, `write? out/$x`, with the folder of a glob: `read? src/*.ts in src`. */
export function pathsOf(line: string, options?: AnalyseOptions): readonly string[] {
  return facts(line, options).paths.map(
    ({ access, dynamic, path, within }) =>
      `${access}${dynamic ? "?" : ""} ${path}${within === undefined ? "" : ` in ${within}`}`,
  );
}

/** Whether the line was understood and every command of it only reads. */
export function onlyReads(line: string, options?: AnalyseOptions): boolean {
  const found = analyseShell(line, options);
  return found.ok && found.commands.every((command) => command.readOnly);
}

/** Why a line was refused, or `ok`. */
export function refusal(line: string): string {
  const found = analyseShell(line);
  return found.ok ? "ok" : found.code;
}
