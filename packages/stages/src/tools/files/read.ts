import type { TextMask, ToolResult, ToolSpec } from "@sluice/core";
import { maskedCut, NO_MASK } from "../../secrets/cut-text.ts";
import { READ_CHARACTERS, READ_FACTS, READ_LINE_CHARACTERS, READ_LINES, type ReadInput } from "../builtin-facts.ts";
import { readUpTo, withFile } from "./open.ts";
import { displayPath, fileSubjects, judgedPath } from "./paths.ts";
import { asFailure, failure } from "./results.ts";
import {
  clippedLine,
  count,
  isBinary,
  isCrlf,
  MAX_FILE_BYTES,
  numbered,
  sha256,
  splitLines,
  textOfCut,
  withRemarks,
} from "./text.ts";

const PERCENT = 0x25;

export const readTool: ToolSpec<ReadInput> = {
  ...READ_FACTS,
  subjects: (read, workspace) => fileSubjects(read.file_path, "read", workspace),
  execute: async (read, call) => {
    let shown = read.file_path;
    try {
      const real = judgedPath(read.file_path, "read", call);
      shown = displayPath(real, call.workspace);
      return await withFile(real, async (file) => {
        const bytes = await readUpTo(file, MAX_FILE_BYTES + 1, call.signal);
        const size = Number(file.stats.size);
        const isText = !isBinary(bytes);
        // Images and documents have binary data, or begin with `%PDF`.
        const media = isText && bytes[0] !== PERCENT ? undefined : await import("./media.ts");
        return (
          media?.showMedia(bytes, size, shown, call) ??
          show(bytes, isText, { size, real, shown, read, secrets: call.secrets })
        );
      });
    } catch (thrown) {
      return asFailure(thrown, shown);
    }
  },
};

interface ReadFile {
  readonly size: number;
  readonly real: string;
  readonly shown: string;
  readonly read: ReadInput;
  readonly secrets: TextMask | undefined;
}

function show(bytes: Buffer, isText: boolean, { size, real, shown, read, secrets }: ReadFile): ToolResult {
  const whole = bytes.length <= MAX_FILE_BYTES;
  const part = whole ? bytes : bytes.subarray(0, MAX_FILE_BYTES);
  if (!isText) return failure("binary_file", `${shown} contains binary data (${size} bytes). Read shows only text.`);
  // Only a file that was read completely may be edited: Edit compares this hash.
  const notes = whole ? { notes: { [real]: sha256(bytes) } } : {};
  const facts = { path: shown, bytes: part.length };
  if (bytes.length === 0) return { ok: true, output: `${shown} is empty.`, ...notes, facts };
  const text = textOfCut(part, !whole);
  const lines = whole ? splitLines(text) : withCutEnd(splitLines(text), secrets ?? NO_MASK);
  const first = read.offset ?? 1;
  if (first > lines.length) {
    return failure("offset_past_end", `${shown} has ${count(lines.length, "line")}; offset ${first} is past the end.`, {
      lines: lines.length,
    });
  }
  const page = pageOf(lines, first, read.limit ?? READ_LINES, secrets);
  const last = first + page.length - 1;
  const remarks = [
    ...(last < lines.length || first > 1
      ? [`Lines ${first} to ${last} of ${lines.length}${whole ? "" : " or more"} are shown.`]
      : []),
    ...(last < lines.length ? [`Continue with offset ${last + 1}.`] : []),
    ...(whole
      ? []
      : [
          `The file has ${size} bytes. Only the first ${MAX_FILE_BYTES} can be shown. Use Grep to search the whole file.`,
        ]),
    ...(isCrlf(text) ? ["Its lines end with CR LF."] : []),
    ...(text.includes("\uFFFD") ? ["Bytes that are not UTF-8 are shown as \uFFFD."] : []),
  ];
  const output = withRemarks(page.join("\n"), remarks);
  return { ok: true, output, ...notes, facts: { ...facts, lines: page.length } };
}

/** Lines of which the last one continues in the file. */
function withCutEnd(lines: readonly string[], secrets: TextMask): readonly string[] {
  return [...lines.slice(0, -1), ...lines.slice(-1).map((last) => maskedCut(last, secrets))];
}

function pageOf(
  lines: readonly string[],
  first: number,
  limit: number,
  secrets: TextMask | undefined,
): readonly string[] {
  const page: string[] = [];
  let characters = 0;
  for (let number = first; number < first + limit && number <= lines.length; number += 1) {
    const line = numbered(clipped((lines[number - 1] ?? "").replace(/\r$/, ""), secrets), number);
    characters += line.length + 1;
    if (characters > READ_CHARACTERS && page.length > 0) break;
    page.push(line);
  }
  return page;
}

function clipped(line: string, secrets: TextMask | undefined): string {
  if (line.length <= READ_LINE_CHARACTERS) return line;
  const head = clippedLine(line, READ_LINE_CHARACTERS, secrets);
  return `${head}… [${count(line.length - head.length, "more character")}]`;
}
