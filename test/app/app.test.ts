import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { systemClock } from "@sluice/core";
import type { Engine } from "@sluice/tui";
import { expect, onTestFinished, test } from "vitest";
import { createEngine } from "../../packages/cli/src/commands/app/engine.ts";
import type { RunFlags } from "../../packages/cli/src/runs/run-flags.ts";
import { App } from "../../packages/tui/src/app/app.ts";
import { COMMANDS } from "../../packages/tui/src/commands/registry.ts";
import { createScreenModel } from "../../packages/tui/src/screen/screen-model.ts";
import { createPalette } from "../../packages/view/src/text/paint.ts";
import { appOptions } from "../support/app-options.ts";
import { desk } from "../support/command.ts";
import { ctrl, key } from "../support/desk.ts";
import { expectToFit } from "../support/random-views.ts";
import { textOf } from "../support/run-views.ts";
import { skewedClock } from "../support/skewed-clock.ts";

const WRITES = { calls: [{ tool: "Write", input: { file_path: "new.txt", content: "new\n" } }] };

test("a card that came up while an editor had the terminal is new to the person who comes back", async () => {
  const place = desk();
  const clock = skewedClock();
  let comeBack: () => void = () => undefined;
  const away = new Promise<void>((resolve) => {
    comeBack = resolve;
  });
  const app = new App({
    ...appOptions(
      { cwd: place.folder, model: place.script({ plan: [WRITES] }) },
      contextAt(place.folder, { EDITOR: "true" }),
    ),
    clock,
    size: { width: 80, height: 24 },
    terminal: {
      append: () => undefined,
      alert: () => undefined,
      lend: async (work) => {
        await away;
        return await work();
      },
    },
  });
  onTestFinished(async () => {
    app.quit();
    await app.quitted;
  });
  const surface = createScreenModel(app, {
    palette: createPalette({ colour: false }),
    env: {},
    setCursor: () => undefined,
  });
  surface.key(ctrl("g"));
  app.submit("/run codeReview anything");
  await until(app, () => app.state().cards.open !== undefined);
  // Frames go on, and nobody sees them.
  clock.skip(5_000);
  app.say("something");
  await until(app, () => true);
  comeBack();
  await until(app, () => app.state().cards.open?.shownAt !== undefined);
  clock.skip(200);
  surface.key(key("tab"));
  expect(app.state().cards.open).toMatchObject({ focused: false, armed: false });
});

test("a key that the input line handles delays the arming of a card, and counts for 400 ms after a card closed", async () => {
  const place = desk();
  const clock = skewedClock();
  const app = new App({
    ...appOptions({ cwd: place.folder, model: place.script({ plan: [WRITES] }) }, contextAt(place.folder)),
    clock,
    size: { width: 80, height: 24 },
    terminal: { append: () => undefined, alert: () => undefined, lend: (work) => work() },
  });
  onTestFinished(async () => {
    app.quit();
    await app.quitted;
  });
  const surface = createScreenModel(app, {
    palette: createPalette({ colour: false }),
    env: {},
    setCursor: () => undefined,
  });
  const press = (name: Parameters<typeof key>[0], pause: number, text = ""): void => {
    clock.skip(pause);
    surface.key(key(name, text));
  };
  app.submit("/run codeReview anything");
  await until(app, () => app.state().cards.open?.shownAt !== undefined);
  press("text", 5_000, "a");
  expect(app.state().composer.editor.text).toBe("a");
  press("tab", 100);
  expect(app.state().cards.open).toMatchObject({ focused: false, armed: false });
  press("tab", 500);
  expect(app.state().cards.open).toMatchObject({ focused: true, armed: true });
  press("escape", 500);
  expect(app.state().cards.open).toBeUndefined();
  press("left", 100);
  expect(app.state().composer.editor.cursor).toBe(1);
  press("left", 500);
  expect(app.state().composer.editor.cursor).toBe(0);
});

