import { field, type Json, type SluiceEvent } from "@sluice/core";
import { executionKey } from "../../projection/execution-reducer.ts";
import { decisionIn } from "../../words/audit-trail.ts";
import { textAt } from "../../words/fields.ts";
import { moment } from "../../words/words.ts";
import { exact, html, linkTo, type Markup } from "../markup/markup.ts";
import { shortText } from "../markup/texts.ts";
import { table } from "../tables.ts";

const MOST_ROWS = 300;
const LONGEST = 1_000;

/** Every route: where it led, and by what. */
export function routesMarkup(events: readonly SluiceEvent[], anchors: ReadonlyMap<string, string>): Markup {
  const routes = events
    .filter(({ type }) => type === "route.decided" || type === "route.rejected")
    .toSorted((a, b) => a.at - b.at);
  if (routes.length === 0) return html`<p>No route was decided.</p>`;
  const rows = routes.slice(0, MOST_ROWS).map((event) => {
    const { at, runId, executionId = "", data } = event;
    const { by, why } = decisionIn(event);
    const anchor = anchors.get(executionKey(runId, executionId));
    const from = exact(executionId || textAt(data, "from"));
    return [
      html`${moment(at)}`,
      linkTo(anchor, from),
      event.type === "route.rejected" ? html`<span class="bad">✖ rejected</span>` : exact(leadsTo(data)),
      exact(by),
      shortText(why, LONGEST),
    ];
  });
  return table(
    { caption: "Where each stage led, and what decided it", head: ["when (UTC)", "from", "to", "decided by", "why"] },
    rows,
    routes.length,
  );
}

function leadsTo(data: Json): string {
  const to = field(data, "to");
  const names = Array.isArray(to) ? to.filter((one) => typeof one === "string") : typeof to === "string" ? [to] : [];
  const choice = textAt(data, "choice");
  if (choice === "to") return names.join(", ");
  if (choice === "fanOut") return `${names.join(" ∥ ")} side by side, then ${textAt(data, "join")}`;
  return choice === "done" ? "the run is done" : choice === "fail" ? "the run fails" : "the run is cancelled";
}
