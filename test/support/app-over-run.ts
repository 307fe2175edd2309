import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { onTestFinished } from "vitest";
import type { RunFlags } from "../../packages/cli/src/runs/run-flags.ts";
import { App } from "../../packages/tui/src/app/app.ts";
import type { AppFlags } from "../../packages/tui/src/app/engine.ts";
import type { Key } from "../../packages/tui/src/composer/keys.ts";
import { createScreenModel } from "../../packages/tui/src/screen/screen-model.ts";
import { createPalette } from "../../packages/view/src/text/paint.ts";
import { appOptions } from "./app-options.ts";
import { surroundingsOf } from "./command.ts";
import { type DeskHere, deskHere, forkedRun } from "./command-here.ts";
import { key } from "./desk.ts";
import { skewedClock } from "./skewed-clock.ts";

/** The app in a folder whose store holds one run, finished unless `begin` makes another, with what it says and the keys it gets. */
export async function appOverRun(
  begin: (place: DeskHere) => Promise<string> = forkedRun,
  flags: Partial<AppFlags & RunFlags> = {},
) {
  const place = deskHere();
  const runId = await begin(place);
  const said: string[] = [];
  const clock = skewedClock();
  const app = new App({
    ...appOptions({ cwd: place.folder, ...flags }, contextAt(place.folder)),
    clock,
    size: { width: 200, height: 24 },
    terminal: {
      append: (lines) => void said.push(...lines.map((line) => line.map(({ text }) => text).join(""))),
      alert: () => undefined,
      lend: (work) => work(),
    },
  });
  onTestFinished(async () => {
    app.quit();
    await app.quitted;
  });
  /** Waits for a frame after which something holds. */
  const until = (holds: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const stop = app.subscribe(() => {
        if (!holds()) return;
        stop();
        resolve();
      });
      app.resize({ width: 200, height: app.state().size.height === 24 ? 25 : 24 });
    });
  const saidSo = (text: string): Promise<void> => until(() => said.some((line) => line.includes(text)));
  const read = (name: string): string => readFileSync(join(place.folder, name), "utf8");
  const surface = createScreenModel(app, {
    palette: createPalette({ colour: false }),
    env: {},
    setCursor: () => undefined,
  });
  /** A key that comes when nobody types any more. */
  const press = (name: Key["name"]): void => {
    clock.skip(5_000);
    surface.key(key(name));
  };
  return { place, runId, app, said, until, saidSo, read, press, surface };
}

function contextAt(folder: string) {
  const terminal = {
    out: () => undefined,
    err: () => undefined,
    paint: (_stream: string, _tone: string, text: string) => text,
    interactive: true,
    columns: 200,
    input: new PassThrough(),
    prompts: new PassThrough(),
    controlling: () => undefined,
    facts: () => ({ stdin: true, stdout: true, stderr: true, columns: 200, rows: 24, colourBits: 8 }),
    flush: async () => undefined,
  };
  return { env: { ...surroundingsOf(folder), PATH: "" }, here: folder, terminal };
}
