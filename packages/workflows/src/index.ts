export type { Diagnostic } from "./diagnostic.ts";
