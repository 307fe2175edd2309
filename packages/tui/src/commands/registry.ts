import type { Command } from "../app/command.ts";
import { answer, approve, deny } from "./answers.ts";
import { exportRun } from "./export.ts";
import { help, quit } from "./help.ts";
import { audit, cost, diff, graph, items, routes, runs, show, tools } from "./look.ts";
import { cancel, check, demo, fork, interrupt, later, resume, run } from "./runs.ts";
import { mode, model, reload } from "./settings.ts";

/** Every slash command, in the order of /help. */
export const COMMANDS: readonly Command[] = [
  run,
  runs,
  resume,
  fork,
  later,
  interrupt,
  cancel,
  show,
  audit,
  graph,
  routes,
  items,
  diff,
  cost,
  tools,
  check,
  exportRun,
  model,
  mode,
  reload,
  demo,
  help,
  quit,
];

/** With the commands that replace cards. */
export const PLAIN_COMMANDS: readonly Command[] = [...COMMANDS, approve, deny, answer];
