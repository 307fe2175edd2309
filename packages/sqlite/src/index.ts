export { openSqliteStore, type SqliteStore, type SqliteStoreOptions, sqliteStore } from "./store.ts";
