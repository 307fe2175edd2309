// Properties that a document has, and what is wrong with them.

import type { PipelineSpec } from "@sluice/core";
import { z } from "zod";
import type { DocumentPath } from "../../diagnostic.ts";
import type { Finding } from "../../read/shape.ts";
import { type PropertySource, readProperty } from "./property.ts";
import { proveProperty } from "./prove.ts";
import { pathText } from "./words.ts";

/** `properties` of a document, whatever its format. */
export const propertiesField = z
  .array(
    z.union([
      z.string().min(1),
      z.strictObject({ never: z.string().min(1).describe("What happens on no path: `Bash before approved`.") }),
      z.strictObject({
        always: z.string().min(1).describe("What happens on every path that completes: `review after execute`."),
      }),
    ]),
  )
  .max(50)
  .describe(
    "What has to hold on every path, such as `never: Bash before approved`, `always: review after execute` or `never: deploy`. It is proven when the file is loaded; a file that breaks one does not run.",
  );

/** A property as its document has it. */
export interface DocumentProperty {
  readonly source: PropertySource;
  readonly path: DocumentPath;
}

/** Situations that are looked at when a file is loaded, for all its properties together. */
const MOST_SITUATIONS = 20_000;

/** Properties that cannot be read, are broken, or cannot be proven. */
export function propertyFindings(
  spec: PipelineSpec,
  properties: readonly DocumentProperty[],
  tools: readonly string[] | undefined,
): readonly Finding[] {
  let left = MOST_SITUATIONS;
  return properties.flatMap(({ source, path }): readonly Finding[] => {
    const reading = readProperty(spec, source, tools === undefined ? {} : { tools });
    if (!reading.ok) {
      const message = `The property cannot be used: ${reading.message}.`;
      return [{ severity: "error", rule: "property-invalid", path, message, suggestion: reading.suggestion }];
    }
    const { text } = reading.property;
    const proof = proveProperty(spec, reading.property, { maxSituations: Math.max(1, left) });
    left -= proof.situations;
    if (proof.verdict === "proven") return [];
    if (proof.verdict === "violated") {
      const message = `The property "${text}" does not hold: ${pathText(proof.path)}.`;
      return [{ severity: "error", rule: "property-broken", path, message }];
    }
    const message = `The property "${text}" cannot be proven: ${proof.why}.`;
    return [{ severity: "warning", rule: "property-unproven", path, message }];
  });
}
