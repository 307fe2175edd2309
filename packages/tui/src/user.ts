export {
  type AnswerRoute,
  answerRouteOf,
  codeScopeOf,
  needsProof,
  unprovenText,
  wrongCodeText,
} from "./user/answer-elsewhere.ts";
export { requestFault } from "./user/approval-check.ts";
export {
  type Cleaner,
  type Environment,
  LOOKS,
  readSettings,
  refuseInsideRun,
  secretMask,
  stateFolder,
} from "./user/environment.ts";
export { userName } from "./user/person.ts";
export {
  answerCommand,
  answerPayload,
  answerWords,
  maskAnswer,
  pastTense,
  refusalOf,
  sendAnswer,
  shortDigest,
  type TypedAnswer,
  typedValue,
} from "./user/send-answer.ts";
export { frameAt, frameOf } from "./user/source-frame.ts";
