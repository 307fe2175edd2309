// What is doubtful about a pipeline, found in its definition alone.

import type { PipelineSpec } from "@sluice/core";
import type { CheckFinding } from "../finding.ts";
import { flowOf } from "../flow.ts";
import { endRules } from "./end-rules.ts";
import { interruptRules } from "./interrupt-rules.ts";
import { permissionRules } from "./permission-rules.ts";
import { readRules } from "./read-rules.ts";
import { rowRules } from "./row-rules.ts";

/**
 * Looks for parts of a pipeline that are probably not meant: rows and guards that never apply, states that are never entered, loops
 * without a way out, interrupts that cannot return, permissions that grow or go unreviewed, and outputs that may be missing. Runs no code of the pipeline. Takes
 * a pipeline without problems, as `compilePipeline` gives it; the pipelines that it invokes are not checked again.
 */
export function checkWorkflow(spec: PipelineSpec): readonly CheckFinding[] {
  const flow = flowOf(spec);
  return [
    ...rowRules(spec, flow),
    ...endRules(spec, flow),
    ...interruptRules(spec, flow),
    ...permissionRules(spec, flow),
    ...readRules(spec),
  ];
}
