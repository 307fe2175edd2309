import { messageOf } from "@sluice/core";
import { cut, type Palette, paint, spanOf } from "@sluice/view/text";
import type { App } from "../app/app.ts";
import type { Key } from "../app/keys.ts";
import type { Environment } from "../user/environment.ts";
import type { Frame } from "./frame.ts";
import { type FrameInput, FrameRenderer } from "./parts.ts";

/** What the screen draws, as text that is ready to be written, and where keys go. */
export interface ScreenModel {
  subscribe(listener: () => void): () => void;
  /** The same array until something changes. */
  rows(): readonly string[];
  key(key: Key): void;
}

export interface SurfaceOptions {
  readonly palette: Palette;
  readonly env: Environment;
  readonly setCursor: (cell: Frame["cursor"]) => void;
}

export function createScreenModel(app: App, { palette, env, setCursor }: SurfaceOptions): ScreenModel {
  const draughtsman = new FrameRenderer(env);
  const listeners = new Set<() => void>();
  let rows: readonly string[] = [];
  const show = (painted: readonly string[]): void => {
    if (painted.length !== rows.length || painted.some((row, at) => row !== rows[at])) rows = painted;
    for (const listener of listeners) listener();
  };
  const draw = (): void => {
    let drawing: FrameInput;
    try {
      drawing = draughtsman.draw(app.state());
    } catch (thrown) {
      // The run goes on, and keys still work: what cannot be drawn must not end what is at work.
      app.drawn({});
      show([
        paint(cut([spanOf(`✖ this cannot be drawn: ${messageOf(thrown)}`, "bad")], app.state().size.width), palette),
      ]);
      return;
    }
    const { rows: lines, cursor, card, viewer } = drawing;
    setCursor(cursor);
    app.drawn({
      ...(viewer === undefined ? {} : { viewer }),
      ...(card === undefined ? {} : { card: { kind: "shown", key: card.key, shown: card.shown } }),
    });
    show(lines.map((line) => paint(line, palette)));
  };
  app.subscribe(draw);
  draw();
  return {
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    rows: () => rows,
    key: (key) => {
      try {
        app.key(key);
      } catch (thrown) {
        // What a key could not do must not end the runs that are at work.
        app.say(messageOf(thrown), "bad");
      }
    },
  };
}
