// The lines of a user's code around the place of a failure. They may hold anything that a file holds.
import { readFileSync, realpathSync, statSync } from "node:fs";
import { extname, resolve } from "node:path";
import { isSluiceError, type SourcePlace } from "@sluice/core";
import { excerptOf, messageOf, parsePlace, pathInside, placeText, sourcePlaceOf, visible } from "@sluice/core/runtime";
import { withCode } from "@sluice/view/words";

/** Larger files are not read: a failure must not cost more than the work. */
const MOST_BYTES = 1_000_000;

/**
 * The line of a place and its neighbours, with a caret, in lines that are safe to print. `clean` masks secrets. Undefined unless
 * the file is inside one of the folders, after links are resolved, and has that line.
 */
export function sourceFrame(
  { file, line, column }: SourcePlace,
  folders: readonly string[],
  clean: (text: string) => string,
): string | undefined {
  const text = textOf(file, folders);
  if (text === undefined) return undefined;
  const before = text.split("\n");
  const lines = clean(text).split("\n");
  const source = lines[line - 1];
  if (source === undefined || source.trim() === "" || lines.length !== before.length) return undefined;
  const width = `${line + 1}`.length;
  const at = column - 1;
  // Behind a masked secret the columns differ.
  const hasColumn = at <= source.length && source.slice(0, at) === before[line - 1]?.slice(0, at);
  const rows = [line - 1, line, line + 1].flatMap((number) => {
    const one = lines[number - 1]?.replace(/\r$/u, "");
    if (one === undefined || (number !== line && one.trim() === "")) return [];
    const { shown, caret } = excerptOf(one, hasColumn ? at : 0, 1);
    const row = `${number === line ? ">" : " "} ${`${number}`.padStart(width)} | ${shown}`.trimEnd();
    return number === line && hasColumn ? [row, `  ${" ".repeat(width)} | ${caret}`] : [row];
  });
  return rows.join("\n");
}

/** The extensions of code that Node runs. */
const CODE = /^\.[cm]?[jt]sx?$/u;

/**
 * The same for a recorded place, `src/pipeline.ts:41:9`, in the workspace of its run. Only of code: the text of an error may name
 * any file, such as one with keys.
 */
export function frameAt(at: string, workspace: string, clean: (text: string) => string): string | undefined {
  const place = parsePlace(at);
  if (place === undefined || !CODE.test(extname(place.file))) return undefined;
  return sourceFrame({ ...place, file: resolve(workspace, place.file) }, [workspace], clean);
}

/** The lines around the place of an error; "" if there are none. An error may bring its own, which may hold anything. */
export function frameOf(place: SourcePlace, workspace: string, clean: (text: string) => string): string {
  if (place.frame !== undefined) return visible(clean(place.frame));
  return sourceFrame(place, [workspace], clean) ?? "";
}

/** An error as people read it: its message, and where in the workspace's code it was thrown. */
export function failureText(thrown: unknown, workspace: string, clean: (text: string) => string): string {
  const message = isSluiceError(thrown) ? withCode({ code: thrown.code, message: thrown.message }) : messageOf(thrown);
  const place = isSluiceError(thrown) ? thrown.at : sourcePlaceOf(thrown);
  if (place === undefined) return message;
  const frame = frameOf(place, workspace, clean);
  return `${message}\nat ${placeText(place, workspace)}${frame === "" ? "" : `\n${frame}`}`;
}

function textOf(file: string, folders: readonly string[]): string | undefined {
  try {
    const path = realpathSync(file);
    if (!folders.some((folder) => pathInside(path, realpathSync(folder)) !== undefined)) return undefined;
    const { size } = statSync(path);
    return size > MOST_BYTES || !statSync(path).isFile() ? undefined : readFileSync(path, "utf8");
  } catch {
    // A file that is gone or cannot be read has no lines to show.
    return undefined;
  }
}
