import type { Sandbox, SandboxOptions } from "../tools/sandbox.ts";

/** A sandbox whose code is loaded with its first use, since most runs of read-only pipelines start no process. */
export function lazySandbox(options: SandboxOptions): Sandbox {
  const { mode } = options;
  let loaded: Sandbox | undefined;
  const load = async (): Promise<Sandbox> => {
    const { createSandbox } = await import("./sandbox.ts");
    loaded ??= createSandbox(options);
    return loaded;
  };
  return {
    mode,
    get wall() {
      return loaded?.wall;
    },
    get isLost() {
      return loaded?.isLost === true;
    },
    get missing() {
      return loaded?.missing;
    },
    prove: async () => {
      if (mode !== "off") await (await load()).prove();
    },
    run: async (program, plan) => await (await load()).run(program, plan),
    wrap: async (program, plan) => await (await load()).wrap(program, plan),
  };
}

/** Whether commands in this workspace can be sandboxed, and by what, or why not. */
export async function probeSandbox(
  root: string,
  absent: readonly string[],
): Promise<Pick<Sandbox, "wall" | "missing">> {
  const sandbox = lazySandbox({ mode: "try", root, absent: () => absent });
  await sandbox.prove();
  return sandbox;
}
