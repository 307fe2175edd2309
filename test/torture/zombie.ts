import assert from "node:assert/strict";
import { mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { endOf, type Ground, type Reference } from "./case.ts";
import { checkEnd } from "./checks.ts";
import { openPlace } from "./place.ts";
import { type Life, startLife } from "./process.ts";

const PATIENCE_MS = 90_000;

/**
 * A process stops in the middle of a sibling's step and loses the lock by which others know that it lives; a second one takes
 * the run over and is about to record that very step; then the first goes on. Nothing of it may come into the journal.
 */
export async function zombie(reference: Reference, ground: Ground): Promise<void> {
  const { world } = reference;
  assert.equal(world, "steps");
  const place = openPlace(world, mkdtempSync(join(ground.root, "zombie-")));
  const { folder } = place;
  const lives: Life[] = [];
  const begin = async (plan: Parameters<typeof startLife>[0]): Promise<Life> => {
    const life = startLife(plan, ground.cache);
    lives.push(life);
    await Promise.race([stopped(life), life.over]);
    return life;
  };
  try {
    const death = { label: "works main/fan/a write", instead: "lose-lock-and-stop" } as const;
    const first = await begin({ world, folder, death });
    const runId = await place.runId();
    assert.ok(runId !== undefined, "the first process began nothing");
    const second = await begin({
      world,
      folder,
      runId,
      death: { label: "before main/fan/a done write", instead: "stop" },
    });
    first.signal("SIGCONT");
    const was = await first.over;
    assert.equal(was.refused, "ownership_lost", `the first process came to ${was.ended ?? was.refused}`);
    second.signal("SIGCONT");
    const is = await second.over;
    assert.equal(is.ended, "completed", `the second process came to ${is.ended ?? is.refused}: ${is.why}`);
    const { end, journals } = await endOf(place);
    checkEnd(
      reference,
      { place, runId, lives: [was, is], unfinished: [], options: {} },
      { end, journals, accepted: [] },
    );
  } finally {
    for (const life of lives) life.signal("SIGKILL");
    await Promise.allSettled(lives.map(({ over }) => over));
    await place.close();
  }
}

/** Waits until a process is stopped. */
async function stopped({ pid }: Life): Promise<void> {
  for (let waited = 0; waited < PATIENCE_MS; waited += 10) {
    if (/\) T /.test(readFileSync(`/proc/${pid}/stat`, "utf8"))) return;
    await setTimeout(10);
  }
  throw new Error("the process did not stop");
}
