export { inspectSqliteStore, type StoreInspection } from "./inspect.ts";
export { openJournalStore, type SqliteHostOptions, type SqliteStore, sqliteHost } from "./store.ts";
