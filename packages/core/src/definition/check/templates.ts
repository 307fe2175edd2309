import { suggestOneOf } from "../../base/problems.ts";
import { missingPiece, type TemplatePath } from "../../schema/schema-path.ts";
import { invokeKey, parseChoice } from "../choice.ts";
import type { PipelineSpec, StateSpec } from "../spec.ts";
import { pathText } from "../template.ts";

interface PathFault {
  readonly message: string;
  readonly suggestion: string | undefined;
}

/** Why a template path of a state cannot exist in any run; undefined if it may. */
export function templateFault(spec: PipelineSpec, state: StateSpec, path: TemplatePath): PathFault | undefined {
  const [root, second] = path;
  switch (root) {
    case "run":
      if (second === undefined) return undefined;
      return second === "input"
        ? insideSchema(spec.input.accepted?.(), path, 2)
        : { message: "ctx.run has input", suggestion: "write {{ctx.run.input.…}}" };
    case "input":
      return insideSchema(state.inputSchema?.accepted?.(), path, 1);
    case "upstream":
    case "fork":
    case "items": {
      if (second === undefined || (root !== "items" && childKeys(spec).has(String(second)))) return undefined;
      const from = spec.states.get(String(second));
      if (from === undefined) {
        return {
          message: `there is no state ${JSON.stringify(second)}`,
          suggestion: suggestOneOf(String(second), spec.states.keys()),
        };
      }
      return root === "upstream" ? insideSchema(from.output?.accepted?.(), path, 2) : undefined;
    }
    case "project":
      if (path.length === 2 && second === "agents") return undefined;
      return { message: "a template reads only agents of ctx.project", suggestion: "write {{ctx.project.agents}}" };
    case "context":
    case "setup":
      return undefined;
    default:
      return second === undefined
        ? undefined
        : { message: `${pathText(path.slice(0, 1))} has no parts`, suggestion: undefined };
  }
}

/** The keys of branches, of invoked pipelines and of parts of states, whose outputs are upstream beside those of states. */
export function childKeys(spec: PipelineSpec): ReadonlySet<string> {
  const { routes, states, limits } = spec;
  const keys = (routes.kind === "table" ? routes.rows : []).flatMap(({ on, to }): readonly string[] => {
    const reading = parseChoice(to, states, null, limits.maxItems);
    if (!reading.ok) return [];
    const { shape } = reading;
    if (shape.kind === "fork") return shape.branches.map(({ key }) => key);
    if (shape.kind !== "invoke") return [];
    return [shape.key ?? invokeKey(typeof on === "string" ? undefined : on.event, shape.pipeline)];
  });
  return new Set([...keys, ...[...states.values()].flatMap(({ adds = [] }) => adds)]);
}

function insideSchema(
  schema: Parameters<typeof missingPiece>[0] | undefined,
  path: TemplatePath,
  from: number,
): PathFault | undefined {
  const missing = schema === undefined ? undefined : missingPiece(schema, path.slice(from));
  if (missing === undefined) return undefined;
  const here = pathText(path.slice(0, from + missing.index));
  return { message: `${here} ${missing.found}`, suggestion: "name what the schema has, or add it there" };
}
