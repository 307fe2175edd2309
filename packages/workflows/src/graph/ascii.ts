import type { PipelineSpec } from "@sluice/core";
import { type Graph, type GraphNode, graphOf } from "./graph.ts";
import { layersOf } from "./layers.ts";

/** Columns of the whole drawing, at least. */
const NARROWEST = 40;
const WIDEST = 100;
const GAP = "   ";

export interface AsciiOptions {
  /** Columns, from 40. Default: 100. */
  readonly width?: number;
}

/** A pipeline as boxes in plain text, in rows by their distance from the initial state. Each box lists where it leads. */
export function asciiGraph(spec: PipelineSpec, { width = WIDEST }: AsciiOptions = {}): string {
  const columns = Math.max(NARROWEST, width);
  const graph = graphOf(spec);
  const rows = layersOf(graph).flatMap((layer) =>
    packed(
      layer.map((node) => boxOf(graph, node, columns)),
      columns,
    ),
  );
  const lines = rows.flatMap((row, index) => (index === 0 ? sideBySide(row) : [ARROW, ...sideBySide(row)]));
  const notes =
    graph.groups.length === 0 ? [] : ["", ...graph.groups.map(({ id, label }) => groupLine(graph, id, label, columns))];
  return `${[...lines, ...notes].join("\n")}\n`;
}

const ARROW = "        v";

type Box = readonly string[];

/** As many boxes in a row as fit. */
function packed(boxes: readonly Box[], columns: number): readonly (readonly Box[])[] {
  const rows: Box[][] = [];
  let used = 0;
  for (const box of boxes) {
    const wide = columnsOf(box[0] ?? "");
    const last = rows.at(-1);
    if (last === undefined || used + GAP.length + wide > columns) {
      rows.push([box]);
      used = wide;
    } else {
      last.push(box);
      used += GAP.length + wide;
    }
  }
  return rows;
}

function sideBySide(boxes: readonly Box[]): readonly string[] {
  const height = Math.max(...boxes.map((box) => box.length));
  return Array.from({ length: height }, (_none, line) =>
    boxes
      .map((box) => box[line] ?? " ".repeat(columnsOf(box[0] ?? "")))
      .join(GAP)
      .trimEnd(),
  );
}

const MARKS: Readonly<Partial<Record<GraphNode["kind"], string>>> = {
  initial: "> ",
  completed: "(end) ",
  failed: "(failed end) ",
  cancelled: "(cancelled end) ",
  fork: "(fork) ",
};

function boxOf({ nodes, edges }: Graph, node: GraphNode, columns: number): Box {
  const named = new Map(nodes.map(({ id, label }) => [id, label]));
  const routes = edges
    .filter(({ from }) => from === node.id)
    .map(({ to, label, dashed, approval }) => {
      const words = `${label}${approval ? " (approval)" : ""}`;
      return `${words === "" ? "" : `${words} `}${dashed ? "..>" : "-->"} ${named.get(to) ?? to}`;
    });
  const title = `${MARKS[node.kind] ?? ""}${node.label}`;
  const most = columns - 4;
  const head = [title, ...(node.detail === undefined ? [] : [node.detail])].map((line) => cut(line, most));
  const body = routes.flatMap((line) => wrapped(line, most));
  const inner = Math.max(...[...head, ...body].map(columnsOf));
  const edge = `+${"-".repeat(inner + 2)}+`;
  const filled = (line: string): string => `| ${line}${" ".repeat(inner - columnsOf(line))} |`;
  return [edge, ...head.map(filled), ...(body.length === 0 ? [] : [edge, ...body.map(filled)]), edge];
}

function groupLine({ nodes }: Graph, id: string, label: string, columns: number): string {
  const members = nodes.filter(({ group }) => group === id).map((node) => node.label);
  return cut(`branch ${label}: ${members.join(", ")}`, columns);
}

/** Letters that take two columns. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|[\u{20000}-\u{3fffd}]/u;

function columnsOf(text: string): number {
  let columns = 0;
  for (const character of text) columns += WIDE.test(character) ? 2 : /\p{Mn}/u.test(character) ? 0 : 1;
  return columns;
}

function cut(text: string, columns: number): string {
  if (columnsOf(text) <= columns) return text;
  let kept = "";
  for (const character of text) {
    if (columnsOf(kept + character) > columns - 3) break;
    kept += character;
  }
  return `${kept}...`;
}

/** A route on as many lines as it needs, the arrow with its target on one of its own. */
function wrapped(line: string, columns: number): readonly string[] {
  if (columnsOf(line) <= columns) return [line];
  const at = Math.max(line.lastIndexOf("--> "), line.lastIndexOf("..> "));
  return [cut(line.slice(0, at).trimEnd(), columns), cut(`  ${line.slice(at)}`, columns)];
}
