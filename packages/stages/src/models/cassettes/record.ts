import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Message,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import { type Clock, isSluiceError, type Json, SluiceError, systemClock } from "@sluice/core";
import { createSecretFilter, messageOf, type SecretFilter } from "@sluice/core/runtime";
import { sessionSecrets } from "../../secrets/detect.ts";
import { secretForms } from "../../secrets/encodings.ts";
import { type ResolvedModel, type TurnPosition, withCalls } from "../model.ts";
import { type ModelObject, resolveModel } from "../registry.ts";
import { type CassetteWriter, type Exchange, openCassette } from "./cassette.ts";
import { createMask, type Mask } from "./mask.ts";
import { cleanParts } from "./parts.ts";
import { encodeRequest, requestShape } from "./request.ts";
import type { ModelTraffic, TrafficScope } from "./traffic.ts";
import { encodeThrown, encodeValue } from "./values.ts";

export interface RecordOptions {
  /** What to do with an existing file: `refuse` (default) or `append`, for a resumed run. */
  readonly existing?: "refuse" | "append";
  /** Records the texts of requests, with secrets masked, for readers and differences; default true. False records only digests. */
  readonly texts?: boolean;
  /** Removes parts of request texts that differ each time; playback needs the same option. */
  readonly normalize?: (text: string) => string;
}

export interface RecordModelOptions extends RecordOptions {
  /** For keys, and for the secrets to mask; default `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Further variables whose values are secret. */
  readonly secrets?: readonly string[];
  /** The workspace; default the process's working directory. */
  readonly cwd?: string;
  readonly clock?: Clock;
}

export interface RecordedTraffic extends ModelTraffic {
  readonly file: string;
  /** The error that ended writing. */
  readonly fault: SluiceError | undefined;
}

/**
 * Records the traffic of all models of a session, including those that stages name. The file is created when the first model
 * has been resolved. A relative path starts at the process's working directory.
 */
export function recordTraffic(file: string, options: RecordOptions = {}): RecordedTraffic {
  const path = resolve(file);
  let cassette: CassetteWriter | undefined;
  let real = path;
  return {
    file: path,
    get fault() {
      return cassette?.fault;
    },
    get files() {
      return [real];
    },
    async model({ load }, scope) {
      // Before the file is created, so that a run without a key leaves no file behind.
      const model = await load();
      if (cassette === undefined) {
        cassette = openCassette(path, options.existing ?? "refuse", scope.clock.now());
        real = realpathSync(path);
      }
      return recorded(model, cassette, scope, options);
    },
  };
}

/**
 * A model whose traffic is recorded, from an id, an AI SDK model object or a resolved model. Throws the errors of
 * `resolveModel`, Validation `cassette_exists` and Session `cassette_unwritable`.
 */
export async function recordModel(
  model: string | ModelObject | ResolvedModel,
  file: string,
  options: RecordModelOptions = {},
): Promise<ResolvedModel> {
  const { env = process.env, clock = systemClock, secrets = [] } = options;
  const root = realpathSync(options.cwd ?? process.cwd());
  const resolved =
    typeof model === "object" && "at" in model ? model : await resolveModel(model, { env, cwd: root, clock });
  const { known } = sessionSecrets(env, { named: secrets, passed: [], values: resolved.secrets });
  const wanted = { stage: "", load: () => Promise.resolve(resolved) };
  return await recordTraffic(file, options).model(wanted, { root, env, clock, secrets: known });
}

function recorded(
  model: ResolvedModel,
  cassette: CassetteWriter,
  scope: TrafficScope,
  options: RecordOptions,
): ResolvedModel {
  const known = new WeakMap<LanguageModelV4Message, string>();
  const at = (position: TurnPosition): LanguageModelV4 => {
    const inner = model.at(position);
    const begin = (call: LanguageModelV4CallOptions, kind: Exchange["call"]): Take => {
      if (cassette.fault !== undefined) throw cassette.fault;
      const mask = createMask({ ...scope, runId: position.runId });
      const shape = requestShape(call, { mask, normalize: options.normalize, known });
      const { stage, turn, attempt, key } = position;
      const request = encodeRequest(shape, options.texts !== false);
      const item = key === undefined ? {} : { key: mask.text(key) };
      const begun = { stage, turn, ...item, attempt, model: mask.text(model.id), call: kind, request };
      return beginTake(begun, { cassette, scope, mask, signal: call.abortSignal });
    };
    return withCalls(inner, {
      async doGenerate(call) {
        const take = begin(call, "generate");
        try {
          const result = await inner.doGenerate(call);
          const { request: _request, response, ...kept } = result;
          const { headers: _headers, body: _body, ...facts } = response ?? {};
          take.opened();
          take.part({ ...kept, ...(response === undefined ? {} : { response: facts }) });
          take.end("done");
          return result;
        } catch (thrown) {
          take.failed(thrown);
          throw thrown;
        }
      },
      async doStream(call) {
        const take = begin(call, "stream");
        try {
          const result = await inner.doStream(call);
          take.opened();
          const { part, failed } = take;
          const done = (): void => take.end("done");
          return { ...result, stream: tapStream(result.stream, { part, failed, done, left: () => take.end("left") }) };
        } catch (thrown) {
          take.failed(thrown);
          throw thrown;
        }
      },
    });
  };
  return { ...model, at };
}

