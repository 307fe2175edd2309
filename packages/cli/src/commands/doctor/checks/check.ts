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

export function ok(name: string, message: string): Check {
  return { name, status: "ok", message };
}

export function warning(name: string, message: string, fix?: string): Check {
  return { name, status: "warning", message, ...(fix === undefined ? {} : { fix }) };
}

export function missing(name: string, message: string, fix?: string): Check {
  return { name, status: "missing", message, ...(fix === undefined ? {} : { fix }) };
}

/** Prevents every run until it is fixed. */
export function blocking(name: string, message: string, fix?: string): Check {
  return { ...missing(name, message, fix), blocks: true };
}
