import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { App } from "../../packages/tui/src/app/app.ts";
import { keysOf } from "../../packages/tui/src/screen/press.ts";
import { createScreenModel } from "../../packages/tui/src/screen/screen-model.ts";
import { createPalette } from "../../packages/view/src/text/paint.ts";
import { appOptions } from "../support/app-options.ts";
import { handClock } from "../support/hand-clock.ts";
import type { Scenario } from "./scenarios.ts";

const UNHELD = {
  ...{ upArrow: false, downArrow: false, leftArrow: false, rightArrow: false, pageDown: false, pageUp: false },
  ...{ home: false, end: false, return: false, escape: false, ctrl: false, shift: false, tab: false, backspace: false },
  ...{ delete: false, meta: false, super: false, hyper: false, capsLock: false, numLock: false },
};
const size = { width: 100, height: 24 };

/** One letter in an app where nothing runs, from what Ink reports to the rows that Ink draws. */
export const letter: Scenario = async (counter) => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-walks-app-"));
  const here = join(folder, "work");
  mkdirSync(here);
  const app = new App({
    ...appOptions({ cwd: here }, { env: { HOME: folder, PATH: "" }, here, terminal: quietTerminal() }),
    clock: handClock(),
    size,
    terminal: { append: () => undefined, alert: () => undefined, lend: (work) => work() },
  });
  const palette = createPalette({ colour: false });
  const surface = createScreenModel(app, { palette, env: {}, setCursor: () => undefined });
  await app.open();
  counter.start();
  for (const key of keysOf("x", UNHELD)) surface.key(key);
  const counts = counter.stop();
  if (!surface.rows().some((row) => row.includes("x"))) throw new Error("the letter is not on the screen");
  app.quit();
  await app.quitted;
  rmSync(folder, { recursive: true, force: true });
  return counts;
};

function quietTerminal() {
  return {
    out: () => undefined,
    err: () => undefined,
    paint: (_stream: string, _tone: string, text: string) => text,
    interactive: true,
    columns: size.width,
    input: new PassThrough(),
    prompts: new PassThrough(),
    controlling: () => undefined,
    facts: () => ({ stdin: true, stdout: true, stderr: true, columns: size.width, rows: size.height, colourBits: 1 }),
    flush: async () => undefined,
  };
}
