import { spawnSync } from "node:child_process";

/** Whether this machine lets a process be watched at its system calls. */
export function canTrace(): boolean {
  return process.platform === "linux" && spawnSync("strace", ["-f", "-o", "/dev/null", "true"]).status === 0;
}

/** One system call that came back, in the order they did. */
export interface SystemCall {
  readonly name: string;
  /** As strace writes them, with the path of every open file. */
  readonly args: string;
  readonly result: string;
}

/** strace's words to note these calls of a command and all it starts in a file. */
export function tracing(file: string, calls: readonly string[]): readonly string[] {
  return ["strace", "-f", "-y", "-s", "64", "-e", `trace=${calls.join(",")}`, "-e", "signal=none", "-o", file];
}

/** strace's words to make calls of the command's main thread on one file fail, as its `inject` takes them. */
export function failing(path: string, call: string, how: string): readonly string[] {
  return ["strace", "-o", "/dev/null", "-P", path, "-e", `trace=${call}`, "-e", `inject=${call}:${how}`];
}

/** Reads what `tracing` wrote. A call that others came in between of counts when it is over, and with all its arguments. */
export function readTrace(text: string): readonly SystemCall[] {
  const begun = new Map<string, string>();
  return text.split("\n").flatMap((line) => {
    const [, pid = "", rest = ""] = /^(\d+) +(.*)$/.exec(line) ?? [];
    const unfinished = /^(.*) <unfinished \.\.\.>$/.exec(rest)?.[1];
    if (unfinished !== undefined) {
      begun.set(pid, unfinished);
      return [];
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest)?.[1];
    const whole = resumed === undefined ? rest : `${begun.get(pid) ?? ""}${resumed}`;
    const [, name, args, result] = /^(\w+)\((.*)\) += (.*)$/.exec(whole) ?? [];
    return name === undefined || args === undefined || result === undefined ? [] : [{ name, args, result }];
  });
}
