import { isDeepStrictEqual } from "node:util";
import { isSluiceError, type Subject, type ToolCall, type ToolSpec } from "@sluice/core";
import { fault } from "../files/results.ts";
import type { Sandbox } from "../sandbox.ts";

type SubjectsOf = ToolSpec<string>["subjects"];

export interface CommandJudgeOptions {
  /** The OS sandbox that commands run in; none when omitted. */
  readonly sandbox?: Sandbox;
  /** Variables that a line may set, in addition to the harmless ones. */
  readonly variables?: readonly string[];
}

/** Judges command lines, for the Bash tool and for agents that run commands themselves. */
export interface CommandJudge {
  /** Loads what only calls need, and proves the sandbox, on which the gate's decision depends. */
  ready(): Promise<void>;
  /** What a command line would run and touch. Needs `ready`. */
  subjects: SubjectsOf;
  /**
   * The line that an approved call may run: as given if any line may run, else as rewritten from what was judged. Throws
   * `path_changed` if it would now touch something else.
   */
  lineToRun(command: string, call: ToolCall): string;
}

export function commandJudge(options: CommandJudgeOptions = {}): CommandJudge {
  let analyser: typeof import("./language/line-subjects.ts") | undefined;
  const subjects: SubjectsOf = (command, workspace, scene) => {
    if (analyser === undefined) throw new Error("the shell analyser is not loaded");
    return analyser.lineSubjects(command, workspace, scene, options);
  };
  return {
    ready: async () => {
      analyser = await import("./language/line-subjects.ts");
      await proven(options.sandbox);
    },
    subjects,
    lineToRun: (command, call) => {
      const now = subjects(command, call.workspace, call);
      // Links or globbed files may have changed since, or the sandbox was lost.
      if (!isDeepStrictEqual(now, call.judged)) {
        throw fault(
          "path_changed",
          "The paths in this command no longer lead to where they led when the command was checked. Nothing was run. Make the call again.",
        );
      }
      if (call.anyLine) return command;
      const line = now.find((subject): subject is Extract<Subject, { kind: "line" }> => subject.kind === "line");
      if (line?.text === undefined)
        throw fault("command_unparsed", "This line could not be parsed, so it was not run.");
      return line.text;
    },
  };
}

/** Ignores a missing sandbox, which the judgement of the call then refuses. */
async function proven(sandbox: Sandbox | undefined): Promise<void> {
  try {
    await sandbox?.prove();
  } catch (thrown) {
    if (!isSluiceError(thrown, "sandbox_missing")) throw thrown;
  }
}
