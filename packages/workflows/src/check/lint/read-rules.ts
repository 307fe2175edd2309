import type { PipelineSpec } from "@sluice/core";
import { type CheckFinding, nameOf } from "../finding.ts";
import { proveProperty } from "../properties/prove.ts";
import { pathText } from "../properties/words.ts";

/** States that read the output of a state which a run may not have entered. What cannot be known is not reported. */
export function readRules(spec: PipelineSpec): readonly CheckFinding[] {
  return [...spec.states].flatMap(([id, { reads = [] }]) =>
    reads.flatMap((read): readonly CheckFinding[] => {
      if (!spec.states.has(read) || read === id) return [];
      const [reader, source] = [nameOf(spec, id), nameOf(spec, read)];
      const proof = proveProperty(spec, {
        text: `never: ${reader} before ${source}`,
        kind: "never",
        what: { kind: "state", id },
        order: { is: "before", of: { kind: "state", id: read } },
      });
      if (proof.verdict !== "violated") return [];
      return [
        {
          severity: "warning",
          rule: "reads-missing",
          path: `stages.${id}.reads`,
          message: `${reader} reads the output of ${source}, and a run can enter ${reader} without ${source}: ${pathText(proof.path)}.`,
          suggestion: `handle a missing ctx.upstream.${read}, or route through ${source} first`,
        },
      ];
    }),
  );
}
