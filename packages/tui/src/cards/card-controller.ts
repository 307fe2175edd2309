import { type Answer, type RunHost, SluiceError } from "@sluice/core";
import { messageOf, type SecretFilter } from "@sluice/core/runtime";
import type { Session } from "@sluice/stages";
import type { RunRequest } from "@sluice/view";
import type { Key } from "../composer/keys.ts";
import { answerElsewhere } from "../user/answer-elsewhere.ts";
import { userName } from "../user/person.ts";
import { maskAnswer } from "../user/send-answer.ts";
import { pressKey } from "./card-keys.ts";
import {
  answerFailed,
  answerSent,
  type Card,
  type CardStack,
  type CardUpdate,
  cardHidden,
  cardShown,
  createCardStack,
  requestsChanged,
  type ShownLines,
  sendAnswer,
  waitingCards,
} from "./card-stack.ts";

export interface CardControllerOptions {
  readonly now: () => number;
  /** The host of a watched run, and how it is answered if it executes in this process. */
  readonly runOf: (runId: string) => AnsweredRun | undefined;
  readonly secretsToward: (runId: string, host: RunHost) => Promise<SecretFilter>;
  readonly say: (text: string, tone: "plain" | "notice") => void;
  readonly changed: () => void;
}

interface AnsweredRun {
  readonly host: RunHost;
  readonly answer?: Session["answer"];
}

/** Owns the card stack and sends its answers. */
export class CardController {
  readonly #options: CardControllerOptions;
  readonly #names = new CardNames();
  #stack: CardStack = createCardStack();

  constructor(options: CardControllerOptions) {
    this.#options = options;
  }

  get stack(): CardStack {
    return this.#stack;
  }

  /** Whether keys go to the cards first: a card is focused, or a key may still be meant for one that closed. */
  get wantsKeys(): boolean {
    return this.#stack.open?.focused === true || this.#stack.focusLost;
  }

  /** `idle` is the time since the previous key, in milliseconds. Returns whether the key was handled. */
  key(key: Key, idle: number): boolean {
    const update = pressKey(this.#stack, key, this.#options.now(), idle);
    this.#apply(update);
    return update.handled;
  }

  /** Takes all open requests, oldest first. */
  requests(open: readonly RunRequest[]): void {
    this.#apply(requestsChanged(this.#stack, open));
  }

  shown(key: string, lines: ShownLines): void {
    this.#stack = cardShown(this.#stack, key, lines, this.#options.now());
  }

  /** No card is visible. */
  hide(): void {
    this.#stack = cardHidden(this.#stack);
  }

  /** No key was pressed for ARM_MS: no key for a closed card is pending. */
  rest(): void {
    this.#stack = { ...this.#stack, focusLost: false };
  }

  /** Answers with a command, where no card is drawn. */
  answer({ key }: Card, answer: Answer): void {
    const card = this.#stack.cards.find((one) => one.key === key);
    if (card !== undefined) this.#apply(sendAnswer(this.#stack, card, answer));
  }

  /** The waiting cards with the names that commands use. */
  named(): readonly NamedCard[] {
    return waitingCards(this.#stack).map((card) => ({ card, name: this.#names.of(card) }));
  }

  #apply({ stack, send, notice }: CardUpdate): void {
    this.#stack = stack;
    if (notice !== undefined) this.#options.say(notice.text, notice.tone);
    if (send !== undefined) void this.#send(send);
  }

  async #send({ key, request, answer }: NonNullable<CardUpdate["send"]>): Promise<void> {
    try {
      const run = this.#options.runOf(request.runId);
      if (run === undefined) throw new SluiceError("Session", "run_unknown", "its run is no longer watched");
      const { host } = run;
      const secrets = await this.#options.secretsToward(request.runId, host);
      const [clean, by] = [maskAnswer(answer, secrets), secrets.text(userName())];
      const local = (await run.answer?.(request, clean, by)) ?? "unknown";
      // A run that this process suspended may execute in another one.
      const outcome = local === "unknown" ? await answerElsewhere(host, request, clean, by) : local;
      this.#apply(answerSent(this.#stack, key, answer, outcome));
    } catch (thrown) {
      this.#apply(answerFailed(this.#stack, key, messageOf(thrown)));
    }
    this.#options.changed();
  }
}

/** Digits of a digest that name a request. */
const SHORT_DIGEST = 6;

export interface NamedCard {
  readonly card: Card;
  readonly name: string;
}

/**
 * Names for requests that are answered with commands: the first digits of the digest, and a number after them if an earlier
 * request begins the same way. Names are never reused, so a name cannot answer a later request.
 */
export class CardNames {
  readonly #names = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  of({ key, request }: Card): string {
    const known = this.#names.get(key);
    if (known !== undefined) return known;
    const short = request.digest.slice(0, SHORT_DIGEST);
    const count = (this.#counts.get(short) ?? 0) + 1;
    const name = count === 1 ? short : `${short}-${count}`;
    this.#counts.set(short, count);
    this.#names.set(key, name);
    return name;
  }
}

/** The card with this name, or with a digest that continues a name of digits alone. */
export function cardNamed(words: string, cards: readonly NamedCard[]): Card | undefined {
  const exact = cards.find(({ name }) => name === words);
  const fits = ({ name, card }: NamedCard): boolean => words.startsWith(name) && card.request.digest.startsWith(words);
  return (exact ?? cards.find(fits))?.card;
}
