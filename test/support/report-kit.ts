import type { RunHost, SluiceEvent } from "@sluice/core";
import { verifyJournal } from "@sluice/core/host";
import { expect } from "vitest";
import type { ReportFacts } from "../../packages/view/src/html/head.ts";
import { reportPage } from "../../packages/view/src/html/page.ts";
import { reduceRun } from "../../packages/view/src/projection/reduce-run.ts";
import type { RunView } from "../../packages/view/src/projection/run-view.ts";
import { type Element, elementsIn, parsePage } from "./page-parts.ts";
import { readRecords, viewOf } from "./run-views.ts";

const NO_FAULTS: ReportFacts["chain"] = {
  records: 3,
  journals: 1,
  head: "0".repeat(64),
  faults: [],
  verify: "sluice audit r1 --verify",
};

/** A view as a page, with what these events decide, route and time. */
export function pageOf(
  view: RunView,
  events: readonly SluiceEvent[] = [],
  chain: Partial<ReportFacts["chain"]> = {},
): string {
  const { decisions, approvals, people, routes, spans, calls, input, updatedAt } = reduceRun(view.runId, events).view();
  const reduced = { decisions, approvals, people, routes, spans, calls, ...(input === undefined ? {} : { input }) };
  const whole = events.length === 0 ? view : { ...view, ...reduced, updatedAt: Math.max(updatedAt, view.updatedAt) };
  return pageFrom(whole, chain);
}

function pageFrom(view: RunView, chain: Partial<ReportFacts["chain"]>): string {
  return reportPage({ view, chain: { ...NO_FAULTS, ...chain }, madeAt: 0, version: "0.0.0" });
}

/** A recorded run as a page, with what it was made of. */
export async function reportOf(
  host: RunHost,
  runId: string,
): Promise<{ readonly page: string; readonly view: RunView; readonly events: readonly SluiceEvent[] }> {
  const records = await readRecords(host, runId);
  const view = viewOf(runId, records);
  const events = records.flatMap((record) => record.events);
  const journals = await host.journal(runId);
  const { head, records: count } = verifyJournal(journals);
  return { view, events, page: pageFrom(view, { head, records: count, journals: journals.length }) };
}

const TAGS: ReadonlySet<string> = new Set(
  (
    "html head meta title style body header nav main section footer h1 h2 h3 h4 h5 p a b i s em strong code pre br hr span div ul ol li " +
    "dl dt dd details summary table caption thead tbody tr th td ins del blockquote " +
    "svg defs pattern marker g path rect polygon text desc"
  ).split(" "),
);
const ATTRIBUTES: ReadonlySet<string> = new Set(
  (
    "lang charset http-equiv content name id class href role tabindex dir scope colspan open start data-stage data-call " +
    "aria-label aria-labelledby aria-hidden width height viewBox preserveAspectRatio x y rx d points fill refX refY markerWidth " +
    "markerHeight markerUnits orient marker-end text-anchor patternUnits patternTransform"
  ).split(" "),
);

/** Attributes that are read out or counted, and never fetched. */
const WORDS: ReadonlySet<string> = new Set(["aria-label", "data-call", "data-stage", "content", "href"]);

/** Reads a page and holds that nothing in it is anybody's but its own: elements, attributes, and where they lead. */
export function soundPage(page: string): Element {
  const root = parsePage(page);
  const all = elementsIn(root);
  expect([...new Set(all.map(({ tag }) => tag))].filter((tag) => !TAGS.has(tag))).toEqual([]);
  const names = new Set(all.flatMap(({ attributes }) => [...attributes.keys()]));
  expect([...names].filter((name) => !ATTRIBUTES.has(name))).toEqual([]);
  const ids = all.flatMap(({ attributes }) => attributes.get("id") ?? []);
  expect(new Set(ids).size).toBe(ids.length);
  const targets = all.flatMap(({ attributes }) => attributes.get("href") ?? []);
  const known = new Set(ids.map((id) => `#${id}`));
  expect(targets.filter((target) => !known.has(target))).toEqual([]);
  const outside = all.flatMap(({ attributes }) =>
    [...attributes].filter(([name]) => !WORDS.has(name)).flatMap(([, value]) => addressIn(value)),
  );
  expect(outside.filter((address) => !known.has(address))).toEqual([]);
  return root;
}

/** What a browser would go and get. */
function addressIn(value: string): readonly string[] {
  return [...value.matchAll(/url\(([^)]*)\)/g)].map(([, address = ""]) => address);
}
