import type { CallScene, Subject, Workspace } from "@sluice/core";
import type { Sandbox } from "../../../sandbox/wall.ts";
import { lineEnvironment } from "./environment.ts";
import { judgeLine } from "./judge-line.ts";
import { OutsideLanguage, outside } from "./line.ts";

/** Bytes of UTF-8; longer command lines belong in a script file, where they can be reviewed. */
const MAX_BYTES = 16 * 1024;

/** Bash treats these as ordinary letters of a word, people do not see them: what is read would not be what runs. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zs}\p{Zl}\p{Zp}\p{Co}\u115f\u1160\u3164\uffa0]|\u034f|\u17b4|\u17b5/gu;
const PLAIN = new Set([" ", "\t", "\n"]);

/** What a command line would run and touch, as facts for the gate. */
export function lineSubjects(
  command: string,
  workspace: Workspace,
  scene: CallScene,
  { sandbox, variables = [] }: { readonly sandbox?: Sandbox; readonly variables?: readonly string[] },
): readonly Subject[] {
  const impossible = faultOf(command, sandbox);
  if (impossible !== undefined) return [{ kind: "refused", reason: impossible }];
  const wall: readonly Subject[] = sandbox?.wall === undefined ? [] : [{ kind: "sandboxed", by: sandbox.wall }];
  try {
    refuseInvisible(command);
    const env = lineEnvironment(scene, workspace.root);
    return [...judgeLine(command, { workspace, env, variables }).subjects, ...wall];
  } catch (thrown) {
    if (!(thrown instanceof OutsideLanguage)) throw thrown;
    const reason = `the line has ${thrown.message}, so what it would do is not certain; write plain commands, or ask for a grant`;
    return [{ kind: "opaque", reason }, { kind: "line", unread: command }, ...wall];
  }
}

/** What cannot run as it was written is no question for a person. */
function faultOf(command: string, sandbox: Sandbox | undefined): string | undefined {
  if (command.length > MAX_BYTES || Buffer.byteLength(command) > MAX_BYTES)
    return `the command is longer than ${MAX_BYTES} bytes; put it into a script file`;
  if (command.includes("\0")) return "the command holds a NUL byte";
  if (sandbox?.wall === undefined && sandbox?.isLost === true)
    return `the sandbox of this run cannot be built any more, and nothing is run without it: ${sandbox.missing?.reason ?? "it failed"}`;
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
