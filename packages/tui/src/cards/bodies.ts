import { readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, sep } from "node:path";
import { messageOf, redactText } from "@sluice/core/runtime";
import { environmentSecrets } from "@sluice/stages/environment-secrets";
import type { RunView } from "@sluice/view";
import type { Line } from "@sluice/view/text";
import { textAt } from "@sluice/view/words";
import type { Environment } from "../user/environment.ts";
import { bodyLines, type CardFacts } from "./body.ts";
import type { Card } from "./card-stack.ts";
import { type FileNow, fileToRead, type Hiding } from "./change.ts";

/** Largest file that a change is compared with, in bytes. */
const MAX_BYTES = 1_000_000;

/** Lays out card bodies. Files and run data are read once, when a card first opens, so they cannot change while it is open. */
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

  /** Drops the data of all other cards. */
  keep(cards: readonly Card[]): void {
    if (this.#facts.size === 0) return;
    const open = new Set(cards.map(({ key }) => key));
    for (const key of this.#facts.keys()) if (!open.has(key)) this.#facts.delete(key);
  }

  #factsOf(card: Card, view: RunView | undefined): CardFacts {
    const cached = this.#facts.get(card.key);
    if (cached !== undefined) return cached;
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
  const filter = environmentSecrets(env, secrets);
  return { known: filter.text, text: (text) => redactText(filter.text(text)) };
}

/** Reads a file of the workspace; a path outside is not read, since a model chose it. */
function readNow(path: string, workspace: string, hiding: Hiding): FileNow {
  try {
    const root = realpathSync(workspace);
    const stat = statSync(path, { throwIfNoEntry: false });
    const real = stat === undefined ? `${realpathSync(dirname(path))}${sep}` : realpathSync(path);
    if (!`${real}${sep}`.startsWith(`${root}${sep}`)) return { kind: "unread", why: "it is outside the workspace" };
    if (stat === undefined) return { kind: "absent" };
    if (!stat.isFile()) return { kind: "unread", why: "it is not a regular file" };
    if (stat.size > MAX_BYTES) return { kind: "unread", why: `it has ${stat.size} bytes` };
    return { kind: "text", text: readFileSync(path, "utf8"), hiding };
  } catch (thrown) {
    return { kind: "unread", why: messageOf(thrown) };
  }
}
