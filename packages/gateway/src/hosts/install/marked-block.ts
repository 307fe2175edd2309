// A block of lines in a file whose format has # comments, between two marker lines.

const BEGIN = "# sluice: begin (added by sluice hook install; removed by sluice hook remove)";
const END = "# sluice: end";

/** Appends a block. Lines before it stay as they are. */
export function withBlock(text: string, lines: readonly string[]): string {
  const clean = withoutBlock(text);
  const gap = clean === "" || clean.endsWith("\n") ? "" : "\n";
  return `${clean}${gap}${[BEGIN, ...lines, END].join("\n")}\n`;
}

export function withoutBlock(text: string): string {
  const start = text.indexOf(BEGIN);
  if (start < 0) return text;
  const end = text.indexOf(END, start);
  // Without its end, it is unknown where the block stops, so it stays.
  if (end < 0) return text;
  const rest = text.slice(end + END.length);
  return text.slice(0, start) + rest.replace(/^\r?\n/, "");
}
