import { done, pipeline, state } from "@sluice/core";
import { createSession, type Session } from "@sluice/stages";
import { expect, test } from "vitest";
import { z } from "zod";
import { createSessionPool } from "../../packages/cli/src/waking/session-pool.ts";
import { handClock } from "../support/hand-clock.ts";

const MINUTE = 60_000;
const empty = pipeline({
  id: "empty",
  input: z.object({}),
  stages: { only: state({ kind: "none", output: z.null() }) },
  initial: "only",
  next: { only: () => done(null) },
});

/** Whether a session starts no more runs. */
async function isClosed(session: Session): Promise<boolean> {
  try {
    await session.run(empty, {});
    return false;
  } catch (thrown) {
    return thrown instanceof Error && "code" in thrown && thrown.code === "session_closed";
  }
}

function world() {
  const clock = handClock();
  const opened: Session[] = [];
  const pool = createSessionPool(clock, (thrown) => expect.fail(String(thrown)));
  const open = (): Session => {
    const session = createSession({ env: {} });
    opened.push(session);
    return session;
  };
  return { clock, opened, pool, open };
}

test("runs with one key share a session, which is kept for a minute after the last of them", async () => {
  const { clock, opened, pool, open } = world();
  const [one, other] = [pool.take("a", open), pool.take("a", open)];
  expect([one.session === other.session, opened.length]).toEqual([true, 1]);
  await one.settle();
  clock.turn(5 * MINUTE);
  expect(await isClosed(one.session), "a run still uses it").toBe(false);
  await other.settle();
  clock.turn(MINUTE - 1);
  const again = pool.take("a", open);
  expect(again.session).toBe(one.session);
  clock.turn(5 * MINUTE);
  await again.settle();
  clock.turn(MINUTE);
  expect(await isClosed(one.session)).toBe(true);
  expect(pool.take("a", open).session).not.toBe(one.session);
});

test("other keys get other sessions, and a run without a key one of its own, which closes with it", async () => {
  const { pool, open } = world();
  const [a, b, own, next] = [
    pool.take("a", open),
    pool.take("b", open),
    pool.take(undefined, open),
    pool.take(undefined, open),
  ];
  expect(new Set([a, b, own, next].map(({ session }) => session)).size).toBe(4);
  await own.settle();
  expect(await Promise.all([a, b, own, next].map(({ session }) => isClosed(session)))).toEqual([
    false,
    false,
    true,
    false,
  ]);
});

test("a pool that closes leaves no session and no timer", async () => {
  const { clock, opened, pool, open } = world();
  await pool.take("a", open).settle();
  pool.take("b", open);
  pool.take(undefined, open);
  await pool.close();
  expect(await Promise.all(opened.map(isClosed))).toEqual([true, true, true]);
  expect(clock.waiting()).toBe(0);
});
