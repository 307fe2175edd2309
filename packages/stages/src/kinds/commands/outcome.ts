import { type ActOutcome, type ActScope, field, isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { cancelled, completed, failed } from "../kind-common.ts";
import type { CommandSpec } from "./command.ts";
import type { CommandEnd, RenderedCommand } from "./run-command.ts";
import { NO_STREAMS, type Streams } from "./streams.ts";

/** The codes of failures of commands: the kinds of states that run them. */
type CommandCode = "script" | "poll";

/** The outcome of a state whose command did not start, because of the values of its run. */
export function failedBefore(code: CommandCode, rendered: RenderedCommand): ActOutcome {
  const message = "fault" in rendered ? rendered.fault : "this state has no command";
  return failed(code, message, { exitCode: null, cause: "input", ...NO_STREAMS });
}

/** The outcome of a state whose last command ended so. `more` is added to its output, or to the detail of its failure. */
export function outcomeOf(
  code: CommandCode,
  command: CommandSpec,
  end: CommandEnd,
  scope: ActScope,
  more: JsonObject = {},
): ActOutcome {
  switch (end.kind) {
    case "cancelled":
      return { ...cancelled(scope), partial: streamsOf(end) };
    case "limit":
      return failed(end.code, end.message, { limit: end.limit, ...streamsOf(end), ...more });
    case "broken":
      return failed(code, end.message, { exitCode: null, cause: end.cause, ...streamsOf(end), ...more });
    case "exited": {
      const { exitCode, parsed, misfit } = end;
      const streams = streamsOf(end);
      if (parsed !== undefined) return completed({ exitCode, ...streams, parsed, ...more });
      const detail = { exitCode, ...(misfit === undefined ? { cause: "exit" } : {}), ...streams, ...more };
      if (misfit !== undefined) return failed("schema", `${command.title}: ${misfit}`, detail);
      return failed(code, `${command.title} exited with code ${exitCode}`, detail);
    }
  }
}

export function streamsOf({ stdout, stderr, stdoutFile, stderrFile }: Streams): Streams {
  return {
    stdout,
    stderr,
    ...(stdoutFile === undefined ? {} : { stdoutFile }),
    ...(stderrFile === undefined ? {} : { stderrFile }),
  };
}

/** The recorded result of `renderCommand`. */
export function renderedIn(init: Json): RenderedCommand {
  const fault = field(init, "fault");
  const argv = field(init, "argv");
  const env = field(init, "env");
  const stdin = field(init, "stdin");
  if (!Array.isArray(argv)) return { fault: typeof fault === "string" ? fault : "this state has no command" };
  return {
    argv: argv.flatMap((word: Json) => (typeof word === "string" ? [word] : [])),
    env: textsOf(env),
    ...(typeof stdin === "string" ? { stdin } : {}),
  };
}

function textsOf(env: Json | undefined): Readonly<Record<string, string>> {
  const entries = env !== undefined && isJsonObject(env) ? Object.entries(env) : [];
  return Object.fromEntries(entries.flatMap(([name, value]) => (typeof value === "string" ? [[name, value]] : [])));
}
