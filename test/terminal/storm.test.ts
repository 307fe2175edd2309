import { constants } from "node:os";
import { expect, test } from "vitest";
import { type KeyName, keyBytes } from "../support/terminal-keys.ts";
import { appPlace, dataOf, edit, expectUnharmed, PLANNED, pause, READ, submit } from "../support/terminal-run.ts";

const KEYS = 10_000;
// Those that quit, and those that hand the terminal to another program, are left out.
const NAMED: readonly KeyName[] = [
  ...(["enter", "enter", "enter", "escape", "tab", "tab", "shift+tab", "up", "up", "down", "left", "right"] as const),
  ...(["backspace", "delete", "home", "end", "pageUp", "pageDown"] as const),
  ...(["ctrl+a", "ctrl+e", "ctrl+k", "ctrl+u", "ctrl+w", "ctrl+n", "ctrl+p", "ctrl+o", "ctrl+r", "alt+b"] as const),
];
const TYPED = "ynaYN1234 ";

/** Numbers from 0 up to `most`, the same ones for a seed. */
function randomFrom(seed: number): (most: number) => number {
  let state = seed;
  return (most) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return (state >> 8) % most;
  };
}

test("ten thousand keys without a pause while cards open approve nothing", async () => {
  const random = randomFrom(1);
  const place = appPlace();
  place.write("a.txt", "one\n");
  const asks = Array.from({ length: 15 }, (_, at) => ({ ...edit("one", `changed ${at}`), delayMs: 50 }));
  place.script({ plan: [READ, ...asks, PLANNED] });
  const app = await place.open();
  await submit(app, "/run codeReview anything");
  await app.waitFor(/plan (running|waits)/);
  for (let sent = 0; sent < KEYS; sent += 1) {
    const named = NAMED[random(NAMED.length)];
    app.type(random(2) === 0 || named === undefined ? TYPED.charAt(random(TYPED.length)) : keyBytes(named));
    // Mostly in a rush, now and then as fast as a person types.
    await pause(random(200) === 0 ? 50 + random(200) : random(2));
  }
  await app.waitFor(/▌ [□■]|requests? waits?/);
  await pause(450);
  // Closes what is open, empties the line, asks, quits.
  const isAsked = (): boolean => app.lines().some((line) => line.includes("again to quit"));
  for (let tries = 0; tries < 10 && !isAsked(); tries += 1) {
    app.key("ctrl+c");
    await pause(200);
  }
  app.key("ctrl+c");
  // On a busy machine the question appears late, and the last Ctrl-C may reach a Node that exits and handles no signals any more.
  expect([
    { code: 130, signal: undefined },
    { code: 0, signal: constants.signals.SIGINT },
  ]).toContainEqual(await app.end());
  expectUnharmed(app);
  expect(place.read("a.txt")).toBe("one\n");
  // What was typed may have begun other runs, each after a question of its own.
  for (const run of await place.runIds()) {
    const answers = dataOf(await place.events(run), "grant.answered").map(({ answer }) => answer);
    expect(answers.filter((answer) => answer !== "deny")).toEqual([]);
  }
});
