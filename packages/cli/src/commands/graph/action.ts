import { extname, resolve } from "node:path";
import { type PipelineSpec, SluiceError } from "@sluice/core";
import { visible } from "@sluice/core/runtime";
import { oneLine } from "@sluice/view/words";
import { asciiGraph, graphOf, mermaidGraph, svgGraph } from "@sluice/workflows";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { isThere, usageError, write } from "../../output/output.ts";
import { writeWhole } from "../../output/output-file.ts";
import { workspaceOf } from "../../project/project-paths.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import type { CommonFlags } from "../../runs/run-flags.ts";
import { diagnosticLines, readChecked } from "../check/checked.ts";

type GraphFormat = "ascii" | "mermaid" | "svg";

type GraphFlags = CommonFlags & {
  readonly format?: GraphFormat;
  /** A file, or `-` for stdout, the default. */
  readonly output?: string;
  readonly force?: boolean;
  readonly trust?: boolean;
  readonly config?: boolean;
};

const DRAWINGS: Readonly<Record<GraphFormat, (spec: PipelineSpec) => string>> = {
  ascii: (spec) => visible(asciiGraph(spec)),
  mermaid: (spec) => visible(mermaidGraph(spec)),
  svg: svgGraph,
};

/** `sluice graph`: a workflow or a pipeline as a drawing. */
export async function graph(context: CommandContext, name: string, flags: GraphFlags): Promise<number> {
  const { terminal, here } = context;
  const { output = "-", force = false, outputFormat } = flags;
  const [checked] = await readChecked([name], projectsHere(flags, context), workspaceOf(flags, here));
  if (checked?.spec === undefined) {
    const lines = checked === undefined ? [] : diagnosticLines(checked, here);
    throw new SluiceError("Validation", "workflow_invalid", `${name} has errors:\n${lines.join("\n")}`);
  }
  const { spec } = checked;
  const format = flags.format ?? formatOf(output);
  const drawing = DRAWINGS[format](spec);
  const ended = drawing.endsWith("\n") ? drawing : `${drawing}\n`;
  if (output === "-") {
    if (outputFormat === "text") terminal.out(ended);
    else {
      const { nodes, edges, groups, ...rest } = graphOf(spec);
      const json = {
        ...rest,
        nodes: nodes.map((node) => ({ ...node })),
        edges: edges.map((edge) => ({ ...edge })),
        groups: groups.map((group) => ({ ...group })),
      };
      write(outputFormat, terminal, { json, text: () => [] });
    }
    return EXIT.completed;
  }
  const file = resolve(here, output);
  const bytes = writeWhole(file, [ended], { force, shared: true });
  if (bytes === undefined) throw isThere(file);
  write(outputFormat, terminal, {
    json: { file, bytes, format },
    text: () => [`Wrote the graph of ${oneLine(name, 1_000)} to ${oneLine(file, 1_000)}`],
  });
  return EXIT.completed;
}

const FORMATS: Readonly<Record<string, GraphFormat>> = {
  "": "ascii",
  ".txt": "ascii",
  ".svg": "svg",
  ".mmd": "mermaid",
  ".mermaid": "mermaid",
};

/** The format that the name of a file stands for. Throws Validation `usage` for another kind of file, such as an image. */
function formatOf(output: string): GraphFormat {
  const format = output === "-" ? "ascii" : FORMATS[extname(output).toLowerCase()];
  if (format !== undefined) return format;
  throw usageError(`${output} stands for no format: use a name that ends in .svg, .mmd or .txt, or --format`);
}
