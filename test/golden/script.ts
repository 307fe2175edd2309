import type { JsonObject } from "@sluice/core";

/** A scripted model's turns, by stage. */
export type Turns = Readonly<Record<string, readonly JsonObject[]>>;

/** A turn that calls one tool. */
export function turn(tool: string, input: JsonObject): JsonObject {
  return { calls: [{ tool, input }] };
}
/** The turn that ends a stage. */
export function finishes(text: string): JsonObject {
  return turn("finish", { text });
}
/** The turn that sends an event. */
export function sends(event: string, data: JsonObject = {}): JsonObject {
  return turn("transition", { event, data });
}
export function appends(line: string, file: string): JsonObject {
  return turn("Bash", { command: `echo ${line} >> ${file}` });
}
export function writes(path: string, content: string): JsonObject {
  return turn("Write", { file_path: path, content });
}
/** A turn whose answer is recorded: a model that is asked for it again writes a file. */
export const AGAIN = writes("asked-again.txt", "asked again\n");
