import { expect, test } from "vitest";
import { holdHooks } from "../../packages/cli/src/commands/gateway/hold-hooks.ts";
import { handClock } from "../support/hand-clock.ts";
import { tempFolder } from "../support/tools.ts";

function folder() {
  return { workspace: "/w", stateFolder: tempFolder().root };
}

test("the hooks of a folder are held by the next gateway as soon as the last one has ended", async () => {
  const [place, clock] = [folder(), handClock()];
  const first = await holdHooks("claude", place, clock);
  const second = holdHooks("claude", place, clock);
  expect(clock.waiting()).toBe(1);
  first.release();
  clock.turn(1_000);
  (await second).release();
  (await holdHooks("claude", place, clock)).release();
});

test("after five seconds, the hooks of a folder are refused to a second gateway, with the process that holds them", async () => {
  const [place, clock] = [folder(), handClock()];
  const first = await holdHooks("claude", place, clock);
  const ended = holdHooks("claude", place, clock).then(
    () => "held",
    (thrown: unknown) => thrown,
  );
  let over: unknown;
  void ended.then((how) => {
    over = how;
  });
  for (let waited = 0; waited < 5_000; waited += 100) {
    await expect.poll(() => clock.waiting()).toBe(1);
    expect(over).toBeUndefined();
    clock.turn(100);
  }
  expect(await ended).toMatchObject({
    class: "Host",
    code: "hooks_served",
    message: expect.stringContaining(`process ${process.pid} answers the hooks of claude in /w already`),
  });
  first.release();
});
