import type { PipelineSpec } from "@sluice/core";
import { type Graph, type GraphEdge, type GraphNode, graphOf, type NodeKind } from "./graph.ts";

/** A pipeline as a Mermaid flowchart. Whatever its names hold, they stay text. */
export function mermaidGraph(spec: PipelineSpec): string {
  const graph = graphOf(spec);
  const lines = ["flowchart TD", ...nodeLines(graph), ...graph.edges.map(edgeLine), ...CLASSES];
  return `${lines.join("\n")}\n`;
}

const SHAPES: Readonly<Record<NodeKind, readonly [string, string]>> = {
  initial: ["[", "]"],
  state: ["[", "]"],
  completed: ["([", "])"],
  failed: ["([", "])"],
  cancelled: ["([", "])"],
  fork: ["{{", "}}"],
  pipeline: ["[[", "]]"],
  any: [">", "]"],
  elsewhere: [">", "]"],
  interrupted: [">", "]"],
};

const CLASSES = [
  "  classDef initial stroke-width:3px",
  "  classDef completed stroke:#2e7d32",
  "  classDef failed stroke:#c62828",
  "  classDef cancelled stroke:#6d6d6d",
];

function nodeLines({ nodes, groups }: Graph): readonly string[] {
  const inGroups = groups.flatMap(({ id, label }) => [
    `  subgraph ${id}["${escaped(label)}"]`,
    ...nodes.filter(({ group }) => group === id).map((node) => `  ${nodeLine(node)}`),
    "  end",
  ]);
  return [...nodes.filter(({ group }) => group === undefined).map(nodeLine), ...inGroups];
}

function nodeLine({ id, kind, label, detail }: GraphNode): string {
  const [open, close] = SHAPES[kind];
  const text = detail === undefined ? escaped(label) : `${escaped(label)}<br/>${escaped(detail)}`;
  const isStyled = CLASSES.some((line) => line.startsWith(`  classDef ${kind} `));
  return `  ${id}${open}"${text}"${close}${isStyled ? `:::${kind}` : ""}`;
}

function edgeLine({ from, to, label, dashed, approval }: GraphEdge): string {
  const arrow = dashed ? "-.->" : approval ? "==>" : "-->";
  const words = approval ? `${label} (approval)` : label;
  return words === "" ? `  ${from} ${arrow} ${to}` : `  ${from} ${arrow}|"${escaped(words)}"| ${to}`;
}

/** Everything but plain characters as its number, so that no label can end, be markup or be read as Markdown. */
function escaped(text: string): string {
  const plain = text.replaceAll(/[^\p{L}\p{N} .,:/()=_-]/gu, (character) => `#${character.codePointAt(0) ?? 0xfffd};`);
  return plain === "" ? "#32;" : plain;
}
