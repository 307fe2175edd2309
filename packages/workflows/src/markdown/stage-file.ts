import type { TextPlace } from "@sluice/core";
import type { Diagnostic, Position } from "../diagnostic.ts";
import { textFault } from "../read/limits.ts";
import { createPositions } from "../read/positions.ts";
import { readSource, type SourceFile } from "../read/source.ts";

/** A stage's file: YAML frontmatter between two lines `---`, and its body. */
export interface StageFile {
  /** The frontmatter. Its positions are those in the file. */
  readonly header: SourceFile;
  /** The body, with line feeds only and without blank lines around it. */
  readonly prompt: string;
  /** Where in the file a part of the prompt is. */
  promptAt(place: TextPlace): Position;
}
export interface StageReading {
  /** Absent if the file cannot be read. */
  readonly stage?: StageFile;
  readonly diagnostics: readonly Diagnostic[];
}

const FENCE = /^---[ \t]*$/;

/** Reads a stage's file within the limits of workflow files. A file that cannot be read gives one diagnostic. */
export function readStageFile(file: string, given: string): StageReading {
  const text = given.replace(/^\uFEFF/, "");
  const error = (rule: string, message: string, suggestion: string | undefined, position: Position): StageReading => {
    const hint = suggestion === undefined ? {} : { suggestion };
    return { diagnostics: [{ severity: "error", rule, message, ...hint, path: "", file, ...position }] };
  };
  const fault = textFault(text);
  if (fault !== undefined) {
    const position = createPositions(text).between(fault.start, fault.end);
    return error(fault.rule, fault.message, fault.suggestion, position);
  }
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const opening = { line: 1, column: 1, length: Math.max(1, (lines[0] ?? "").length) };
  if (!FENCE.test(lines[0] ?? ""))
    return error("frontmatter", "The file does not begin with frontmatter.", "begin with a line ---", opening);
  const end = lines.findIndex((line, index) => index > 0 && FENCE.test(line));
  if (end === -1) return error("frontmatter", "The frontmatter is never closed.", "end it with a line ---", opening);
  // An empty line in place of the fence keeps the numbers of the lines.
  const header = ["", ...lines.slice(1, end)].join("\n");
  const { source, diagnostics } = readSource(file, header.trim() === "" ? "{}" : header);
  if (source === undefined) return { diagnostics };
  const body = lines.slice(end + 1);
  const first = Math.max(
    0,
    body.findIndex((line) => line.trim() !== ""),
  );
  const prompt = body.slice(first).join("\n").trimEnd();
  const positions = createPositions(prompt);
  const promptAt = ({ offset, length }: TextPlace): Position => {
    const { line, ...rest } = positions.between(offset, offset + length);
    return { ...rest, line: line + end + 1 + first };
  };
  return { stage: { header: source, prompt, promptAt }, diagnostics };
}
