export type {
  AppContext,
  AppFlags,
  AppProject,
  Engine,
  EngineHooks,
  ExportNotice,
  KnownRun,
  ResumeOptions,
  StartIn,
} from "./app/engine.ts";
export { openApp } from "./screen/open.ts";
