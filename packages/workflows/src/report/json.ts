import type { Json } from "@sluice/core";
import type { Diagnostic } from "../diagnostic.ts";

/** The diagnostics as data, in the order in which they were found. */
export function renderJson(diagnostics: readonly Diagnostic[]): Json {
  return {
    errors: diagnostics.filter(({ severity }) => severity === "error").length,
    warnings: diagnostics.filter(({ severity }) => severity === "warning").length,
    diagnostics: diagnostics.map((diagnostic) => ({ ...diagnostic })),
  };
}
