import type { ToolCall, ToolResult } from "@sluice/core";
import { failure } from "./results.ts";
import { count, isBinary } from "./text.ts";

/** Larger files are not shown: providers refuse them. */
const MAX_MEDIA_BYTES = 5 * 1024 * 1024;

const startsWith = (bytes: Buffer, text: string, at = 0): boolean =>
  bytes.subarray(at, at + text.length).equals(Buffer.from(text, "latin1"));

/** The type of an image or a document by its first bytes, whatever its name says; undefined for other files. SVG is text. */
function mediaTypeOf(bytes: Buffer): string | undefined {
  if (startsWith(bytes, "\x89PNG\r\n\x1a\n")) return "image/png";
  if (startsWith(bytes, "\xff\xd8\xff")) return "image/jpeg";
  if (startsWith(bytes, "GIF87a") || startsWith(bytes, "GIF89a")) return "image/gif";
  if (startsWith(bytes, "RIFF") && startsWith(bytes, "WEBP", 8)) return "image/webp";
  return startsWith(bytes, "%PDF-") ? "application/pdf" : undefined;
}

/** Such as `image/png, 12,345 bytes`. */
function mediaWords(mediaType: string, bytes: number): string {
  return `${mediaType}, ${count(bytes, "byte")}`;
}

/** An image or a document, for a model that reads such files; undefined for a file that is shown as text. */
export function showMedia(
  bytes: Buffer,
  size: number,
  shown: string,
  { takes = [] }: ToolCall,
): ToolResult | undefined {
  const mediaType = mediaTypeOf(bytes);
  // A document without binary data can also be read as text.
  if (mediaType === undefined || !(takes.includes(mediaType) || isBinary(bytes))) return undefined;
  const what = `${shown} (${mediaWords(mediaType, size)})`;
  if (!takes.includes(mediaType))
    return failure("binary_file", `${what} cannot be shown: this model reads only text in results of tools.`);
  if (size > MAX_MEDIA_BYTES)
    return failure("file_too_large", `${what} cannot be shown: the limit is ${MAX_MEDIA_BYTES} bytes.`);
  const file = { name: shown, mediaType, data: bytes.toString("base64") };
  return { ok: true, output: `${what} is attached.`, files: [file], facts: { path: shown, bytes: size, mediaType } };
}
