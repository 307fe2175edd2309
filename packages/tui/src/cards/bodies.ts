import { readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, sep } from "node:path";
import { messageOf, redactText } from "@sluice/core";
import { environmentSecrets } from "@sluice/stages/environment-secrets";
import type { RunView } from "@sluice/view";
import type { Line } from "@sluice/view/text";
import { textAt } from "@sluice/view/words";
import type { Environment } from "../user/environment.ts";
import { bodyLines, type CardFacts } from "./body.ts";
import type { Card } from "./card-stack.ts";
import { type FileNow, fileToRead } from "./change.ts";
import type { Hiding } from "./file-lines.ts";

/** Bytes of a file that a change is compared with. */
const MOST_BYTES = 1_000_000;

/** The texts of cards: what they tell of the world is read once, when a card first comes up, and kept until it goes. */
export class CardBodies {
  readonly #env: Environment;
  readonly #facts = new Map<string, CardFacts>();
  #last:
    | { readonly key: string; readonly width: number; readonly all: boolean; readonly lines: readonly Line[] }
    | undefined;

  constructor(env: Environment) {
    this.#env = env;
  }

  lines(card: Card, view: RunView | undefined, width: number, all: boolean): readonly Line[] {
    const { key } = card;
    const last = this.#last;
    if (last?.key === key && last.width === width && last.all === all) return last.lines;
    const lines = bodyLines(card, this.#factsOf(card, view), width, all);
    this.#last = { key, width, all, lines };
    return lines;
  }

  /** Forgets cards that are gone. */
  keep(cards: readonly Card[]): void {
    if (this.#facts.size === 0) return;
    const here = new Set(cards.map(({ key }) => key));
    for (const key of this.#facts.keys()) if (!here.has(key)) this.#facts.delete(key);
  }

  #factsOf(card: Card, view: RunView | undefined): CardFacts {
    const known = this.#facts.get(card.key);
    if (known !== undefined) return known;
    const { request } = card;
    const executionId = textAt(request.body, "executionId");
    const execution = view?.executions.find((one) => one.runId === request.runId && one.executionId === executionId);
    const path = fileToRead(request);
    const facts: CardFacts = {
      ...(execution?.tools === undefined ? {} : { tools: execution.tools }),
      ...(execution?.turnCap === undefined ? {} : { turnCap: execution.turnCap }),
      ...(path === undefined || view === undefined ? {} : { file: readNow(path, view.cwd, hidingOf(this.#env, view)) }),
    };
    this.#facts.set(card.key, facts);
    return facts;
  }
}

function hidingOf(env: Environment, { secrets = [] }: RunView): Hiding {
  const known = environmentSecrets(env, secrets);
  return { known: known.text, text: (text) => redactText(known.text(text)) };
}

/** A file of the workspace as it is now. What lies elsewhere is not read only because a model named it. */
function readNow(path: string, workspace: string, hiding: Hiding): FileNow {
  try {
    const root = realpathSync(workspace);
    const stat = statSync(path, { throwIfNoEntry: false });
    const real = stat === undefined ? `${realpathSync(dirname(path))}${sep}` : realpathSync(path);
    if (!`${real}${sep}`.startsWith(`${root}${sep}`)) return { kind: "unread", why: "it is outside the workspace" };
    if (stat === undefined) return { kind: "absent" };
    if (!stat.isFile()) return { kind: "unread", why: "it is no ordinary file" };
    if (stat.size > MOST_BYTES) return { kind: "unread", why: `it has ${stat.size} bytes` };
    return { kind: "text", text: readFileSync(path, "utf8"), hiding };
  } catch (thrown) {
    return { kind: "unread", why: messageOf(thrown) };
  }
}
