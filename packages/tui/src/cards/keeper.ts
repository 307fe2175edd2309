import { type Answer, messageOf, type RunHost, type SecretFilter, SluiceError } from "@sluice/core";
import type { Session } from "@sluice/stages";
import type { Key } from "../app/keys.ts";
import { answerElsewhere } from "../user/answer-elsewhere.ts";
import { userName } from "../user/person.ts";
import { maskAnswer } from "../user/send-answer.ts";
import {
  type Card,
  type CardAction,
  type CardStack,
  type CardUpdate,
  createCardStack,
  waitingCards,
  wantsKeys,
} from "./desk.ts";
import { CardNames, type NamedCard } from "./names.ts";
import { updateCards } from "./update.ts";

export interface CardControllerOptions {
  readonly now: () => number;
  /** The store of a run that is followed, and how it is answered where it works in this process. */
  readonly runOf: (runId: string) => AnsweredRun | undefined;
  readonly secretsToward: (runId: string, host: RunHost) => Promise<SecretFilter>;
  /** What became of a card. */
  readonly told: (text: string, good: boolean) => void;
  readonly changed: () => void;
}

export interface AnsweredRun {
  readonly host: RunHost;
  readonly answer?: Session["answer"];
}

/** Keeps the desk, and sends the answers that leave it. */
export class CardController {
  readonly #options: CardControllerOptions;
  readonly #names = new CardNames();
  #desk: CardStack = createCardStack();

  constructor(options: CardControllerOptions) {
    this.#options = options;
  }

  get desk(): CardStack {
    return this.#desk;
  }

  /** Whether the desk is to be asked about a key before anybody else. */
  wantsKeys(): boolean {
    return wantsKeys(this.#desk, this.#options.now());
  }

  /** Every key there is goes through here, also those that others took. Returns whether the desk took it. */
  key(key: Key, taken: boolean): boolean {
    return this.do({ kind: "key", key, taken });
  }

  do(action: CardAction): boolean {
    const { desk, taken, send, told, good = false } = updateCards(this.#desk, action, this.#options.now());
    this.#desk = desk;
    if (told !== undefined) this.#options.told(told, good);
    if (send !== undefined) void this.#send(send);
    return taken;
  }

  /** Answers a card in words, where none is drawn. */
  answer({ key }: Card, answer: Answer): void {
    this.do({ kind: "answer", key, answer });
  }

  /** What waits, with the names by which it is answered in words. */
  named(): readonly NamedCard[] {
    return waitingCards(this.#desk).map((card) => ({ card, name: this.#names.of(card) }));
  }

  async #send({ key, request, answer }: NonNullable<CardUpdate["send"]>): Promise<void> {
    try {
      const run = this.#options.runOf(request.runId);
      if (run === undefined) throw new SluiceError("Session", "run_unknown", "its run is not followed any more");
      const { host } = run;
      const secrets = await this.#options.secretsToward(request.runId, host);
      const [clean, by] = [maskAnswer(answer, secrets), secrets.text(userName())];
      const here = (await run.answer?.(request, clean, by)) ?? "unknown";
      // A run that worked here once may work in another process by now.
      const outcome = here === "unknown" ? await answerElsewhere(host, request, clean, by) : here;
      this.do({ kind: "sent", key, answer, outcome });
    } catch (thrown) {
      this.do({ kind: "failed", key, message: messageOf(thrown) });
    }
    this.#options.changed();
  }
}
