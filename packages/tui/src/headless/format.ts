/** How a command writes its result. */
export const OUTPUT_FORMATS = ["text", "json", "stream-json"] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

/** The format asked for, from raw arguments: also for those that could not be understood otherwise. */
export function formatIn(args: readonly string[]): OutputFormat {
  let format: OutputFormat = "text";
  for (const [at, word] of args.entries()) {
    if (word === "--") break;
    const given = word === "--output-format" ? args[at + 1] : /^--output-format=(.*)$/s.exec(word)?.[1];
    format = OUTPUT_FORMATS.find((known) => known === given) ?? format;
    if (word === "--json" && args[0] === "audit") format = "json";
  }
  return format;
}
