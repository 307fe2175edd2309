import { visible } from "../gate/summary.ts";
import type { LegalEvent } from "../machine/legal-events.ts";

/** A name that reads as one word. */
const PLAIN = /^[\w.:-]{1,64}$/;

/** One line for people and models: `DEPLOY -> deploying, if tests_passed, after approval by a person; otherwise -> fixing`. */
export function eventWords({ event, targets }: LegalEvent): string {
  const ways = targets.map(({ to, when, approval }, index) => {
    const parts = [
      `${index === 0 ? "" : "otherwise "}-> ${to}`,
      ...(when === undefined ? [] : [`if ${when}`]),
      ...(approval ? ["after approval by a person"] : []),
    ];
    return parts.join(", ");
  });
  return visibleLine(`${eventName(event)} ${ways.join("; ")}`);
}

/** An event's name in a sentence. `*` is any that has no name of its own. */
function eventName(event: string): string {
  if (event === "*") return "any other event";
  return PLAIN.test(event) ? event : JSON.stringify(event);
}

/** Text of a file, a model or a tool that must not add lines to a prompt or to output: what is unseen is written out. */
export function visibleLine(text: string): string {
  return visible(text).replaceAll("\n", "\\n");
}
