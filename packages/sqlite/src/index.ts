export { inspectSqliteStore, type StoreInspection } from "./inspect.ts";
export { openSqliteStore, type SqliteStore, type SqliteStoreOptions, sqliteStore } from "./store.ts";
