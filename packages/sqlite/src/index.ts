export { countRuns, type RunCounts } from "./admin/counts.ts";
export { inspectSqliteStore, type StoreInspection } from "./admin/inspect.ts";
export { lockService, type ProcessLock, serviceOf, takeLock } from "./admin/service.ts";
export { openJournalStore, type SqliteHostOptions, type SqliteStore, sqliteHost } from "./store.ts";
