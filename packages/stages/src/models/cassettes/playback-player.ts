import { basename } from "node:path";
import { SluiceError } from "@sluice/core";
import type { TurnPosition } from "../model.ts";
import type { Exchange } from "./cassette.ts";
import { difference, type RequestShape } from "./request.ts";

/** An exchange that the playback did not use. */
export interface UnusedExchange {
  /** The line in the cassette. */
  readonly line: number;
  readonly stage: string;
  /** From 0. */
  readonly turn: number;
  /** Of an item of a list, as recorded. */
  readonly key?: string;
  readonly attempt: number;
}

interface Entry {
  readonly exchange: Exchange;
  readonly line: number;
  used: boolean;
}

export type Player = ReturnType<typeof createPlayer>;

/**
 * Finds the exchange for each call and tracks which are used. Exchanges are found by stage, item, turn and attempt, not by the
 * order of calls, which differs between runs with siblings. An exchange may be used again, because a resumed run repeats a call
 * whose result it has not recorded.
 */
export function createPlayer(file: string, exchanges: readonly Exchange[], match: "strict" | "sequence") {
  // Line 1 is the header.
  const entries = exchanges.map((exchange, index): Entry => ({ exchange, line: index + 2, used: false }));
  const byStage = Map.groupBy(entries, ({ exchange: { stage, key, call } }) => addressOf({ stage, key }, call));
  let divergence: SluiceError | undefined;
  const refuse = (error: SluiceError): SluiceError => {
    divergence ??= error;
    return error;
  };
  return {
    file,
    take(position: TurnPosition, call: Exchange["call"], request: RequestShape): Entry {
      const ofStage = byStage.get(addressOf(position, call)) ?? [];
      const here = atPosition(ofStage, position);
      const fits = ({ exchange }: Entry): boolean => match === "sequence" || exchange.request.digest === request.digest;
      const found =
        best(here.filter(fits)) ??
        (match === "strict" ? best(ofStage.filter((entry) => !entry.used && fits(entry))) : undefined);
      if (found !== undefined) {
        found.used = true;
        return found;
      }
      const nearest = best(here);
      if (nearest === undefined) throw refuse(exhausted(file, entries, position));
      throw refuse(diverged(file, nearest, position, request));
    },
    /** The recorded model of a stage, or of any stage if this one has no turns. */
    modelOf: (stage: string): string | undefined =>
      (exchanges.find((exchange) => exchange.stage === stage) ?? exchanges[0])?.model,
    unused: (): readonly UnusedExchange[] =>
      entries
        .filter((entry) => !entry.used && !isSuperseded(entry, entries))
        .map(({ line, exchange: { stage, turn, key, attempt } }) => ({
          line,
          stage,
          turn,
          ...(key === undefined ? {} : { key }),
          attempt,
        })),
    /** The first request without a matching exchange. */
    get divergence(): SluiceError | undefined {
      return divergence;
    },
  };
}

/** Where a call is made: its stage, and the item of a list. */
function addressOf(
  { stage, key = null }: { readonly stage: string; readonly key?: string | null | undefined },
  call: Exchange["call"],
): string {
  return JSON.stringify([stage, key, call]);
}

/** The exchanges of this attempt, or of the next one in the cassette if earlier attempts were removed from it. */
function atPosition(ofStage: readonly Entry[], { turn, attempt }: TurnPosition): readonly Entry[] {
  const later = ofStage.filter(({ exchange }) => exchange.turn === turn && exchange.attempt >= attempt);
  const nearest = Math.min(...later.map(({ exchange }) => exchange.attempt));
  return later.filter(({ exchange }) => exchange.attempt === nearest);
}

/** Prefers unused exchanges, then those that were not aborted, then the first. */
function best(entries: readonly Entry[]): Entry | undefined {
  const rank = ({ used, exchange }: Entry): number => (used ? 2 : 0) + (exchange.end === "aborted" ? 1 : 0);
  return [...entries].sort((a, b) => rank(a) - rank(b))[0];
}

/** An aborted call that the run repeated when it was resumed. */
function isSuperseded({ exchange }: Entry, entries: readonly Entry[]): boolean {
  return (
    exchange.end === "aborted" &&
    entries.some(
      ({ used, exchange: other }) =>
        used &&
        addressOf(other, other.call) === addressOf(exchange, other.call) &&
        other.turn === exchange.turn &&
        other.attempt === exchange.attempt,
    )
  );
}

function diverged(
  file: string,
  { exchange, line }: Entry,
  { stage, turn, key }: TurnPosition,
  request: RequestShape,
): SluiceError {
  const what = difference(exchange.request, request);
  const message = `the cassette ${basename(file)} does not match: stage ${stage}${ofItem(key)}, turn ${turn + 1} (line ${line}): ${what}`;
  const detail = { file, line, stage, turn };
  return new SluiceError("Validation", "cassette_diverged", message, { detail });
}

function ofItem(key: string | undefined): string {
  return key === undefined ? "" : `, item ${JSON.stringify(key)}`;
}

function exhausted(file: string, entries: readonly Entry[], { stage, turn, key }: TurnPosition): SluiceError {
  const turns = new Set(
    entries
      .filter(({ exchange }) => exchange.stage === stage && exchange.key === key)
      .map(({ exchange }) => exchange.turn),
  );
  const stages = [...new Set(entries.map(({ exchange }) => exchange.stage))].join(", ");
  const has =
    turns.size === 0
      ? `no turns of stage ${stage}${ofItem(key)} (it has: ${stages === "" ? "none" : stages})`
      : `${turns.size} turns of stage ${stage}${ofItem(key)}, and the run requests turn ${turn + 1}`;
  const message = `the cassette ${basename(file)} has ${has}`;
  return new SluiceError("Validation", "cassette_exhausted", message, { detail: { file, stage, turn } });
}
