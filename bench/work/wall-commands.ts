// Runs commands bare and sandboxed, in a separate process namespace: node wall-commands.ts <times>. The first process of the
// namespace waits for orphaned processes, so that their CPU time counts.
import { readFileSync, writeSync } from "node:fs";
import { createSandbox } from "../../packages/stages/src/sandbox/sandbox.ts";
import { type ProcessOptions, runProcess } from "../../packages/stages/src/tools/bash/process.ts";

const times = Number(process.argv[2]);
const root = process.cwd();
const sandbox = createSandbox({ mode: "require", root, absent: () => [] });
const command: ProcessOptions = {
  file: "/bin/bash",
  args: ["--noprofile", "--norc", "-c", "true"],
  cwd: root,
  env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? root },
  signal: new AbortController().signal,
  timeoutMs: 60_000,
  stdout: () => true,
  stderr: () => true,
};
const plan = { root, reads: [""], scratch: [], network: false, absent: [], readOnly: [] };
/** The same namespaces with one mount: what bubblewrap costs before anything of the workspace is protected. */
const alone: ProcessOptions = {
  ...command,
  file: "bwrap",
  args: [
    ...["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-net", "--die-with-parent"],
    ...["--ro-bind", "/", "/", "--", command.file, ...command.args],
  ],
};
const ways: Readonly<Record<string, () => Promise<unknown>>> = {
  bare: () => runProcess(command),
  alone: () => runProcess(alone),
  reading: () => sandbox.run(command, { ...plan, writes: [] }),
  writing: () => sandbox.run(command, { ...plan, writes: [""] }),
};

/** CPU milliseconds of this process, its children, and the orphans it adopted. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  const waitedFor = (pid: string): number => {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const [, children = 0, theirs = 0] = [12, 13, 14].map((at) =>
      Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[at]),
    );
    return (children + theirs) * 10;
  };
  return (user + system) / 1000 + waitedFor("self") + waitedFor("1");
}

const started = performance.now();
await sandbox.prove();
const facts: Record<string, number> = { proofMs: performance.now() - started };
for (const [name, once] of Object.entries(ways)) {
  for (let done = 0; done < times / 10; done += 1) await once();
  const [cpu, time] = [cpuMs(), performance.now()];
  for (let done = 0; done < times; done += 1) await once();
  facts[`${name}CpuMs`] = (cpuMs() - cpu) / times;
  facts[`${name}Ms`] = (performance.now() - time) / times;
}
writeSync(3, JSON.stringify(facts));
