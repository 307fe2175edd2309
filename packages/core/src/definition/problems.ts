import type { Problem } from "../base/errors.ts";
import { suggestOneOf } from "./suggest.ts";

/** Gathers problems while something is read, so that all can be told at once. */
export interface Report {
  readonly problems: readonly Problem[];
  add(path: string, message: string, suggestion?: string): void;
  /** Everything another reader found, under a path. */
  include(path: string, problems: readonly Problem[]): void;
  /** Keys that are not known, each with the closest one that is. */
  unknownKeys(path: string, value: object, known: readonly string[]): void;
}

export function createReport(): Report {
  const problems: Problem[] = [];
  const add = (path: string, message: string, suggestion?: string): void => {
    problems.push({ path, message, ...(suggestion === undefined ? {} : { suggestion }) });
  };
  return {
    problems,
    add,
    include: (path, found) => {
      for (const problem of found) problems.push({ ...problem, path: inside(path, problem.path) });
    },
    unknownKeys: (path, value, known) => {
      for (const key of Object.keys(value)) {
        if (!known.includes(key)) add(inside(path, key), "is not a known option", suggestOneOf(key, known));
      }
    },
  };
}

function inside(path: string, rest: string): string {
  return path === "" ? rest : `${path}.${rest}`;
}