test("what cannot be done with a key is said, and ends nothing", () => {
  const place = desk();
  const said: string[] = [];
  const app = new App({
    ...appOptions({ cwd: place.folder }, contextAt(place.folder)),
    clock: systemClock,
    size: { width: 80, height: 24 },
    terminal: {
      append: (lines) => void said.push(lines.flatMap((line) => line.map(({ text }) => text)).join("")),
      alert: () => undefined,
      lend: (work) => work(),
    },
  });
  onTestFinished(async () => {
    app.quit();
    await app.quitted;
  });
  const surface = createScreenModel(app, {
    palette: createPalette({ colour: false }),
    env: {},
    setCursor: () => undefined,
  });
  const rows = {
    count: () => 1,
    slice: () => [[]],
    find: (): never => {
      throw new Error("it cannot be searched");
    },
  };
  app.show({
    title: "t",
    rows,
    selectable: false,
    top: 0,
    chosen: 0,
    follows: false,
    search: undefined,
    hint: "",
    ticks: false,
  });
  for (const text of ["/", "x"]) surface.key(key("text", text));
  surface.key(key("enter"));
  expect(said.join("\n")).toContain("it cannot be searched");
});

test("/runs shows the status of a run in its colour", async () => {
  const place = desk();
  const app = new App({
    ...appOptions({ cwd: place.folder, model: place.script({ plan: [WRITES] }) }, contextAt(place.folder)),
    clock: systemClock,
    size: { width: 120, height: 24 },
    terminal: { append: () => undefined, alert: () => undefined, lend: (work) => work() },
  });
  onTestFinished(async () => {
    app.quit();
    await app.quitted;
  });
  app.submit("/run codeReview anything");
  await until(app, () => app.state().cards.open !== undefined);
  app.submit("/runs");
  await until(app, () => app.state().viewer !== undefined);
  const row = app.state().viewer?.rows.slice(0, 1, 120)[0] ?? [];
  const styleOf = (text: string): string | undefined => row.find((part) => part.text.includes(text))?.style;
  expect(textOf([row])).toMatch(/^r\S+ {2}running in .* {2}codeReview {2}anything$/);
  expect([styleOf("running in"), styleOf("Z"), styleOf("anything")]).toEqual(["accent", "dim", undefined]);
});

test("a folder that is gone by then keeps no one from leaving, and what ran can be resumed", async () => {
  const place = desk();
  const gone = join(place.folder, "..", "gone");
  mkdirSync(gone);
  const app = new App({
    ...appOptions({ cwd: place.folder, model: place.script({ plan: [WRITES] }) }, contextAt(place.folder, {}, gone)),
    clock: systemClock,
    size: { width: 80, height: 24 },
    terminal: { append: () => undefined, alert: () => undefined, lend: (work) => work() },
  });
  app.submit("/run codeReview anything");
  await until(app, () => app.state().cards.open !== undefined);
  const runId = app.state().view?.runId ?? "";
  rmSync(gone, { recursive: true });
  app.quit();
  const { exitCode, lines } = await app.quitted;
  expect(exitCode).toBe(0);
  expect(lines.join("\n")).toContain(`run ${runId} is suspended`);
});

test("--trust was said of the code as it was: after /reload what was changed since is asked about", async () => {
  const place = desk();
  place.write("sluice.config.js", 'export default { defaultPipeline: "fixTests" };\n');
  const { engine, asked } = engineAt(place.folder, { trust: true });
  expect((await engine.project()).defaultPipeline).toBe("fixTests");
  place.write("sluice.config.js", 'export default { mode: "yolo" };\n');
  engine.reload();
  await expect(engine.project()).rejects.toMatchObject({ code: "folder_untrusted" });
  expect(asked).toHaveLength(1);
});

