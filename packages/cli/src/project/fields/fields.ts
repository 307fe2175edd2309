import { isSluiceError, type Json, type Problem } from "@sluice/core";
import { didYouMean } from "@sluice/core/runtime";
import { textAt } from "@sluice/view/words";

/** Reads one value of a config. For an invalid value it adds to `problems` and returns undefined. */
export type Read<T> = (value: unknown, path: string, problems: Problem[]) => T | undefined;

/** A value that must pass one test. The message never shows the value, which may be a misplaced key. */
export function that<T>(isIt: (value: unknown) => value is T, message: string, suggestion?: string): Read<T> {
  return (value, path, problems) => {
    if (isIt(value)) return value;
    problems.push(problem(path, `${message}, not ${kindOf(value)}`, suggestion));
    return undefined;
  };
}

export const text = that(
  (value): value is string => typeof value === "string" && value.trim() !== "",
  "must be a string",
);

/** A string that meets a further rule. */
export function textLike(fault: (value: string) => string | undefined, suggestion?: string): Read<string> {
  return (value, path, problems) => {
    const read = text(value, path, problems);
    const message = read === undefined ? undefined : fault(read);
    if (message === undefined) return read;
    problems.push(problem(path, message, suggestion));
    return undefined;
  };
}

export function oneOf<const T extends string>(known: readonly T[]): Read<T> {
  return (value, path, problems) => {
    const found = known.find((one) => one === value);
    if (found !== undefined) return found;
    const close = typeof value === "string" ? didYouMean(value, known) : undefined;
    const message = `must be ${known.map((one) => `"${one}"`).join(" or ")}`;
    problems.push(problem(path, message, close === undefined ? undefined : `did you mean "${close}"?`));
    return undefined;
  };
}

export const wholeNumber = that(
  (value): value is number => typeof value === "number" && Number.isSafeInteger(value) && value >= 1,
  "must be a whole number of at least 1",
);

const list = that((value): value is readonly unknown[] => Array.isArray(value), "must be a list", "write […]");

export function listOf<T>(item: Read<T>): Read<readonly T[]> {
  return (value, path, problems) =>
    list(value, path, problems)?.flatMap((one, at) => item(one, `${path}[${at}]`, problems) ?? []);
}

/** What another reader read, in another form. */
export function mapped<T, U>(read: Read<T>, to: (value: T) => U): Read<U> {
  return (...given) => {
    const value = read(...given);
    return value === undefined ? undefined : to(value);
  };
}

const record = that(
  (value): value is object => membersOf(value) !== undefined,
  "must be an object",
  "write { name: … }",
);

/** An object of values by name; `key` returns the problem of an invalid name. */
export function recordOf<T>(
  item: Read<T>,
  key: (name: string) => Omit<Problem, "path"> | undefined,
): Read<ReadonlyMap<string, T>> {
  return (value, path, problems) => {
    const members = membersOf(record(value, path, problems));
    if (members === undefined) return undefined;
    const read = new Map<string, T>();
    for (const [name, member] of members) {
      const fault = key(name);
      const one = fault === undefined ? item(member, `${path}.${name}`, problems) : undefined;
      if (fault !== undefined) problems.push({ path: `${path}.${name}`, ...fault });
      if (one !== undefined) read.set(name, one);
    }
    return read;
  };
}

/** An object that `check` validates: problems that it throws are added. */
export function checkedBy<T>(isIt: (value: unknown) => value is T, check: (value: T) => void): Read<T> {
  const shape = that(isIt, "must be an object", "write { name: { … } }");
  return (value, path, problems) => {
    const read = shape(value, path, problems);
    if (read === undefined) return undefined;
    try {
      check(read);
      return read;
    } catch (thrown) {
      if (!isSluiceError(thrown)) throw thrown;
      const inside = thrown.detail?.problems;
      if (!Array.isArray(inside)) problems.push({ path, message: thrown.message });
      else problems.push(...inside.map(problemOf));
      return undefined;
    }
  };
}

function problem(path: string, message: string, suggestion?: string): Problem {
  return suggestion === undefined ? { path, message } : { path, message, suggestion };
}

function problemOf(value: Json): Problem {
  return problem(textAt(value, "path"), textAt(value, "message"), textAt(value, "suggestion") || undefined);
}

/** The defined members of a plain object; undefined for anything else. */
export function membersOf(value: unknown): readonly (readonly [string, unknown])[] | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof Promise) return undefined;
  return Object.entries(value).filter(([, member]) => member !== undefined);
}

/** Describes a value without showing it. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return `${value}`;
  if (Array.isArray(value)) return "a list";
  if (value instanceof Promise) return "a promise";
  if (typeof value === "number" || typeof value === "boolean") return `${value}`;
  if (typeof value === "string") return value.trim() === "" ? "an empty string" : "a string";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
