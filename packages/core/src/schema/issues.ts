import { shortened } from "../base/cut-texts.ts";
import { messageOf } from "../base/errors.ts";
import { sourcePlaceOf } from "../base/source-place.ts";
import type { Issue } from "./schema.ts";

/** Limits the issues of a hostile value. */
export const MAX_ISSUES = 20;
const MAX_MESSAGE = 300;
const MAX_PATH = 200;

/** The verdict on a value that a schema does not accept. */
interface Refusal {
  readonly ok: false;
  readonly issues: readonly Issue[];
}

/** An issue as a Standard Schema reports it. */
export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

export function refused(found: readonly StandardIssue[]): Refusal {
  const issues = found.slice(0, MAX_ISSUES).map(({ path = [], message }) => ({
    path: issuePath(path.map((piece) => (typeof piece === "object" ? piece.key : piece))),
    message: readableMessage(message),
  }));
  return { ok: false, issues };
}

/** The issues in one line. */
export function issuesText(issues: readonly Issue[]): string {
  return issues.map(({ path, message }) => `${path} ${message}`).join("; ");
}

/** For a value that is not JSON, by its `jsonFault`. */
export function notJson(fault: string): Refusal {
  const [path = "$", ...rest] = fault.split(": ");
  return { ok: false, issues: [{ path, message: readableMessage(rest.join(": ")) }] };
}

/** A schema that throws rejects the value. */
export function failed(thrown: unknown): Refusal {
  const message = readableMessage(`the schema could not check this value: ${messageOf(thrown)}`);
  const { file, line, column } = sourcePlaceOf(thrown) ?? {};
  const at = file === undefined ? {} : { at: `${file}:${line}:${column}` };
  return { ok: false, issues: [{ path: "$", message, ...at }] };
}

/** `$.steps[0]["a key"]`. */
export function issuePath(pieces: readonly PropertyKey[]): string {
  const text = pieces.map((piece) => {
    if (typeof piece === "number") return `[${piece}]`;
    const key = String(piece);
    return /^[A-Za-z_$][A-Za-z0-9_$-]*$/.test(key) ? `.${key}` : `[${JSON.stringify(shortened(key, 60))}]`;
  });
  return shortened(`$${text.join("")}`, MAX_PATH);
}

/** A message short enough for a model, whatever value it quotes. */
export function readableMessage(message: string): string {
  return shortened(message, MAX_MESSAGE);
}
