import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { readExport, verifyExport } from "@sluice/core";
import { expect, onTestFinished, test } from "vitest";
import { App } from "../../packages/tui/src/app/app.ts";
import type { Key } from "../../packages/tui/src/app/keys.ts";
import { createSurface } from "../../packages/tui/src/app/screen/surface.ts";
import { createPalette } from "../../packages/tui/src/text/paint.ts";
import { deskHere, forkedRun } from "../support/command-here.ts";
import { key } from "../support/desk.ts";
import { skewedClock } from "../support/skewed-clock.ts";

// `/export` of the app and `sluice export` are one thing.

async function appOverRun() {
  const place = deskHere();
  const runId = await forkedRun(place);
  const said: string[] = [];
  const clock = skewedClock();
  const app = new App({
    flags: { cwd: place.folder },
    context: contextAt(place.folder),
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
  const surface = createSurface(app, {
    palette: createPalette({ colour: false }),
    env: {},
    setCursor: () => undefined,
  });
  /** A key that comes when nobody types any more. */
  const press = (name: Key["name"]): void => {
    clock.skip(5_000);
    surface.key(key(name));
  };
  return { place, runId, app, until, saidSo, read, press };
}

test("/export writes the file that sluice export writes, for its owner alone, and it verifies by itself", async () => {
  const { place, runId, app, saidSo, read } = await appOverRun();
  await place.sluice(["export", runId, "-o", "by-command.jsonl"]);
  app.submit(`/export ${runId}`);
  await saidSo("without their values");
  const name = `${runId}.jsonl`;
  expect(read(name)).toBe(read("by-command.jsonl"));
  expect(statSync(join(place.folder, name)).mode & 0o777).toBe(0o600);
  expect(verifyExport(readExport(readFileSync(join(place.folder, name)))).faults).toEqual([]);

  app.submit(`/export ${runId.slice(0, 9)} named by me.jsonl`);
  await saidSo("named by me.jsonl, without");
  expect(read("named by me.jsonl")).toBe(read(name));
});

test("a file that is there stays, unless it is said that it is to be replaced", async () => {
  const { place, runId, app, until, saidSo, read, press } = await appOverRun();
  place.write("mine.jsonl", "mine\n");
  const asked = async (): Promise<void> => {
    app.submit(`/export ${runId} mine.jsonl`);
    await until(() => app.state().question !== undefined);
  };
  await asked();
  press("enter");
  expect([app.state().question, read("mine.jsonl")]).toEqual([undefined, "mine\n"]);
  await asked();
  press("down");
  press("enter");
  await saidSo("without their values");
  expect(verifyExport(readExport(readFileSync(join(place.folder, "mine.jsonl")))).faults).toEqual([]);
  expect(readdirSync(place.folder).filter((name) => name.endsWith(".tmp"))).toEqual([]);
});

test("where no file can be written that is said, and nothing is left", async () => {
  const { place, runId, app, saidSo } = await appOverRun();
  const before = readdirSync(place.folder);
  app.submit(`/export ${runId} nowhere/run.jsonl`);
  await saidSo("cannot be written");
  expect(readdirSync(place.folder)).toEqual(before);
});

function contextAt(folder: string) {
  const home = join(folder, "..", "home");
  const terminal = {
    out: () => undefined,
    err: () => undefined,
    paint: (_stream: string, _tone: string, text: string) => text,
    interactive: true,
    columns: 200,
    input: new PassThrough(),
    prompts: new PassThrough(),
    facts: () => ({ stdin: true, stdout: true, stderr: true, columns: 200, rows: 24, colourBits: 8 }),
    flush: async () => undefined,
  };
  const env = { HOME: home, XDG_STATE_HOME: join(home, "state"), PATH: "", OLLAMA_HOST: "http://127.0.0.1:9" };
  return { env, here: folder, terminal };
}
