import type { CallScene, Subject, Workspace } from "@sluice/core";
import { NO_MASK } from "../../../secrets/cut-text.ts";
import type { Sandbox } from "../../sandbox.ts";
import { lineEnvironment } from "./environment.ts";
import { judgeLine } from "./judge-line.ts";
import { OutsideLanguage, outside } from "./line.ts";

/** Bytes of UTF-8; a longer command line belongs in a script file, which can be reviewed. */
const MAX_BYTES = 16 * 1024;

/** Bash treats these as letters, but people cannot see them, so the line would not run as it is read. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zs}\p{Zl}\p{Zp}\p{Co}\u115f\u1160\u3164\uffa0]|\u034f|\u17b4|\u17b5/gu;
const PLAIN = new Set([" ", "\t", "\n"]);

/** What a command line runs and touches, for the gate. */
export function lineSubjects(
  command: string,
  workspace: Workspace,
  scene: CallScene,
  { sandbox, variables = [] }: { readonly sandbox?: Sandbox; readonly variables?: readonly string[] },
): readonly Subject[] {
  const reason = whyImpossible(command, sandbox);
  if (reason !== undefined) return [{ kind: "refused", reason }];
  const wall: readonly Subject[] = sandbox?.wall === undefined ? [] : [{ kind: "sandboxed", by: sandbox.wall }];
  try {
    refuseInvisible(command);
    const env = lineEnvironment(scene, workspace.root);
    const { unrecorded = [], secrets = NO_MASK } = scene;
    return [...judgeLine(command, workspace, { env, unrecorded, secrets }, variables), ...wall];
  } catch (thrown) {
    if (!(thrown instanceof OutsideLanguage)) throw thrown;
    const reason = `the line contains ${thrown.message}, so its effect is not certain; use plain commands, or request a grant`;
    return [{ kind: "opaque", reason }, { kind: "line", unread: command }, ...wall];
  }
}

/** Why the command cannot run at all, so that no grant could allow it. */
function whyImpossible(command: string, sandbox: Sandbox | undefined): string | undefined {
  if (command.length > MAX_BYTES || Buffer.byteLength(command) > MAX_BYTES)
    return `the command is longer than ${MAX_BYTES} bytes; put it into a script file`;
  if (command.includes("\0")) return "the command contains a NUL byte";
  if (sandbox?.wall === undefined && sandbox?.isLost === true)
    return `the sandbox of this run can no longer be created, and nothing runs without it: ${sandbox.missing?.reason ?? "it failed"}`;
  if (sandbox?.mode !== "require" || sandbox.wall !== undefined) return undefined;
  return `this run requires a sandbox, and there is none: ${sandbox.missing?.reason ?? "it was not proven"}`;
}

function refuseInvisible(command: string): void {
  if (!command.isWellFormed()) throw outside("a lone surrogate");
  for (const [character] of command.matchAll(INVISIBLE)) {
    if (PLAIN.has(character)) continue;
    const point = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
    throw outside(`the invisible character U+${point}`);
  }
}
