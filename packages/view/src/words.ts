export { type AuditFacets, facetsOf, hasFacets, type Verdict } from "./words/audit-filter.ts";
export { decisionIn, detailOf, inForkOrder } from "./words/audit-trail.ts";
export { createEventDescriber, type EventLine, type Tone } from "./words/event-lines.ts";
export { forkedFrom, textAt, usageAt } from "./words/fields.ts";
export { count, indented, milliseconds, moment, oneLine, spending, table, withCode } from "./words/words.ts";
