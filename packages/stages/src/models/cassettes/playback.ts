import { realpathSync } from "node:fs";
import { basename, resolve } from "node:path";
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4GenerateResult,
  LanguageModelV4Message,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import { type Clock, type Json, SluiceError, systemClock } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import { mediaTypesOfId } from "../files.ts";
import type { ResolvedModel, TurnPosition } from "../model.ts";
import { pause } from "../pause.ts";
import { damaged, type Exchange, readCassette } from "./cassette.ts";
import { createMask, createUnmask } from "./mask.ts";
import { createPlayer, type Player, type UnusedExchange } from "./playback-player.ts";
import { requestShape } from "./request.ts";
import type { ModelTraffic, TrafficScope, WantedModel } from "./traffic.ts";
import { decodeValue } from "./values.ts";

/** How much longer than recorded an aborted call waits to be aborted again. */
const ABORT_GRACE_MS = 5_000;

export interface PlaybackOptions {
  /**
   * `strict` (default): requests must equal the recorded ones; the first that does not fails its run with `cassette_diverged`.
   * `sequence`: plays the recorded turns of each stage in order, whatever the requests.
   */
  readonly match?: "strict" | "sequence";
  /** The speed of the stream: 1 as recorded, 2 twice as fast; default without delays. */
  readonly speed?: number;
  /** Removes parts of request texts that differ each time; must equal the option used for recording. */
  readonly normalize?: (text: string) => string;
}

export interface PlaybackModelOptions extends PlaybackOptions {
  /** The workspace, for recorded paths; default the process's working directory. */
  readonly cwd?: string;
  /** For HOME and TMPDIR; default `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly clock?: Clock;
}

export interface PlaybackReport {
  readonly file: string;
  /** Unused exchanges in recorded order. */
  unused(): readonly UnusedExchange[];
  /** The first request without a matching exchange, with the full difference, which a run's own error shortens. */
  readonly divergence: SluiceError | undefined;
}

/** Plays back all models of a session, without network, key or provider package. */
export interface PlaybackTraffic extends ModelTraffic, PlaybackReport {}
export interface PlaybackModel extends ResolvedModel, PlaybackReport {}

/**
 * Plays back a cassette for all models of a session, including those that stages name. A relative path starts at the process's
 * working directory. The first run reads the file, with the errors of `playbackModel`.
 */
export function playbackTraffic(file: string, options: PlaybackOptions = {}): PlaybackTraffic {
  const path = resolve(file);
  let player: Player | undefined;
  let real = path;
  const open = (): Player => {
    if (player !== undefined) return player;
    player = createPlayer(path, readCassette(path), options.match ?? "strict");
    real = realpathSync(path);
    return player;
  };
  return {
    file: path,
    get files() {
      return [real];
    },
    unused: () => open().unused(),
    get divergence() {
      return player?.divergence;
    },
    model: async (wanted, scope) => playedBack(open(), scope, options, wanted),
  };
}

/**
 * A model that plays back a cassette. Throws Validation `cassette_not_found`, `cassette_damaged` and `cassette_version`; calls
 * fail with Validation `cassette_diverged`, `cassette_exhausted` or `cassette_aborted`.
 */
export async function playbackModel(file: string, options: PlaybackModelOptions = {}): Promise<PlaybackModel> {
  const { env = process.env, clock = systemClock } = options;
  const player = createPlayer(resolve(file), readCassette(resolve(file)), options.match ?? "strict");
  const root = realpathSync(options.cwd ?? process.cwd());
  const model = playedBack(player, { root, env, clock, secrets: new Map() }, options);
  return {
    ...model,
    file: player.file,
    unused: player.unused,
    get divergence() {
      return player.divergence;
    },
  };
}

