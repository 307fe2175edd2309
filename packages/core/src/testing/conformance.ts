import assert from "node:assert/strict";
import { auditFacts } from "./facts/audit.ts";
import { cancelFacts } from "./facts/cancel.ts";
import { closeFacts } from "./facts/close.ts";
import { copyFacts } from "./facts/copies.ts";
import { damageFacts } from "./facts/damage.ts";
import { endFacts } from "./facts/ends.ts";
import { eventFacts } from "./facts/events.ts";
import { faultFacts } from "./facts/faults.ts";
import { forkFaultFacts } from "./facts/fork-faults.ts";
import { forkResumeFacts } from "./facts/fork-resume.ts";
import { forkFacts } from "./facts/forks.ts";
import { manyFacts } from "./facts/many.ts";
import { ownershipFacts } from "./facts/ownership.ts";
import { pruneFacts } from "./facts/prune.ts";
import { replayFacts } from "./facts/replay.ts";
import { signalFacts } from "./facts/signals.ts";
import { stepFacts } from "./facts/steps.ts";
import { suspendFacts } from "./facts/suspend.ts";
import { takeoverFacts } from "./facts/takeover.ts";
import { takeFacts } from "./facts/takes.ts";
import { viewFacts } from "./facts/views.ts";
import { waitFacts } from "./facts/waits.ts";
import { createHandClock } from "./hand-clock.ts";
import type { ConformanceHost, OpenConformanceStore } from "./harness.ts";
import type { Facts, World } from "./world.ts";

export interface HostConformance {
  /** Stands before the name of every test. */
  readonly name: string;
  /** Opens a new, empty store. */
  readonly open: OpenConformanceStore;
  /** Registers one test with whatever runs them: `test` of node:test, vitest or another. A test fails by rejecting. */
  readonly test: (name: string, prove: () => Promise<void>) => unknown;
}

const groups: readonly Facts[] = [
  stepFacts,
  replayFacts,
  faultFacts,
  eventFacts,
  ownershipFacts,
  signalFacts,
  takeFacts,
  cancelFacts,
  takeoverFacts,
  suspendFacts,
  endFacts,
  forkFacts,
  forkResumeFacts,
  forkFaultFacts,
  waitFacts,
  viewFacts,
  copyFacts,
  pruneFacts,
  auditFacts,
  damageFacts,
  closeFacts,
  manyFacts,
];

/**
 * Registers a test for every fact that all hosts keep, however and wherever they keep their journals. For a host that is a
 * JournalStore, `overJournalStore` makes what `open` returns.
 */
export function hostConformance({ name, open, test }: HostConformance): void {
  for (const facts of groups) {
    for (const [fact, prove] of Object.entries(facts)) test(`${name}: ${fact}`, () => inNewWorld(open, prove));
  }
}

/** Proves one fact, and that nothing of it is left when all is closed. */
async function inNewWorld(open: OpenConformanceStore, prove: (world: World) => Promise<void>): Promise<void> {
  const clock = createHandClock();
  const store = await open(clock);
  const hosts = new Set<ConformanceHost>();
  const world: World = {
    clock,
    async connect() {
      const connected = await store.connect();
      const crash = async (): Promise<void> => {
        hosts.delete(own);
        await connected.crash();
      };
      const own: ConformanceHost = { ...connected, crash };
      hosts.add(own);
      return own;
    },
  };
  // A fact that does not hold may leave code behind that never ends: then only its own error is told.
  await prove(world);
  for (const { host } of hosts) await host.close();
  await store.dispose();
  assert.equal(clock.armed(), 0, "timers are still armed after every host was closed");
}