test.each([30, 60, 80, 100, 200])("at %i columns /help tells every command and key whole", async (width) => {
  const place = desk();
  const app = new App({
    ...appOptions({ cwd: place.folder }, contextAt(place.folder)),
    clock: systemClock,
    size: { width, height: 24 },
    terminal: { append: () => undefined, alert: () => undefined, lend: (work) => work() },
  });
  app.submit("/help");
  await until(app, () => app.state().viewer !== undefined);
  const rows = app.state().viewer?.rows.slice(0, 1_000, width) ?? [];
  app.quit();
  await app.quitted;
  expectToFit(rows, width);
  const shown = textOf(rows).replaceAll(/\s+/g, " ");
  for (const { name, usage, description } of COMMANDS) {
    expect(shown).toContain(`/${name} ${usage}`.trim());
    expect(shown).toContain(description);
  }
  expect(shown).toContain("else asks whether to cancel the run");
  const [first = "", second = ""] = textOf(rows).split("\n").slice(1);
  const column = width < 69 ? 4 : 29;
  expect((width < 69 ? second : first).slice(0, column + 1)).toMatch(/\S$/);
  const entries = textOf(rows).split("\n").slice(1, -4);
  expect(entries.filter((row) => !/^( {2}\S| +\S|$|Keys$)/.test(row))).toEqual([]);
  expect(entries.filter((row) => /^ +/.test(row)).map((row) => row.search(/\S/))).toSatisfy((at: number[]) =>
    at.every((indent) => indent === 2 || indent === column),
  );
});

test.each(["sonnet", "anthropic/", "anthropic/<model>", "antropic/x"])(
  "/model %s is refused, and changes nothing",
  async (id) => {
    const place = desk();
    const said: string[] = [];
    const app = new App({
      ...appOptions({ cwd: place.folder, model: "anthropic/one" }, contextAt(place.folder)),
      clock: systemClock,
      size: { width: 200, height: 24 },
      terminal: {
        append: (lines) => void said.push(textOf(lines)),
        alert: () => undefined,
        lend: (work) => work(),
      },
    });
    app.submit(`/model ${id}`);
    await until(app, () => said.join("\n").includes("(unknown_provider)"));
    const { model } = app.engine.flags;
    app.quit();
    await app.quitted;
    expect(model).toBe("anthropic/one");
    expect(said.join("\n").replaceAll(/\s+/g, " ")).toContain("valid forms: anthropic/<model>, ");
  },
);

test("nothing is begun once the app is being left", async () => {
  const place = desk();
  const { engine } = engineAt(place.folder, { model: place.script({ plan: [WRITES] }) });
  const begun = engine.start("codeReview", "anything");
  await engine.close();
  await expect(begun).rejects.toMatchObject({ code: "session_closed" });
});

/** Waits for a frame after which something holds. */
function until(app: App, holds: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const stop = app.subscribe(() => {
      if (!holds()) return;
      stop();
      resolve();
    });
    app.resize({ width: 80, height: app.state().size.height === 24 ? 25 : 24 });
  });
}

function engineAt(folder: string, flags: RunFlags): { readonly engine: Engine; readonly asked: readonly string[] } {
  const asked: string[] = [];
  const engine = createEngine({
    flags: { cwd: folder, ...flags },
    context: contextAt(folder),
    askTrust: async (question) => {
      asked.push(question);
      return false;
    },
    say: () => undefined,
  });
  onTestFinished(() => engine.close());
  return { engine, asked };
}

function contextAt(folder: string, more: Readonly<Record<string, string>> = {}, here = folder) {
  const home = join(folder, "..", "home");
  mkdirSync(home, { recursive: true });
  const terminal = {
    out: () => undefined,
    err: () => undefined,
    paint: (_stream: string, _tone: string, text: string) => text,
    interactive: true,
    columns: 80,
    input: new PassThrough(),
    prompts: new PassThrough(),
    controlling: () => undefined,
    facts: () => ({ stdin: true, stdout: true, stderr: true, columns: 80, rows: 24, colourBits: 8 }),
    flush: async () => undefined,
  };
  // Not the Ollama that may run on this machine: nobody listens here.
  const env = { HOME: home, PATH: process.env.PATH ?? "", OLLAMA_HOST: "http://127.0.0.1:9", ...more };
  return { env, here, terminal };
}
