export { inspectSqliteStore, type StoreInspection } from "./inspect.ts";
export { openJournalStore, type SqliteStore, type SqliteStoreOptions, sqliteHost } from "./store.ts";
