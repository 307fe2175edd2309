export {
  type AuditFilter,
  describeEvent,
  detailOf,
  type EventLine,
  executionName,
  matchesFilter,
  type Tone,
  type Verdict,
} from "./words/describe-event.ts";
export { agentOf, modelText, originOf, textAt, textsAt, timeAt } from "./words/fields.ts";
export { REQUEST_EVENTS, recordFault } from "./words/recorded-request.ts";
export { eventsOf, readRunStarted } from "./words/run-events.ts";
export {
  count,
  indented,
  isNothing,
  milliseconds,
  moment,
  oneLine,
  shortKey,
  shownError,
  spending,
  withCode,
} from "./words/words.ts";
