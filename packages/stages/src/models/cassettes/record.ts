import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Message,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import {
  type Clock,
  createSecretFilter,
  type Json,
  messageOf,
  type SecretFilter,
  SluiceError,
  systemClock,
} from "@sluice/core";
import { sessionSecrets } from "../../secrets/detect.ts";
import { secretForms } from "../../secrets/encodings.ts";
import type { ResolvedModel, TurnPosition } from "../model.ts";
import { type ModelObject, resolveModel } from "../registry.ts";
import { type CassetteWriter, type Exchange, openCassette } from "./cassette.ts";
import { createMask } from "./mask.ts";
import { cleanParts } from "./parts.ts";
import { decodeRequest, encodeRequest } from "./request.ts";
import type { ModelTraffic, TrafficScope } from "./traffic.ts";
import { encodeThrown, encodeValue } from "./values.ts";

export interface RecordOptions {
  /** What to do with a file that is there: `refuse` (when omitted) or `append`, for a run that is resumed. */
  readonly existing?: "refuse" | "append";
  /** Keeps the texts of requests, without secrets, for people and for telling what differs; true when omitted. False keeps digests only. */
  readonly texts?: boolean;
  /** Takes out of a request's texts what is different each time, before they are compared and kept: give the same when replaying. */
  readonly normalize?: (text: string) => string;
}

export interface RecordModelOptions extends RecordOptions {
  /** Where keys are read, and whose secrets are kept out of the file; `process.env` when omitted. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Further variables whose values are secret. */
  readonly secrets?: readonly string[];
  /** The workspace; the process's working directory when omitted. */
  readonly cwd?: string;
  readonly clock?: Clock;
}

/** A recording of all models of a session. */
export interface RecordedTraffic extends ModelTraffic {
  readonly file: string;
  /** Why writing ended early; undefined while everything is written. */
  readonly fault: SluiceError | undefined;
}

/**
 * Records everything that all models of a session are asked and answer, those that stages name included. The file is made
 * when the first model is ready. A relative path starts at the process's working directory.
 */
export function recordTraffic(file: string, options: RecordOptions = {}): RecordedTraffic {
  const path = resolve(file);
  let tape: CassetteWriter | undefined;
  let real = path;
  return {
    file: path,
    get fault() {
      return tape?.fault;
    },
    get files() {
      return [real];
    },
    async model({ load }, place) {
      // First: a run without a key leaves no file behind.
      const model = await load();
      if (tape === undefined) {
        tape = openCassette(path, { existing: options.existing, now: place.clock.now() });
        real = realpathSync(path);
      }
      return recorded(model, tape, place, options);
    },
  };
}

/**
 * One model that records what it is asked and answers: an id, a model object of the AI SDK, or a resolved model. Errors: those
 * of `resolveModel`, Validation `cassette_exists`, Session `cassette_unwritable`.
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
  tape: CassetteWriter,
  place: TrafficScope,
  options: RecordOptions,
): ResolvedModel {
  const known = new WeakMap<LanguageModelV4Message, string>();
  return {
    ...model,
    at: (position) => {
      const inner = model.at(position);
      const begin = (call: LanguageModelV4CallOptions, kind: Exchange["call"]): Take =>
        beginTake({ call, kind, position, model, tape, place, options, known });
      return recordedModel(inner, begin);
    },
  };
}

function recordedModel(
  inner: LanguageModelV4,
  begin: (call: LanguageModelV4CallOptions, kind: Exchange["call"]) => Take,
) {
  const model: LanguageModelV4 = {
    specificationVersion: "v4",
    provider: inner.provider,
    modelId: inner.modelId,
    supportedUrls: inner.supportedUrls,
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
        return { ...result, stream: recordedStream(result.stream.getReader(), take) };
      } catch (thrown) {
        take.failed(thrown);
        throw thrown;
      }
    },
  };
  return model;
}

function recordedStream(
  reader: ReadableStreamDefaultReader<LanguageModelV4StreamPart>,
  take: Take,
): ReadableStream<LanguageModelV4StreamPart> {
  return new ReadableStream<LanguageModelV4StreamPart>(
    {
      async pull(controller) {
        try {
          const next = await reader.read();
          if (!next.done) {
            take.part(next.value);
            controller.enqueue(next.value);
            return;
          }
        } catch (thrown) {
          take.failed(thrown);
          throw thrown;
        }
        // In the file before the caller knows that it is over.
        take.end("done");
        controller.close();
      },
      async cancel(reason) {
        try {
          take.end("left");
        } finally {
          await reader.cancel(reason);
        }
      },
    },
    // Nothing is read ahead, so that what is recorded is what was handed on.
    { highWaterMark: 0 },
  );
}

/** One exchange while it is under way. Only the first end counts. */
interface Take {
  opened(): void;
  part(part: unknown): void;
  failed(thrown: unknown): void;
  end(how: "done" | "left" | "aborted"): void;
}

interface TakeOptions {
  readonly call: LanguageModelV4CallOptions;
  readonly kind: Exchange["call"];
  readonly position: TurnPosition;
  readonly model: ResolvedModel;
  readonly tape: CassetteWriter;
  readonly place: TrafficScope;
  readonly options: RecordOptions;
  readonly known: WeakMap<LanguageModelV4Message, string>;
}

function beginTake({ call, kind, position, model, tape, place, options, known }: TakeOptions): Take {
  if (tape.fault !== undefined) throw tape.fault;
  const { clock } = place;
  const { stage, turn, attempt, runId } = position;
  const mask = createMask({ ...place, runId });
  const secrets = createSecretFilter(secretForms(place.secrets));
  const request = encodeRequest(
    decodeRequest(call, { mask, normalize: options.normalize, known }),
    options.texts !== false,
  );
  const started = clock.now();
  const sinceStart = (): number => Math.max(0, clock.now() - started);
  const parts: [number, Json][] = [];
  const signal = call.abortSignal;
  let opened: number | null = null;
  let over = false;

  const write = (end: Exchange["end"], error?: Json): void => {
    if (over) return;
    over = true;
    signal?.removeEventListener("abort", aborted);
    tape.write({
      stage,
      turn,
      attempt,
      model: mask.text(model.id),
      call: kind,
      request,
      opened,
      parts: cleanParts(parts, mask),
      end,
      ...(error === undefined ? {} : { error: mask.json(error) }),
      ms: sinceStart(),
    });
  };
  const aborted = (): void => {
    try {
      write("aborted");
    } catch (fault) {
      // Nobody waits for this call any more: the tape keeps the fault, and every later call fails with it.
      if (tape.fault === undefined) throw fault;
    }
  };
  if (signal?.aborted !== true) signal?.addEventListener("abort", aborted, { once: true });

  return {
    opened: () => {
      opened = sinceStart();
    },
    part: (part) => {
      if (over) return;
      parts.push([sinceStart(), encoded(part, secrets)]);
    },
    failed: (thrown) => {
      if (thrown !== tape.fault) write(signal?.aborted === true ? "aborted" : "failed", encodeThrown(thrown, secrets));
    },
    end: (how) => write(signal?.aborted === true ? "aborted" : how),
  };
}

/** A part as it was when it came, whatever is done with it later. */
function encoded(part: unknown, secrets: SecretFilter): Json {
  try {
    if (typeof part === "object" && part !== null && "type" in part && part.type === "error" && "error" in part)
      return { type: "error", error: encodeThrown(part.error, secrets) };
    return encodeValue(part);
  } catch (cause) {
    const message = `a part of the model's answer cannot be recorded: ${messageOf(cause)}`;
    throw new SluiceError("Validation", "cassette_part", message, { cause });
  }
}
