// What a host needs: compiled definitions; journals, their records, verification and export.
export { compilePipeline } from "./definition/pipeline.ts";
export type { PipelineDefinition } from "./definition/read.ts";
export { deadResumes } from "./journal/admin/dead-resumes.ts";
export { type ExportedJournal, type ExportedRecord, type ExportOptions, exportLines } from "./journal/audit/export.ts";
export { type RunExport, readExport } from "./journal/audit/read-export.ts";
export { checkChain, verifyJournal } from "./journal/audit/verify.ts";
export { verifyExport } from "./journal/audit/verify-export.ts";
export { createHost, type HostOptions } from "./journal/host/host.ts";
export { GENESIS, hashRecord, readCost, readEvents } from "./journal/record.ts";
export type { AttemptRef, AttemptStepRef, StepRef } from "./journal/step-id.ts";
export type {
  Commit,
  JournalStore,
  NewRunRow,
  RunRow,
  StoreChange,
  StoredRequest,
  WholeRun,
} from "./journal/store/journal-store.ts";
export { createMemoryJournals, type MemoryJournals, type MemoryJournalsOptions } from "./journal/store/memory-store.ts";
export { inTreeOrder, type OrderedRecord, TreeReader, type TreeRecord } from "./journal/tree-order.ts";
export { asRead, forkPointsOf, recordsBefore } from "./run/replay/fork-points.ts";
