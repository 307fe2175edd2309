import assert from "node:assert/strict";
import { auditFacts } from "./facts/audit.ts";
import { cancelFacts } from "./facts/cancel.ts";
import { closeFacts } from "./facts/close.ts";
import { copyFacts } from "./facts/copies.ts";
import { damageFacts } from "./facts/damage.ts";
import { endFacts } from "./facts/ends.ts";
import { eventFacts } from "./facts/events.ts";
import { fanOutFaultFacts } from "./facts/fan-out-faults.ts";
import { fanOutResumeFacts } from "./facts/fan-out-resume.ts";
import { fanOutFacts } from "./facts/fan-outs.ts";
import { faultFacts } from "./facts/faults.ts";
import { manyFacts } from "./facts/many.ts";
import { orderFacts } from "./facts/order.ts";
import { orphanCancelFacts } from "./facts/orphan-cancel.ts";
import { ownershipFacts } from "./facts/ownership.ts";
import { pruneFacts } from "./facts/prune.ts";
import { replayFacts } from "./facts/replay.ts";
import { runFaultFacts } from "./facts/run-faults.ts";
import { signalFacts } from "./facts/signals.ts";
import { sleepFacts } from "./facts/sleeps.ts";
import { stepFacts } from "./facts/steps.ts";
import { suspendFacts } from "./facts/suspend.ts";
import { takeFacts } from "./facts/takes.ts";
import { viewFacts } from "./facts/views.ts";
import { waitFacts } from "./facts/waits.ts";
import { createHandClock } from "./hand-clock.ts";
import type { ConformanceHost, OpenConformanceStore } from "./harness.ts";
import type { Facts, World } from "./world.ts";

export interface HostConformance {
  /** Prefix of every test name. */
  readonly name: string;
  /** Opens a new, empty store. */
  readonly open: OpenConformanceStore;
  /** Registers one test with the test runner, for example `test` of node:test or vitest. A test fails by rejecting. */
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
  orphanCancelFacts,
  suspendFacts,
  endFacts,
  fanOutFacts,
  fanOutResumeFacts,
  fanOutFaultFacts,
  waitFacts,
  sleepFacts,
  runFaultFacts,
  viewFacts,
  orderFacts,
  copyFacts,
  pruneFacts,
  auditFacts,
  damageFacts,
  closeFacts,
  manyFacts,
];

/**
 * Registers a test for every fact that holds for all hosts, regardless of how they store journals. For a host on a
 * JournalStore, `overJournalStore` creates `open`.
 */
export function hostConformance({ name, open, test }: HostConformance): void {
  for (const facts of groups) {
    for (const [fact, prove] of Object.entries(facts)) test(`${name}: ${fact}`, () => inNewWorld(open, prove));
  }
}

/** Proves one fact on a new store, and that no timer is armed after every host is closed. */
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
  // A failed fact may leave code that never ends: the cleanup is skipped, so its own error is reported.
  await prove(world);
  for (const { host } of hosts) await host.close();
  await store.dispose();
  assert.equal(clock.armed(), 0, "timers are still armed after every host was closed");
}
