export { type Clock, systemClock } from "./base/clock.ts";
export {
  type ErrorClass,
  type ErrorForModel,
  isSluiceError,
  messageOf,
  type Problem,
  problemsError,
  SluiceError,
  toModelShape,
} from "./base/errors.ts";
export { deepFreeze, field, isJson, isJsonObject, type Json, type JsonObject, jsonFault, parseJson } from "./base/json.ts";
export type * from "./definition/spec.ts";
export type * from "./definition/types.ts";
export type * from "./gate/facts.ts";
export { GENESIS, hashRecord, readEvents } from "./journal/chain.ts";
export { EVENT_TYPES, type EventDraft, type EventType, type SluiceEvent } from "./journal/events.ts";
export { createHost, type HostOptions } from "./journal/host.ts";
export { createJournalMemory, type JournalMemory, type JournalMemoryOptions } from "./journal/memory-store.ts";
export { createSecretFilter, REDACTION_MARKER, redactJson, redactText, type SecretFilter } from "./journal/redact.ts";
export type * from "./journal/seam.ts";
export type * from "./journal/store.ts";
export { type AuditFault, type AuditReport, checkChain, verifyJournal } from "./journal/verify.ts";
