// What a host of one's own is tested with, by any test runner.
export { type HostConformance, hostConformance } from "./testing/conformance.ts";
export { createHandClock, type HandClock } from "./testing/hand-clock.ts";
export type {
  ConformanceHost,
  ConformanceStore,
  OpenConformanceStore,
  WriteAttempt,
  WriteDecision,
  WriteFault,
} from "./testing/harness.ts";
export { overJournalStore, type SharedJournals } from "./testing/over-journal-store.ts";
