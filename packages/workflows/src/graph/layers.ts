import type { Graph, GraphNode } from "./graph.ts";

/** The nodes in rows: by their distance from the initial state, the ends in the last row. */
export function layersOf({ nodes, edges }: Graph): readonly (readonly GraphNode[])[] {
  const distance = new Map<string, number>();
  const next = new Map<string, string[]>();
  for (const { from, to } of edges) next.set(from, [...(next.get(from) ?? []), to]);
  // The end of a branch leads on to what joins it.
  const isEnd = ({ id, kind }: GraphNode): boolean =>
    (kind === "completed" || kind === "failed" || kind === "cancelled") && !next.has(id);
  // What the initial state does not lead to, such as an interrupt, begins beside it.
  for (const { id } of nodes) {
    if (distance.has(id)) continue;
    distance.set(id, 0);
    const waiting = [id];
    for (const at of waiting)
      for (const to of next.get(at) ?? []) {
        if (distance.has(to)) continue;
        distance.set(to, (distance.get(at) ?? 0) + 1);
        waiting.push(to);
      }
  }
  const layers: GraphNode[][] = [];
  for (const node of nodes) {
    if (isEnd(node)) continue;
    const at = distance.get(node.id) ?? 0;
    while (layers.length <= at) layers.push([]);
    layers[at]?.push(node);
  }
  const ends = nodes.filter(isEnd);
  return [
    ...aligned(
      layers.filter((layer) => layer.length > 0),
      edges,
    ),
    ...(ends.length === 0 ? [] : [ends]),
  ];
}

/** Each row in the order of what leads to it, so that fewer edges cross. */
function aligned(layers: readonly (readonly GraphNode[])[], edges: Graph["edges"]): readonly (readonly GraphNode[])[] {
  const place = new Map<string, number>();
  return layers.map((layer) => {
    const sorted = layer
      .map((node, index) => {
        const before = edges.flatMap(({ from, to }) => (to === node.id ? (place.get(from) ?? []) : []));
        const middle = before.reduce((sum, at) => sum + at, 0) / before.length;
        return { node, index, middle: before.length === 0 ? index / layer.length : middle };
      })
      .toSorted((a, b) => a.middle - b.middle || a.index - b.index);
    for (const [index, { node }] of sorted.entries()) place.set(node.id, index / Math.max(1, layer.length));
    return sorted.map(({ node }) => node);
  });
}
