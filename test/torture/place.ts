import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { OpenRequest, RunHost } from "@sluice/core";
import { sqliteHost } from "@sluice/sqlite";
import { sendMessage } from "@sluice/stages";
import { placeOf } from "./watched-store.ts";
import { WORLDS, type WorldName } from "./worlds.ts";

/** Where one case happens, with the people who answer its run from a process that nobody kills. */
export interface Place {
  readonly world: WorldName;
  readonly folder: string;
  readonly host: RunHost;
  /** That requests were answered: facts, since nobody is to be asked about them again. */
  readonly accepted: readonly string[];
  /** What went wrong while people answered. */
  readonly troubles: readonly string[];
  runId(): Promise<string | undefined>;
  file(name: string): string | undefined;
  /** Files that are half of something. */
  leftovers(): readonly string[];
  close(): Promise<void>;
}

export function openPlace(world: WorldName, folder: string): Place {
  const workspace = join(folder, "workspace");
  mkdirSync(workspace, { recursive: true });
  WORLDS[world].layOut(workspace);
  const host = sqliteHost(join(folder, "store"));
  const accepted: string[] = [];
  const troubles: string[] = [];
  let sent = false;

  const runId = async (): Promise<string | undefined> => (await host.list())[0]?.runId;
  /** Once for each run: notes, then what its waits are for, the second of them early. */
  const tell = async (): Promise<void> => {
    const run = await runId();
    if (sent || run === undefined) return;
    sent = true;
    for (const [name, payload] of [
      ["note", "one"],
      ["note", "two"],
      ["go", "went"],
      ["go", "went on"],
    ] as const)
      await host.signal(run, { name, payload, by: "ann" });
  };
  const answer = async (request: OpenRequest): Promise<void> => {
    const { requestId, digest, kind, body } = request;
    if (kind === "askUser" && !sent) {
      sent = true;
      await sendMessage(host, request.runId, "Keep it short.", "ann");
    }
    const payload =
      kind === "askUser"
        ? { kind: "value", value: "blue", digest }
        : body.tool === "Bash"
          ? { kind: "deny", reason: "not in this stage", digest }
          : { kind: "approve", digest };
    const send = (by: string) => host.signal(request.runId, { name: `request/${requestId}`, payload, digest, by });
    if ((await send("ann")) !== "accepted") return;
    accepted.push(`answered ${placeOf(request.runId)} ${requestId}`);
    const second = await send("bob");
    // The run may have gone on already, or be over.
    if (second === "accepted") troubles.push(`a second answer to ${requestId} was ${second}`);
  };
  let looking = Promise.resolve();
  const look = async (): Promise<void> => {
    if (world === "steps") await tell();
    for (const request of await host.requests()) await answer(request);
  };
  const stop = host.onChange(() => {
    looking = looking.then(look).catch((thrown: unknown) => void troubles.push(String(thrown)));
  });

  return {
    world,
    folder,
    host,
    accepted,
    troubles,
    runId,
    file: (name) => {
      const path = join(workspace, name);
      return existsSync(path) ? readFileSync(path, "utf8") : undefined;
    },
    leftovers: () => {
      const names = [workspace, join(folder, "store", "blobs")].flatMap((at) =>
        readdirSync(at, { recursive: true }).map(String),
      );
      return names.filter((name) => name.endsWith(".tmp"));
    },
    close: async () => {
      stop();
      await looking;
      // Runs of `steps` start no processes, and their id is no name of their own.
      const run = world === "pipeline" ? await runId() : undefined;
      for (const { pid } of run === undefined ? [] : processesOf(run)) endProcess(pid);
      await host.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (thrown) {
    if (!(thrown instanceof Error && "code" in thrown && thrown.code === "ESRCH")) throw thrown;
  }
}

interface StartedProcess {
  readonly pid: number;
  readonly what: string;
}

/** Processes that were started for a run of `pipeline`, as the system knows them. */
export function processesOf(runId: string): readonly StartedProcess[] {
  if (process.platform !== "linux") return [];
  const marks = ["\0", "/"].map((end) => `\0SLUICE_RUN=${runId}${end}`);
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const environment = readFileSync(`/proc/${name}/environ`, "latin1");
      if (!marks.some((mark) => `\0${environment}`.includes(mark))) return [];
      const what = readFileSync(`/proc/${name}/cmdline`, "utf8") + readFileSync(`/proc/${name}/stat`, "utf8");
      return [{ pid: Number(name), what }];
    } catch (thrown) {
      // It ended meanwhile, or is another user's.
      if (thrown instanceof Error && "code" in thrown) return [];
      throw thrown;
    }
  });
}
