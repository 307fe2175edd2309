import { spawn } from "node:child_process";

export interface ProgramResult {
  readonly code: number | undefined;
  /** The last characters of what it wrote. */
  readonly output: string;
}

const MAX_OUTPUT = 20_000;

/** Runs a program to its end, or kills it and its children after the time limit. */
export function runProgram(
  command: string,
  args: readonly string[],
  { cwd, env, timeoutMs }: { readonly cwd: string; readonly env: NodeJS.ProcessEnv; readonly timeoutMs: number },
): Promise<ProgramResult> {
  return new Promise((resolve) => {
    // A group of its own, so that what the program starts ends with it.
    const child = spawn(command, [...args], { cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
    let output = "";
    const keep = (chunk: Buffer): void => {
      output = (output + chunk.toString("utf8")).slice(-MAX_OUTPUT);
    };
    child.stdout.on("data", keep);
    child.stderr.on("data", keep);
    const endGroup = (): void => {
      if (child.pid === undefined) return;
      try {
        process.kill(-child.pid, "SIGKILL");
      } catch (thrown) {
        // The group has ended by itself.
        if (!(thrown instanceof Error && "code" in thrown && thrown.code === "ESRCH")) throw thrown;
      }
    };
    const timer = setTimeout(endGroup, timeoutMs);
    child.once("error", (error) => {
      output += error.message;
    });
    child.once("close", (code) => {
      clearTimeout(timer);
      endGroup();
      resolve({ code: code ?? undefined, output });
    });
  });
}
