// A process that owns a sandbox and runs what its parent sends: as another user, or to be killed in the middle of it.
import { createSandbox } from "../../packages/stages/src/sandbox/sandbox.ts";
import type { Sandbox, SandboxMode, SandboxPlan } from "../../packages/stages/src/tools/sandbox.ts";

/** One line of bash behind the wall. */
export interface OwnerCall {
  readonly id: number;
  readonly mode: SandboxMode;
  readonly line: string;
  readonly plan: SandboxPlan;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  readonly programs?: readonly string[];
}

export type OwnerAnswer =
  | { readonly id: number; readonly text: string; readonly end: Awaited<ReturnType<Sandbox["run"]>> }
  | { readonly id: number; readonly error: { readonly code: string; readonly message: string } };

const sandboxes = new Map<string, Sandbox>();

process.on("message", (message: OwnerCall) => {
  void answer(message).then((result) => process.send?.(result));
});
process.on("disconnect", () => process.exit(0));
process.send?.("ready");

async function answer({ id, mode, line, plan, env, timeoutMs = 60_000, programs }: OwnerCall): Promise<OwnerAnswer> {
  const key = JSON.stringify([mode, plan.root, programs]);
  const { root, absent } = plan;
  const sandbox =
    sandboxes.get(key) ??
    createSandbox({
      mode,
      root,
      absent: () => absent,
      // As in a session.
      store: () => absent[0],
      ...(programs === undefined ? {} : { programs }),
    });
  sandboxes.set(key, sandbox);
  let text = "";
  const take = (piece: string): boolean => {
    text += piece;
    return true;
  };
  try {
    const end = await sandbox.run(
      {
        file: "/bin/bash",
        args: ["--noprofile", "--norc", "-c", line],
        cwd: root,
        env,
        signal: new AbortController().signal,
        timeoutMs,
        stdout: take,
        stderr: take,
      },
      plan,
    );
    return { id, text, end };
  } catch (thrown) {
    const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "";
    return { id, error: { code, message: thrown instanceof Error ? thrown.message : String(thrown) } };
  }
}
