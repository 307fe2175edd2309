import type { Card } from "./desk.ts";

/** Digits of a digest that name a request. */
const SHORT_DIGEST = 6;

export interface NamedCard {
  readonly card: Card;
  readonly name: string;
}

/**
 * Names for requests that are answered in words: the first digits of the digest, and a number behind them for every later
 * request whose digest begins alike. A name is never given twice, so that whoever types one means the request that told it,
 * also when that was answered elsewhere meanwhile and another like it waits.
 */
export class CardNames {
  readonly #names = new Map<string, string>();
  readonly #given = new Map<string, number>();

  of({ key, request }: Card): string {
    const known = this.#names.get(key);
    if (known !== undefined) return known;
    const short = request.digest.slice(0, SHORT_DIGEST);
    const times = (this.#given.get(short) ?? 0) + 1;
    const name = times === 1 ? short : `${short}-${times}`;
    this.#given.set(short, times);
    this.#names.set(key, name);
    return name;
  }
}

/** The card that words name: its name, or more digits of its digest where the name is nothing but digits. */
export function cardNamed(words: string, cards: readonly NamedCard[]): Card | undefined {
  const exact = cards.find(({ name }) => name === words);
  const fits = ({ name, card }: NamedCard): boolean => words.startsWith(name) && card.request.digest.startsWith(words);
  return (exact ?? cards.find(fits))?.card;
}
