import type { App } from "../app.ts";
import type { Key } from "../keys.ts";
import { type Palette, paint } from "../text/paint.ts";
import type { Frame, FrameSize } from "./frame.ts";
import { Draughtsman } from "./parts.ts";

/** What the screen draws, as text that is ready to be written, and where keys go. */
export interface Surface {
  subscribe(listener: () => void): () => void;
  /** The same array until something changes. */
  rows(): readonly string[];
  resize(size: FrameSize): void;
  key(key: Key): void;
}

export interface SurfaceOptions {
  readonly palette: Palette;
  readonly setCursor: (cell: Frame["cursor"]) => void;
}

export function createSurface(app: App, { palette, setCursor }: SurfaceOptions): Surface {
  const draughtsman = new Draughtsman();
  const listeners = new Set<() => void>();
  let rows: readonly string[] = [];
  const draw = (): void => {
    const { rows: lines, cursor, card, viewer } = draughtsman.draw(app.state());
    const painted = lines.map((line) => paint(line, palette));
    if (painted.length !== rows.length || painted.some((row, at) => row !== rows[at])) rows = painted;
    setCursor(cursor);
    app.drawn({
      ...(viewer === undefined ? {} : { viewer }),
      ...(card === undefined ? {} : { card: { kind: "shown", key: card.key, shown: card.shown } }),
    });
    for (const listener of listeners) listener();
  };
  app.subscribe(draw);
  draw();
  return {
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    rows: () => rows,
    resize: (size) => app.resize(size),
    key: (key) => app.key(key),
  };
}
