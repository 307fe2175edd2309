export type { Diagnostic, DocumentPath, Position } from "./diagnostic.ts";
export { readSource, type SourceFile, type SourceReading } from "./read/source.ts";
