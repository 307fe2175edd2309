import { StatementSync } from "node:sqlite";
import { vi } from "vitest";

/** What a disk says under a store, and the code that the store makes of it. */
export const FAULTS = {
  write: { errcode: 778, says: "disk I/O error", at: "COMMIT", code: "store_io", fix: /check the disk/ },
  fsync: { errcode: 1034, says: "disk I/O error", at: "COMMIT", code: "store_io", fix: /check the disk/ },
  full: { errcode: 13, says: "database or disk is full", at: "COMMIT", code: "store_full", fix: /free some space/ },
  locked: { errcode: 5, says: "database is locked", at: "BEGIN IMMEDIATE", code: "store_busy", fix: /try again/ },
} as const;
export type FaultKind = keyof typeof FAULTS;

export interface PlannedFault {
  readonly kind: FaultKind;
  /** The first transaction that fails, from 1. */
  readonly at: number;
  /** Whether all later ones fail, too, or none. */
  readonly lasts: boolean;
  /** The transaction takes place all the same: as when only the word of the sync was bad. */
  readonly kept?: boolean;
}

/** The disk below all SQLite stores of this process. */
export interface FaultyDisk extends Disposable {
  /** Transactions begun since it was put in. */
  readonly transactions: number;
  readonly failed: boolean;
  fail(fault: PlannedFault): void;
  heal(): void;
}

/** Puts a disk that can fail below the stores of this process, until it is disposed of. */
export function faultyDisk(onFailed: () => void = () => undefined): FaultyDisk {
  const real = StatementSync.prototype.run;
  let planned: PlannedFault | undefined;
  let transactions = 0;
  let failed = false;
  /** What this statement fails with; undefined when it does not. */
  const faultOf = (sql: string): PlannedFault | undefined => {
    if (sql === "BEGIN IMMEDIATE") transactions += 1;
    if (planned === undefined || sql !== FAULTS[planned.kind].at) return undefined;
    const now = planned.lasts ? transactions >= planned.at : transactions === planned.at && !failed;
    return now ? planned : undefined;
  };
  const spy = vi.spyOn(StatementSync.prototype, "run").mockImplementation(function (this: StatementSync, ...given) {
    const fault = faultOf(this.sourceSQL);
    if (fault === undefined) return real.apply(this, given);
    if (!failed) onFailed();
    failed = true;
    if (fault.kept === true) real.apply(this, given);
    const { errcode, says } = FAULTS[fault.kind];
    throw Object.assign(new Error(says), { code: "ERR_SQLITE_ERROR", errcode, errstr: says });
  });
  return {
    get transactions() {
      return transactions;
    },
    get failed() {
      return failed;
    },
    fail: (fault) => {
      planned = fault;
    },
    heal: () => {
      planned = undefined;
    },
    [Symbol.dispose]: () => spy.mockRestore(),
  };
}
