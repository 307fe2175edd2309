import type { Json } from "@sluice/core";
import type { Diagnostic } from "../diagnostic.ts";
import { RULES } from "./rules.ts";

/** The diagnostics as SARIF 2.1.0, for editors and code hosts. File names are read as relative to the repository. */
export function renderSarif(diagnostics: readonly Diagnostic[], toolVersion: string): Json {
  const ids = [...new Set(diagnostics.map(({ rule }) => rule))].toSorted();
  const rules = ids.map((id) => ({ id, shortDescription: { text: RULES[id] ?? id } }));
  return {
    $schema: "https://json.schemastore.org/sarif-2.1.0.json",
    version: "2.1.0",
    runs: [
      {
        tool: { driver: { name: "sluice", version: toolVersion, rules } },
        columnKind: "utf16CodeUnits",
        results: diagnostics.map((diagnostic) => resultOf(diagnostic, ids.indexOf(diagnostic.rule))),
      },
    ],
  };
}

function resultOf({ rule, severity, message, suggestion, ...at }: Diagnostic, ruleIndex: number): Json {
  const region = { startLine: at.line, startColumn: at.column, endLine: at.line, endColumn: at.column + at.length };
  const logical = at.path === "" ? {} : { logicalLocations: [{ fullyQualifiedName: at.path }] };
  return {
    ruleId: rule,
    ruleIndex,
    level: severity,
    message: { text: suggestion === undefined ? message : `${message} (${suggestion})` },
    locations: [{ physicalLocation: { artifactLocation: { uri: uriOf(at.file) }, region }, ...logical }],
  };
}

/** A file's name as a URI reference. */
function uriOf(file: string): string {
  const path = file.replaceAll("\\", "/").split("/").map(encodeURIComponent).join("/");
  return file.startsWith("/") ? `file://${path}` : path;
}