function playedBack(
  player: Player,
  scope: TrafficScope,
  options: PlaybackOptions,
  wanted: Pick<WantedModel, "stage" | "named"> = { stage: "" },
): ResolvedModel {
  const known = new WeakMap<LanguageModelV4Message, string>();
  const { normalize, speed } = options;
  const { file } = player;
  const at = (position: TurnPosition): LanguageModelV4 => {
    const { runId } = position;
    /** Finds the exchange of a call and plays it back. */
    const begin = (call: LanguageModelV4CallOptions, kind: Exchange["call"]) => {
      const mask = createMask({ ...scope, runId });
      const { key } = position;
      const masked = key === undefined ? position : { ...position, key: mask.text(key) };
      const { exchange, line } = player.take(masked, kind, requestShape(call, { mask, normalize, known }));
      const unmask = createUnmask({ ...scope, runId });
      const left = new AbortController();
      const signal = AbortSignal.any([left.signal, ...(call.abortSignal === undefined ? [] : [call.abortSignal])]);
      const decode = (value: Json): unknown => {
        try {
          return decodeValue(value, unmask);
        } catch (cause) {
          throw damaged(file, line, messageOf(cause));
        }
      };
      let reached = 0;
      return {
        exchange,
        decode,
        damaged: (what: string): SluiceError => damaged(file, line, what),
        /** Waits until `ms` recorded milliseconds have passed since the call; rejects once it is aborted or left. */
        pace: async (ms: number): Promise<void> => {
          const rest = ms - reached;
          reached = Math.max(reached, ms);
          if (speed !== undefined && rest > 0) await pause(scope.clock, rest / speed, signal);
        },
        /** Throws the recorded error. If the call was aborted, waits to be aborted again. */
        end: async (): Promise<void> => {
          if (exchange.end === "failed") throw decode(exchange.error ?? null);
          if (exchange.end !== "aborted") return;
          await pause(scope.clock, exchange.ms + ABORT_GRACE_MS, signal);
          const message = `line ${line} of the cassette ${basename(file)} is a call that was aborted after ${exchange.ms} ms when it was recorded; this run does not abort it`;
          throw new SluiceError("Validation", "cassette_aborted", message, { detail: { file, line } });
        },
        leave: (): void => left.abort(),
      };
    };
    return {
      specificationVersion: "v4",
      provider: "cassette",
      modelId: basename(file),
      supportedUrls: {},
      async doGenerate(call) {
        const playback = begin(call, "generate");
        const { exchange } = playback;
        await playback.pace(exchange.ms);
        await playback.end();
        const result = playback.decode(exchange.parts[0]?.[1] ?? null);
        if (!isResult(result)) throw playback.damaged("its part is not a model result");
        return result;
      },
      async doStream(call) {
        const playback = begin(call, "stream");
        const { exchange } = playback;
        await playback.pace(exchange.opened ?? exchange.ms);
        if (exchange.opened === null) await playback.end();
        let next = 0;
        const pull = async (controller: ReadableStreamDefaultController<LanguageModelV4StreamPart>): Promise<void> => {
          const timed = exchange.parts[next];
          next += 1;
          if (timed === undefined) {
            await playback.pace(exchange.ms);
            await playback.end();
            controller.close();
            return;
          }
          await playback.pace(timed[0]);
          const part = playback.decode(timed[1]);
          if (!isPart(part)) throw playback.damaged(`its part ${next} is not a part of a stream`);
          controller.enqueue(part);
        };
        // One part per read, as the provider sent them.
        return { stream: new ReadableStream({ pull, cancel: playback.leave }, { highWaterMark: 0 }) };
      },
    };
  };
  const pricedAs = player.modelOf(wanted.stage) ?? wanted.named;
  const takes = pricedAs === undefined ? undefined : mediaTypesOfId(pricedAs);
  return {
    id: `cassette:${file}`,
    ...(pricedAs === undefined ? {} : { pricedAs }),
    ...(takes === undefined ? {} : { takes }),
    secrets: [],
    at,
  };
}

/** The reader of the stream accepts any content, so only the type is checked. */
function isPart(value: unknown): value is LanguageModelV4StreamPart {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}

function isResult(value: unknown): value is LanguageModelV4GenerateResult {
  return typeof value === "object" && value !== null && "content" in value && Array.isArray(value.content);
}
