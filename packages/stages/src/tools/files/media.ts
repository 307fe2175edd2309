import { count } from "./results.ts";

/** Larger files are not shown: providers refuse them. */
export const MAX_MEDIA_BYTES = 5 * 1024 * 1024;

const startsWith = (bytes: Buffer, text: string, at = 0): boolean =>
  bytes.subarray(at, at + text.length).equals(Buffer.from(text, "latin1"));

/** The type of an image or a document by its first bytes, whatever its name says; undefined for other files. SVG is text. */
export function mediaTypeOf(bytes: Buffer): string | undefined {
  if (startsWith(bytes, "\x89PNG\r\n\x1a\n")) return "image/png";
  if (startsWith(bytes, "\xff\xd8\xff")) return "image/jpeg";
  if (startsWith(bytes, "GIF87a") || startsWith(bytes, "GIF89a")) return "image/gif";
  if (startsWith(bytes, "RIFF") && startsWith(bytes, "WEBP", 8)) return "image/webp";
  return startsWith(bytes, "%PDF-") ? "application/pdf" : undefined;
}

/** Such as `image/png, 12,345 bytes`. */
export function mediaWords(mediaType: string, bytes: number): string {
  return `${mediaType}, ${count(bytes, "byte")}`;
}
