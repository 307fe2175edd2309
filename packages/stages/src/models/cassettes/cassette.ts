import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { isJson, isJsonObject, type Json, type JsonObject, parseJson, SluiceError } from "@sluice/core";
import { messageOf, shape } from "@sluice/core/runtime";

// A cassette is a text file: a header line, then one line per exchange, written at once when the exchange has ended.

const VERSION = 1;
const MODE = 0o600;

const json = shape.custom<Json>(isJson, "is not JSON");
const isSettings = (value: unknown): value is JsonObject => isJson(value) && isJsonObject(value);
// Open, since later versions may add members.
/** A message of a recorded request. The text is for readers and for showing differences. */
const messageShape = shape.openObject({ role: shape.text(), digest: shape.text(), text: shape.optional(shape.text()) });
const requestShape = shape.openObject({
  digest: shape.text(),
  from: shape.integer({ min: 0 }),
  messages: shape.list(messageShape),
  tools: shape.list(shape.pair(shape.text(), shape.text())),
  settings: shape.custom(isSettings, "Invalid input"),
});
/** One model call: the request and the complete response. */
const exchangeShape = shape.openObject({
  /** The state's id. */
  stage: shape.text(),
  /** As in `TurnPosition`. */
  turn: shape.integer({ min: 0 }),
  /** Masked like texts. */
  key: shape.optional(shape.text()),
  attempt: shape.integer({ min: 1 }),
  /** The id of the model that answered. */
  model: shape.text(),
  call: shape.oneOf(["stream", "generate"]),
  request: requestShape,
  /** Milliseconds until the response began; null if it never did. */
  opened: shape.orNull(shape.decimal({ min: 0 })),
  /** The parts of the stream, each with the milliseconds since the call; a call without a stream has its result as one part. */
  parts: shape.list(shape.pair(shape.decimal({ min: 0 }), json)),
  /** `left`: the caller stopped reading. */
  end: shape.oneOf(["done", "failed", "aborted", "left"]),
  /** The error of a failed call. */
  error: shape.optional(json),
  /** The duration of the call in milliseconds. */
  ms: shape.decimal({ min: 0 }),
});
const headerShape = shape.openObject({ sluiceCassette: shape.integer() });

export type RecordedMessage = shape.ShapeOf<typeof messageShape>;
export type RecordedRequest = shape.ShapeOf<typeof requestShape>;
export type Exchange = shape.ShapeOf<typeof exchangeShape>;

/**
 * Reads a cassette. Throws Validation `cassette_not_found`, `cassette_damaged` (with the line) or `cassette_version`.
 */
export function readCassette(file: string): readonly Exchange[] {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    const message = `cannot read the cassette ${file}: ${messageOf(cause)}; record it first`;
    throw new SluiceError("Validation", "cassette_not_found", message, { cause });
  }
  const [header = "", ...lines] = text.split("\n");
  checkHeader(file, header, lines.length > 0);
  const unfinished = lines.pop() ?? "";
  const exchanges = lines.map((line, index) => readExchange(file, line, index + 2));
  if (unfinished !== "") {
    const what = "it is incomplete because the recording process was interrupted; remove the line or record again";
    throw damaged(file, lines.length + 2, what);
  }
  return exchanges;
}

function checkHeader(file: string, header: string, whole: boolean): void {
  const parsed = parseJson(header);
  const known = parsed.ok ? parsed.value : undefined;
  if (!headerShape.fits(known, []) || !whole) throw damaged(file, 1, "it is not the header of a cassette");
  const { sluiceCassette: version } = known;
  if (version === VERSION) return;
  const message = `the cassette ${file} has version ${version}, and this version of Sluice reads version ${VERSION}; record it again`;
  throw new SluiceError("Validation", "cassette_version", message);
}

function readExchange(file: string, line: string, number: number): Exchange {
  const parsed = parseJson(line);
  if (!parsed.ok) throw damaged(file, number, `it is not JSON: ${parsed.fault}`);
  const issues: shape.ShapeIssue[] = [];
  if (exchangeShape.fits(parsed.value, issues)) return parsed.value;
  const [issue] = issues;
  throw damaged(file, number, `${issue?.path.join(".") ?? ""}: ${issue?.message ?? "it is not an exchange"}`);
}

export function damaged(file: string, line: number, what: string): SluiceError {
  const message = `line ${line} of the cassette ${file} is invalid: ${what}`;
  return new SluiceError("Validation", "cassette_damaged", message, { detail: { file, line } });
}

/**
 * Opens a cassette for writing and creates its folders; `existing` says what to do with an existing file, and `now` is in epoch
 * milliseconds. Throws Validation `cassette_exists`, the errors of `readCassette` when it
 * appends, and Session `cassette_unwritable`.
 */
export function openCassette(file: string, existing: "refuse" | "append", now: number) {
  let fault: SluiceError | undefined;
  const append = (flags: string, text: string): void => {
    try {
      writeFileSync(file, text, { flag: flags, mode: MODE });
    } catch (cause) {
      if (flags === "ax" && fileExists(cause)) throw cause;
      fault = unwritable(file, cause);
      throw fault;
    }
  };
  try {
    mkdirSync(dirname(file), { recursive: true });
  } catch (cause) {
    throw unwritable(file, cause);
  }
  const header = { sluiceCassette: VERSION, recorded: new Date(now).toISOString() };
  try {
    append("ax", `${JSON.stringify(header)}\n`);
  } catch (cause) {
    if (!fileExists(cause)) throw cause;
    if (existing === "refuse") {
      const message = `the cassette ${file} already exists; remove it, use another file, or set existing: "append"`;
      throw new SluiceError("Validation", "cassette_exists", message, { detail: { file } });
    }
    readCassette(file);
  }
  return {
    /** Appends a line in one write, so that the lines of siblings do not interleave. Throws Session `cassette_unwritable`. */
    write: (exchange: Exchange): void => {
      if (fault !== undefined) throw fault;
      append("a", `${JSON.stringify(exchange)}\n`);
    },
    /** The error that ended writing; every later call of a recorded model fails with it. */
    get fault(): SluiceError | undefined {
      return fault;
    },
  };
}

export type CassetteWriter = ReturnType<typeof openCassette>;

function fileExists(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && cause.code === "EEXIST";
}

function unwritable(file: string, cause: unknown): SluiceError {
  const message = `cannot write the cassette ${file}: ${messageOf(cause)}`;
  return new SluiceError("Session", "cassette_unwritable", message, { detail: { file }, cause });
}
