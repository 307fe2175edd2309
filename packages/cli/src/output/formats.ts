export const OUTPUT_FORMATS = ["text", "json", "stream-json"] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

/** What `--json` means to the subcommands that have it. */
const JSON_OF: ReadonlyMap<string, OutputFormat> = new Map([
  ["audit", "json"],
  ["hook", "json"],
  ["serve", "stream-json"],
]);

/** Whether `--debug` or SLUICE_DEBUG asks for stacks and causes. */
export function debugIn(args: readonly string[], env: Readonly<Record<string, string | undefined>>): boolean {
  const end = args.indexOf("--");
  const words = end === -1 ? args : args.slice(0, end);
  return words.includes("--debug") || (env.SLUICE_DEBUG ?? "0") !== "0";
}

/** The value of `--cwd` in raw arguments: places in errors are relative to it. */
export function cwdIn(args: readonly string[]): string | undefined {
  for (const [index, word] of args.entries()) {
    if (word === "--") return undefined;
    const value = word === "--cwd" ? args[index + 1] : /^--cwd=(.*)$/s.exec(word)?.[1];
    if (value !== undefined) return value;
  }
  return undefined;
}

/** The requested format, from raw arguments: errors of invalid arguments are written in it, too. */
export function formatIn(args: readonly string[]): OutputFormat {
  let format: OutputFormat = "text";
  for (const [index, word] of args.entries()) {
    if (word === "--") break;
    const value = word === "--output-format" ? args[index + 1] : /^--output-format=(.*)$/s.exec(word)?.[1];
    format = OUTPUT_FORMATS.find((known) => known === value) ?? format;
    if (word === "--json") format = JSON_OF.get(args[0] ?? "") ?? format;
  }
  return format;
}
