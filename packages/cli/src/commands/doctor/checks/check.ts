/** One thing `sluice doctor` looked at. */
export interface Check {
  /** What it is about, in a word. */
  readonly name: string;
  /** `warning` works but deserves a look, `missing` is not there or cannot be used. */
  readonly status: "ok" | "warning" | "missing";
  readonly message: string;
  /** What mends it. */
  readonly mend?: string;
  /** Whether no run can start here as long as it is so. */
  readonly blocks?: true;
}

export function ok(name: string, message: string): Check {
  return { name, status: "ok", message };
}

export function warning(name: string, message: string, mend?: string): Check {
  return { name, status: "warning", message, ...(mend === undefined ? {} : { mend }) };
}

export function missing(name: string, message: string, mend?: string): Check {
  return { name, status: "missing", message, ...(mend === undefined ? {} : { mend }) };
}

/** Nothing runs before this is mended. */
export function blocking(name: string, message: string, mend?: string): Check {
  return { ...missing(name, message, mend), blocks: true };
}
