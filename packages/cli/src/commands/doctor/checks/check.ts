/** One line of `sluice doctor`. */
export interface Check {
  /** The subject, in a word. */
  readonly name: string;
  /** `warning`: works but needs attention. `missing`: absent or unusable. */
  readonly status: "ok" | "warning" | "missing";
  readonly message: string;
  readonly fix?: string;
  /** Whether it prevents every run. */
  readonly blocks?: true;
}

type CheckOf = (name: string, message: string, fix?: string) => Check;

const withStatus =
  (status: Check["status"]): CheckOf =>
  (name, message, fix) => ({ name, status, message, ...(fix === undefined ? {} : { fix }) });

export const ok = withStatus("ok");
export const warning = withStatus("warning");
export const missing = withStatus("missing");

/** Prevents every run until it is fixed. */
export const blocking: CheckOf = (...found) => ({ ...missing(...found), blocks: true });