/** What observes a model's stream. Exactly one of `failed`, `done` and `left` ends it. */
interface StreamTap {
  readonly part: (part: LanguageModelV4StreamPart) => void;
  readonly failed: (thrown: unknown) => void;
  /** Called before the reader sees the end. */
  readonly done: () => void;
  /** The reader stopped reading. */
  readonly left: () => void;
}

/** The same stream, observed. Nothing is read ahead, so that exactly the consumed parts are observed. */
function tapStream(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  tap: StreamTap,
): ReadableStream<LanguageModelV4StreamPart> {
  const reader = stream.getReader();
  return new ReadableStream<LanguageModelV4StreamPart>(
    {
      async pull(controller) {
        try {
          const next = await reader.read();
          if (!next.done) {
            tap.part(next.value);
            controller.enqueue(next.value);
            return;
          }
        } catch (thrown) {
          tap.failed(thrown);
          throw thrown;
        }
        tap.done();
        controller.close();
      },
      async cancel(reason) {
        try {
          tap.left();
        } finally {
          await reader.cancel(reason);
        }
      },
    },
    { highWaterMark: 0 },
  );
}

type Take = ReturnType<typeof beginTake>;

/** What is known of an exchange before it is sent. */
type ExchangeStart = Pick<Exchange, "stage" | "turn" | "key" | "attempt" | "model" | "call" | "request">;

interface TakeOptions {
  readonly cassette: CassetteWriter;
  readonly scope: TrafficScope;
  readonly mask: Mask;
  readonly signal: AbortSignal | undefined;
}

/** An exchange in progress. Only the first end counts. */
function beginTake(begun: ExchangeStart, { cassette, scope, mask, signal }: TakeOptions) {
  const { clock } = scope;
  const secrets = createSecretFilter(secretForms(scope.secrets));
  const started = clock.now();
  const sinceStart = (): number => Math.max(0, clock.now() - started);
  const parts: [number, Json][] = [];
  let opened: number | null = null;
  let written = false;

  const write = (end: Exchange["end"], error?: Json): void => {
    if (written) return;
    written = true;
    signal?.removeEventListener("abort", aborted);
    const failure = error === undefined ? {} : { error: mask.json(error) };
    cassette.write({ ...begun, opened, parts: [...cleanParts(parts, mask)], end, ...failure, ms: sinceStart() });
  };
  const aborted = (): void => {
    try {
      // A call that was ended because the model fell silent failed; it was not aborted by its caller.
      const reason: unknown = signal?.reason;
      if (isSluiceError(reason) && reason.class === "ProviderTransient") write("failed", encodeThrown(reason, secrets));
      else write("aborted");
    } catch (fault) {
      // This call has no caller to throw to; every later call fails with the cassette's fault.
      if (cassette.fault === undefined) throw fault;
    }
  };
  if (signal?.aborted !== true) signal?.addEventListener("abort", aborted, { once: true });

  return {
    opened: (): void => {
      opened = sinceStart();
    },
    part: (part: unknown): void => {
      if (!written) parts.push([sinceStart(), encoded(part, secrets)]);
    },
    failed: (thrown: unknown): void => {
      if (thrown !== cassette.fault)
        write(signal?.aborted === true ? "aborted" : "failed", encodeThrown(thrown, secrets));
    },
    end: (how: "done" | "left"): void => write(signal?.aborted === true ? "aborted" : how),
  };
}

/** Encodes a part when it arrives, because its consumer may change it. */
function encoded(part: unknown, secrets: SecretFilter): Json {
  try {
    if (typeof part === "object" && part !== null && "type" in part && part.type === "error" && "error" in part)
      return { type: "error", error: encodeThrown(part.error, secrets) };
    return encodeValue(part);
  } catch (cause) {
    const message = `a part of the model's response cannot be recorded: ${messageOf(cause)}`;
    throw new SluiceError("Validation", "cassette_part", message, { cause });
  }
}
