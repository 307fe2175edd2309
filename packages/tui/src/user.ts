export {
  codePlaceOf,
  needsProof,
  otherCode,
  unprovenHere,
  type WayToAnswer,
  wayToAnswer,
} from "./user/answer-elsewhere.ts";
export { requestFault } from "./user/approval-check.ts";
export { type Environment, readSettings, refuseInsideRun, stateFolder } from "./user/environment.ts";
export { whoAmI } from "./user/person.ts";
export { type Cleaner, LOOKS, withoutSecrets } from "./user/secrets.ts";
export {
  answerPayload,
  answerWords,
  maskAnswer,
  pastOf,
  refusalOf,
  sendAnswer,
  shortDigest,
  type TypedAnswer,
  typedValue,
} from "./user/send-answer.ts";
