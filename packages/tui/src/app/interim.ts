import type { RunView } from "./runs/run-view.ts";
import { clean } from "./text/clean.ts";
import type { Line } from "./text/line.ts";
import { createViewer, fixedRows, type Viewer } from "./viewer.ts";
import type { Watched } from "./watched.ts";

export function logLines(view: RunView, printed: number, _width: number): { lines: readonly Line[]; printed: number } {
  const lines: Line[] = [];
  for (let at = printed; at < view.told.length; at += 1)
    lines.push([{ text: clean(JSON.stringify(view.told.at(at)).slice(0, 300)) }]);
  return { lines, printed: view.told.length };
}
export function transcriptViewer(watched: Watched, key: string): Viewer {
  const items = watched.watch.view().executions.find((one) => one.key === key)?.items ?? [];
  return createViewer(
    key,
    fixedRows(() => [...items].map((item): Line => [{ text: clean(JSON.stringify(item).slice(0, 300)) }])),
  );
}
export function promptLines(text: string): readonly Line[] {
  return clean(text)
    .split("\n")
    .map(
      (line, at): Line => [
        { text: at === 0 ? "❯ " : "  ", style: "accent" },
        { text: line, style: "strong" },
      ],
    );
}
