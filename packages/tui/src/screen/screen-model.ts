import { messageOf } from "@sluice/core/runtime";
import { cut, type Palette, paint, spanOf } from "@sluice/view/text";
import type { App } from "../app/app.ts";
import type { Key } from "../composer/keys.ts";
import type { Environment } from "../user/environment.ts";
import type { Frame } from "./frame.ts";
import { type DrawnFrame, FrameRenderer } from "./layout.ts";

/** Connects the app to the screen: painted rows and keys. */
export interface ScreenModel {
  subscribe(listener: () => void): () => void;
  /** The same array until a row changes. */
  rows(): readonly string[];
  key(key: Key): void;
}

export interface ScreenOptions {
  readonly palette: Palette;
  readonly env: Environment;
  readonly setCursor: (cell: Frame["cursor"]) => void;
}

export function createScreenModel(app: App, { palette, env, setCursor }: ScreenOptions): ScreenModel {
  const renderer = new FrameRenderer(env);
  const listeners = new Set<() => void>();
  let rows: readonly string[] = [];
  const show = (painted: readonly string[]): void => {
    if (painted.length !== rows.length || painted.some((row, at) => row !== rows[at])) rows = painted;
    for (const listener of listeners) listener();
  };
  const draw = (): void => {
    let frame: DrawnFrame;
    try {
      frame = renderer.draw(app.state());
    } catch (thrown) {
      // A drawing error must not end active runs.
      app.drawn({ viewer: undefined, card: undefined });
      show([
        paint(
          cut([spanOf(`✖ this frame cannot be drawn: ${messageOf(thrown)}`, "bad")], app.state().size.width),
          palette,
        ),
      ]);
      return;
    }
    setCursor(frame.cursor);
    app.drawn(frame);
    show(frame.rows.map((line) => paint(line, palette)));
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
        // A failing key must not end active runs.
        app.say(messageOf(thrown), "bad");
      }
    },
  };
}
