import { basename } from "node:path";
import { SluiceError } from "@sluice/core";
import type { TurnPosition } from "../model.ts";
import type { Exchange } from "./cassette.ts";
import { difference, type RequestShape } from "./request.ts";

/** An exchange that a replay did not come to. */
export interface UnusedExchange {
  /** Of the cassette. */
  readonly line: number;
  readonly stage: string;
  /** From 0. */
  readonly turn: number;
  readonly attempt: number;
}

/** Finds the exchange for each call of a replay, and keeps the account. */
export interface Player {
  readonly file: string;
  take(
    position: TurnPosition,
    call: Exchange["call"],
    request: RequestShape,
  ): { readonly exchange: Exchange; readonly line: number };
  /** The model that answered a stage; any, when the stage has no turns. */
  modelOf(stage: string): string | undefined;
  readonly unused: () => readonly UnusedExchange[];
  /** The first request there was no answer for. */
  readonly divergence: SluiceError | undefined;
}

interface Entry {
  readonly exchange: Exchange;
  readonly line: number;
  used: boolean;
}

/**
 * Exchanges are found by stage, turn and attempt, never by the order in which calls come: siblings run as they like. One that
 * was used may be used again by the same call, so that a run that is resumed here asks once more for what it had not kept.
 */
export function createPlayer(file: string, exchanges: readonly Exchange[], match: "strict" | "sequence"): Player {
  // The first exchange stands in line 2.
  const entries = exchanges.map((exchange, index): Entry => ({ exchange, line: index + 2, used: false }));
  let divergence: SluiceError | undefined;
  const refuse = (error: SluiceError): SluiceError => {
    divergence ??= error;
    return error;
  };
  return {
    file,
    take(position, call, request) {
      const ofStage = entries.filter(({ exchange }) => exchange.stage === position.stage && exchange.call === call);
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
    modelOf: (stage) => (exchanges.find((exchange) => exchange.stage === stage) ?? exchanges[0])?.model,
    unused: () => entries.filter((entry) => !entry.used && !isSuperseded(entry, entries)).map(asUnused),
    get divergence() {
      return divergence;
    },
  };
}

/** Those of this turn; where its first attempts were removed from the file, the next that is there. */
function atPosition(ofStage: readonly Entry[], { turn, attempt }: TurnPosition): readonly Entry[] {
  const later = ofStage.filter(({ exchange }) => exchange.turn === turn && exchange.attempt >= attempt);
  const nearest = Math.min(...later.map(({ exchange }) => exchange.attempt));
  return later.filter(({ exchange }) => exchange.attempt === nearest);
}

/** Unused before used, answered before stopped in the middle; else the first. */
function best(entries: readonly Entry[]): Entry | undefined {
  const rank = ({ used, exchange }: Entry): number => (used ? 2 : 0) + (exchange.end === "aborted" ? 1 : 0);
  return [...entries].sort((a, b) => rank(a) - rank(b))[0];
}

/** A call that was stopped, and made again when the run was resumed: the later one stands for both. */
function isSuperseded({ exchange }: Entry, entries: readonly Entry[]): boolean {
  return (
    exchange.end === "aborted" &&
    entries.some(
      ({ used, exchange: other }) =>
        used && other.stage === exchange.stage && other.turn === exchange.turn && other.attempt === exchange.attempt,
    )
  );
}

function asUnused({ line, exchange: { stage, turn, attempt } }: Entry): UnusedExchange {
  return { line, stage, turn, attempt };
}

function diverged(
  file: string,
  { exchange, line }: Entry,
  { stage, turn }: TurnPosition,
  request: RequestShape,
): SluiceError {
  const what = difference(exchange.request, request);
  const message = `the cassette ${basename(file)} does not fit: stage ${stage}, turn ${turn + 1} (line ${line}): ${what}`;
  const detail = { file, line, stage, turn };
  return new SluiceError("Validation", "cassette_diverged", message, { detail });
}

function exhausted(file: string, entries: readonly Entry[], { stage, turn }: TurnPosition): SluiceError {
  const turns = new Set(
    entries.filter(({ exchange }) => exchange.stage === stage).map(({ exchange }) => exchange.turn),
  );
  const stages = [...new Set(entries.map(({ exchange }) => exchange.stage))].join(", ");
  const has =
    turns.size === 0
      ? `no turns of stage ${stage} (it has: ${stages === "" ? "none" : stages})`
      : `${turns.size} turns of stage ${stage}, and turn ${turn + 1} was asked for`;
  const message = `the cassette ${basename(file)} has ${has}`;
  return new SluiceError("Validation", "cassette_exhausted", message, { detail: { file, stage, turn } });
}
