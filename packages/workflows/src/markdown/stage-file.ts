import { isJsonObject } from "@sluice/core";
import type { Position } from "../diagnostic.ts";
import { textFault } from "../read/limits.ts";
import { createPositions } from "../read/positions.ts";
import type { Finding } from "../read/shape.ts";
import { readSource, type SourceFile } from "../read/source.ts";

export interface StageReading {
  /** The frontmatter, with the body as its field `prompt`. Absent if the file cannot be read. */
  readonly source?: SourceFile;
  readonly findings: readonly Finding[];
}

const FENCE = /^---[ \t]*$/;

/**
 * Reads a stage's file, within the limits of workflow files: YAML frontmatter between two lines `---`, then the prompt. Positions
 * are those in the file. A file that cannot be read gives one finding.
 */
export function readStageFile(file: string, given: string): StageReading {
  const text = given.replace(/^\uFEFF/, "");
  const refused = (finding: Omit<Finding, "severity" | "path" | "source">, position: Position): StageReading => ({
    findings: [{ severity: "error", ...finding, path: [], source: { file, text, value: null, at: () => position } }],
  });
  const fault = textFault(text);
  if (fault !== undefined) {
    const { start, end, ...finding } = fault;
    return refused(finding, createPositions(text).between(start, end));
  }
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const top = { line: 1, column: 1, length: Math.max(1, (lines[0] ?? "").length) };
  if (!FENCE.test(lines[0] ?? ""))
    return refused(
      {
        rule: "frontmatter",
        message: "The file does not begin with frontmatter.",
        suggestion: "begin with a line ---",
      },
      top,
    );
  const end = lines.findIndex((line, index) => index > 0 && FENCE.test(line));
  if (end === -1)
    return refused(
      { rule: "frontmatter", message: "The frontmatter is never closed.", suggestion: "end it with a line ---" },
      top,
    );
  // An empty line in place of the first fence keeps the numbers of the lines.
  const header = ["", ...lines.slice(1, end)].join("\n");
  const { source, diagnostics } = readSource(file, header.trim() === "" ? "{}" : header);
  const [first] = diagnostics;
  if (source === undefined) return first === undefined ? { findings: [] } : refused(first, first);
  if (!isJsonObject(source.value) && source.value !== null)
    return refused({ rule: "frontmatter", message: "The frontmatter is not a mapping of fields." }, source.at([]));
  const body = bodyOf(lines, end + 1);
  const value = { ...(isJsonObject(source.value) ? source.value : {}), prompt: body.prompt };
  const findings: readonly Finding[] =
    isJsonObject(source.value) && Object.hasOwn(source.value, "prompt")
      ? [{ ...PROMPT_IN_HEADER, path: ["prompt"], source }]
      : [];
  return {
    source: {
      file,
      text,
      value,
      at: (path, what, offset, length) => {
        if (path.length === 0) return top;
        if (path[0] !== "prompt") return source.at(path, what, offset, length);
        const start = offset ?? 0;
        return body.at(start, start + (length ?? 1));
      },
    },
    findings,
  };
}

const PROMPT_IN_HEADER = {
  severity: "error",
  rule: "unknown-key",
  message: "The prompt is the text below the frontmatter.",
  suggestion: "move it there",
  what: "key",
} as const;

/** The prompt without blank lines around it, and where its parts are in the file. */
function bodyOf(lines: readonly string[], from: number) {
  const body = lines.slice(from);
  const blank = Math.max(
    0,
    body.findIndex((line) => line.trim() !== ""),
  );
  const prompt = body.slice(blank).join("\n").trimEnd();
  const positions = createPositions(prompt);
  return {
    prompt,
    at: (start: number, end: number): Position => {
      const { line, ...rest } = positions.between(start, end);
      return { line: line + from + blank, ...rest };
    },
  };
}
