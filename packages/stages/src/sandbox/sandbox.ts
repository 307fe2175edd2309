import { constants as system } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { isSluiceError, type Json, SluiceError, systemClock } from "@sluice/core";
import { isSameJson } from "@sluice/core/runtime";
import { type ProcessEnd, type ProcessOptions, runProcess, SHELLS } from "../tools/bash/process.ts";
import { certainPath } from "../tools/files/closed-folders.ts";
import { contains, isProgram, realPath } from "../tools/files/paths.ts";
import { fault } from "../tools/files/results.ts";
import type {
  Sandbox,
  SandboxedExit,
  SandboxedProgram,
  SandboxOptions,
  SandboxPlan,
  WatchedWork,
} from "../tools/sandbox.ts";
import { isObeyed, moveAway, obeyedBefore, refuseLeft, type WatchedPaths } from "./after-call.ts";
import { type BubblewrapFacts, bubblewrapArguments } from "./bubblewrap.ts";
import { tryCanary } from "./canary.ts";
import { callsElsewhere, recordCall, startOf } from "./command-records.ts";
import { type FoundMarks, folderMarks, instanceAt, keyOf, type Mark, markAt } from "./folder-marks.ts";
import { type MissingSandbox, noProgram, noProof } from "./missing-sandbox.ts";
import {
  namedMarks,
  obeyedPaths,
  type SandboxedRepository,
  sandboxedRepository,
  unreadIndex,
  withLinks,
} from "./repository.ts";
import { scratchFolders } from "./scratch-folders.ts";
import { seatbeltProfile } from "./seatbelt.ts";
import { type SystemKeys, systemKeys } from "./system-keys.ts";
import { knownToolRoots } from "./tool-roots.ts";

/** Not looked up in PATH, which the workspace may extend. */
const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  linux: ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"],
  darwin: ["/usr/bin/sandbox-exec"],
};
/** Limits on all processes of a call together, unless its caller sets others. */
const MEMORY_BYTES = 4 * 1024 ** 3;
const OUTPUT_BYTES = 1024 ** 3;
/** Each is masked by a mount. */
const MOST_CHANNELS = 100;
/** How long the processes inside may outlive the one that started them. */
const SETTLE_MS = 1_000;
const KEPT_TEXT = 2_000;

/** The program that builds the wall, and what it supports. */
interface FoundWall {
  readonly kind: "bubblewrap" | "seatbelt";
  readonly program: string;
  readonly forbidsUserNamespaces: boolean;
}

/** A plan, and the repository around its workspace. */
type Protected = Pick<BubblewrapFacts, "plan" | "repository">;

type Program = Pick<ProcessOptions, "file" | "args" | "cwd" | "env">;

export function createSandbox(options: SandboxOptions): Sandbox {
  const { mode, root, absent, clock = systemClock } = options;
  const marksBelow = folderMarks();
  const holdScratch = scratchFolders();
  const toolRoots = knownToolRoots(clock);
  let keys: SystemKeys | undefined;
  let proof: Promise<void> | undefined;
  let proven: FoundWall | undefined;
  let missing: MissingSandbox | undefined;
  let isLost = false;
  /** What could not be moved away: why, by path. */
  const left = new Map<string, string>();

  const findings = (
    wall: FoundWall,
    program: Program,
    plan: SandboxPlan,
  ): Omit<BubblewrapFacts, "marks" | "status" | "repository"> => {
    keys ??= systemKeys();
    const { spelledHome, home } = homeIn(program.env);
    const cwd = realPath(program.cwd) ?? plan.root;
    return {
      plan,
      cwd: [plan.root, ...plan.writes.filter(isAbsolute)].some((folder) => contains(folder, cwd)) ? cwd : plan.root,
      home,
      spelledHome,
      temporary: program.env.TMPDIR,
      keys,
      tools: toolRoots({ root: plan.root, home, env: program.env, absent: plan.absent }),
      forbidsUserNamespaces: wall.forbidsUserNamespaces,
    };
  };

  /** Throws `sandbox_failed` if something in the workspace cannot be protected. */
  const protectedFindings = (
    wall: FoundWall,
    program: Program,
    plan: SandboxPlan,
  ): Omit<BubblewrapFacts, "marks" | "status"> => ({
    ...findings(wall, program, plan),
    repository: repositoryOf(plan, homeIn(program.env).home),
  });

  /** Undefined if the wall could not be built; then nothing ran. */
  const runBehind = async (
    wall: FoundWall,
    program: ProcessOptions,
    args: readonly string[],
  ): Promise<ProcessEnd | undefined> => {
    let status = "";
    const child = { file: wall.program, args: [...args, program.file, ...program.args] };
    const limits = { memoryBytes: MEMORY_BYTES, outputBytes: OUTPUT_BYTES, ...program.limits };
    if (wall.kind === "seatbelt") return await runProcess({ ...program, ...child, limits });
    const all: ProcessOptions = {
      ...program,
      ...child,
      limits,
      status: (text) => {
        status += text;
      },
      inside: () => numberIn(status, "child-pid"),
    };
    const end = await runProcess(all).catch((thrown: unknown) => {
      if (!isSluiceError(thrown, "spawn_failed")) throw thrown;
      program.stderr(thrown.message);
    });
    if (end === undefined) return undefined;
    const first = numberIn(status, "child-pid");
    if (first !== undefined) await untilGone(first);
    const wasBuilt = numberIn(status, "exit-code") !== undefined;
    if (!wasBuilt && end.by === "itself" && end.killed === null) return undefined;
    return { ...end, killed: end.killed ?? signalOf(end.exitCode) };
  };

  const proveOne = async (wall: FoundWall, bash: string): Promise<string | undefined> =>
    await tryCanary({
      bash,
      root,
      absent: absent(),
      hasNamespaces: wall.kind === "bubblewrap",
      run: async (program, plan) =>
        // Without what the workspace contains, which says nothing about the wall: a command that it endangers is refused.
        await runBehind(
          wall,
          program,
          wallArguments(wall, { ...findings(wall, program, plan), repository: undefined }, []),
        ),
    });

  const prove = async (): Promise<void> => {
    const program = firstProgram(options.programs ?? PROGRAMS[process.platform] ?? [], root);
    const bash = firstProgram(SHELLS, root);
    if (program === undefined || bash === undefined) {
      missing = program === undefined ? noProgram() : { reason: "there is no bash", fix: "install bash" };
      return;
    }
    const kind = process.platform === "darwin" ? "seatbelt" : "bubblewrap";
    let why: string | undefined;
    for (const forbidsUserNamespaces of kind === "seatbelt" ? [true] : [true, false]) {
      const wall = { kind, program, forbidsUserNamespaces } as const;
      why = await proveOne(wall, bash);
      if (why === undefined) {
        proven = wall;
        missing = undefined;
        return;
      }
    }
    missing = noProof(program, why ?? "");
  };

  const proveOnce = async (): Promise<void> => {
    if (mode === "off") return;
    proof ??= prove();
    await proof;
    if (mode === "require" && proven === undefined) throw sandboxMissing(missing);
  };

  const lost = async (message: string): Promise<SluiceError> => {
    proven = undefined;
    proof = undefined;
    keys = undefined;
    isLost = true;
    try {
      await proveOnce();
    } catch (thrown) {
      if (!isSluiceError(thrown, "sandbox_missing")) throw thrown;
    }
    return notBuilt(message.trim() || (missing?.reason ?? "the sandbox program printed no message"));
  };

  const provenWall = async (): Promise<FoundWall> => {
    await proveOnce();
    if (proven === undefined) throw notBuilt(missing?.reason ?? "the sandbox is off");
    return proven;
  };

  /** Paths that were protected from a command of this session, and stay so: another one may hide them from the search or the index. */
  const protectedPaths = new Set<string>();

  const below = async ({ plan }: Protected): Promise<FoundMarks> => await marksBelow(topsOf(plan), areasOf(plan));

  /** What the index names, and what was protected before. */
  const beside = (facts: Protected): readonly Mark[] => {
    const { plan, repository } = facts;
    const tops = topsOf(plan);
    const areas = writable(facts);
    const paths = [...protectedPaths].filter((path) => tops.some((top) => contains(top, path)));
    const named = repository === undefined ? [] : namedMarks(repository.place, areas);
    return distinct([...named, ...paths.flatMap((path) => markAt(path, areas))]);
  };

  const search = async (facts: Protected): Promise<FoundMarks> => {
    const { marks, isWhole } = await below(facts);
    const all = distinct([...marks, ...beside(facts)]);
    for (const mark of all) if (isObeyed(mark) && mark.bytes === undefined) protectedPaths.add(mark.path);
    return { marks: all, isWhole };
  };

  const toProtect = async (facts: Protected): Promise<FoundMarks> => {
    refuseLeft(left);
    const found = await search(facts);
    refuseMany(found.marks);
    return found;
  };

  /** Does work of a program that may write, and moves away what it leaves, also if the work fails. */
  const movingAway = async <T>(
    facts: Protected,
    found: FoundMarks,
    work: () => Promise<T>,
  ): Promise<WatchedWork<T>> => {
    const { plan } = facts;
    if (plan.writes.length === 0) return { end: await work(), movedAway: [] };
    const watched = watchedPaths(facts);
    const store = options.store?.();
    const { marks } = found;
    const before = obeyedBefore(found, watched, () => (store === undefined ? [] : callsElsewhere(store, plan.root)));
    let ended: (() => void) | undefined;
    let end: T;
    let movedAway: SandboxedExit["movedAway"];
    try {
      if (store !== undefined)
        ended = recordCall(store, { root: plan.root, tops: topsOf(plan), marks, watched, before });
      end = await work();
    } finally {
      movedAway = await moveAway(before, {
        lists: watched.lists,
        searches: [async () => (await below(facts)).marks, () => Promise.resolve(beside(facts))],
        root: plan.root,
        store,
        left,
      });
      // Kept if something could not be moved: the next process tries again.
      ended?.();
    }
    return { end, movedAway };
  };

  const run = async (program: ProcessOptions, plan: SandboxPlan): Promise<SandboxedExit> => {
    const wall = await provenWall();
    const release = holdScratch(plan.root, plan.scratch);
    try {
      const facts = protectedFindings(wall, program, plan);
      const found = await toProtect(facts);
      let errors = "";
      const stderr = (text: string): boolean => {
        if (errors.length < KEPT_TEXT) errors += text.slice(0, KEPT_TEXT);
        return program.stderr(text);
      };
      const { end, movedAway } = await movingAway(facts, found, async () => {
        const end = await runBehind(wall, { ...program, stderr }, wallArguments(wall, facts, found.marks));
        if (end === undefined) throw await lost(errors);
        return end;
      });
      return { ...end, movedAway };
    } finally {
      release();
    }
  };

  const watched = async <T>(
    env: Program["env"],
    plan: SandboxPlan,
    work: () => Promise<T>,
  ): Promise<WatchedWork<T>> => {
    refuseLeft(left);
    const facts = { plan, repository: repositoryOf(plan, homeIn(env).home) };
    return await movingAway(facts, await search(facts), work);
  };

  const wrap = async (program: Program, plan: SandboxPlan): Promise<SandboxedProgram> => {
    const wall = await provenWall();
    const facts = protectedFindings(wall, program, plan);
    const { marks } = await toProtect(facts);
    const args = wallArguments(wall, facts, marks, { status: false });
    const first = guarded(facts, marks);
    return {
      file: wall.program,
      args: [...args, program.file, ...program.args],
      isIntact: async () => {
        const now = { plan, repository: repositoryOf(plan, facts.home) };
        return isSameJson(guarded(now, (await search(now)).marks), first);
      },
    };
  };

  return {
    mode,
    get wall() {
      return proven?.kind;
    },
    get isLost() {
      return isLost && proven === undefined;
    },
    get missing() {
      return mode === "off" ? undefined : missing;
    },
    prove: proveOnce,
    run,
    watched,
    wrap,
  };
}

/** The home folder as an environment spells it, and its real path. */
function homeIn({ HOME }: Program["env"]): Pick<BubblewrapFacts, "spelledHome" | "home"> {
  const spelledHome = HOME !== undefined && isAbsolute(HOME) ? HOME : undefined;
  return { spelledHome, home: spelledHome === undefined ? undefined : (realPath(spelledHome) ?? resolve(spelledHome)) };
}

function wallArguments(
  wall: FoundWall,
  facts: Omit<BubblewrapFacts, "marks" | "status">,
  marks: readonly Mark[],
  { status } = { status: true },
): readonly string[] {
  const all = { ...facts, marks, status };
  return wall.kind === "seatbelt" ? ["-p", seatbeltProfile(all)] : bubblewrapArguments(all);
}

/** The first that can be run, outside the workspace, which could replace it. */
function firstProgram(paths: readonly string[], root: string): string | undefined {
  return paths.find((path) => {
    const real = realPath(path);
    return real !== undefined && !contains(root, real) && isProgram(real);
  });
}

/** Folders to search for marks: what a command can reach in the workspace, and what it can write elsewhere. */
function topsOf(plan: SandboxPlan): readonly string[] {
  const read = plan.reads.filter((path) => !isAbsolute(path)).map((path) => resolve(plan.root, path));
  const tops = [...read, ...areasOf(plan)];
  return [...new Set(tops)].filter((top) => !tops.some((other) => other !== top && contains(other, top)));
}

/** What a program may write, as it is named and where that leads. */
function areasOf({ root, writes }: SandboxPlan): readonly string[] {
  const areas = writes.map((path) => resolve(root, path));
  return [...new Set([...areas, ...areas.flatMap((path) => realPath(path) ?? [])])];
}

/** The repository of the workspace, once what hides or protects a path can be found: a command may have closed folders. */
function repositoryOf(plan: SandboxPlan, home: string | undefined): SandboxedRepository | undefined {
  const areas = ["", ...plan.reads, ...plan.writes].map((path) => resolve(plan.root, path));
  for (const path of [...plan.absent, ...plan.readOnly, join(plan.root, ".sluice")]) certainPath(path, areas);
  return sandboxedRepository(plan.root, home);
}

/** What a program that has started must not see or change, each with what is there. */
function guarded({ plan, repository }: Protected, marks: readonly Mark[]): Json {
  const { fixed = [], awaited = [], outside = [] } = repository ?? {};
  // Without sockets, since a server may make its own.
  const obeyed = marks.filter(isObeyed).map(({ path }) => path);
  const paths = [...plan.readOnly, ...plan.absent, ...fixed, ...awaited, ...outside, ...obeyed];
  return paths.map((path) => [path, instanceAt(path) ?? ""]);
}

/** The folders of the repository, if a program may write it. */
function writtenFolders({ plan, repository }: Protected): readonly string[] {
  return repository?.whole === true && areasOf(plan).includes(plan.root) ? repository.folders : [];
}

/** What a program may write, with the repository. */
function writable(facts: Protected): readonly string[] {
  return [...areasOf(facts.plan), ...writtenFolders(facts)];
}

function watchedPaths(facts: Protected): WatchedPaths {
  const { plan, repository } = facts;
  const planned = [...plan.absent, ...plan.readOnly];
  const folders = writtenFolders(facts);
  const areas = writable(facts);
  const isWritable = (path: string): boolean => areas.some((area) => contains(area, path));
  const lists = [
    () => withLinks(planned, areas).filter(isWritable),
    () => withLinks(obeyedPaths(folders, areas), areas),
    () => withLinks(repository?.awaited ?? [], areas).filter(isWritable),
    ...(repository === undefined || folders.length === 0 ? [] : [() => unreadIndex(repository, areas)]),
  ];
  const readOnly = [...plan.readOnly.flatMap((path) => certainPath(path, areas)), ...(repository?.fixed ?? [])];
  return { repository: folders, lists, areas, readOnly };
}

function distinct(marks: readonly Mark[]): readonly Mark[] {
  return [...new Map(marks.map((mark) => [keyOf(mark), mark])).values()];
}

function refuseMany(marks: readonly Mark[]): void {
  const channels = marks.filter(({ kind }) => kind === "channel");
  if (channels.length <= MOST_CHANNELS) return;
  const message = `The workspace contains ${channels.length} sockets and FIFOs, such as ${channels[0]?.path}. A sandbox can hide at most ${MOST_CHANNELS}, so nothing was run. Remove those that are not in use.`;
  throw fault("sandbox_failed", message);
}

function sandboxMissing(missing: MissingSandbox | undefined): SluiceError {
  const { reason, fix } = missing ?? { reason: "it was not looked for", fix: "" };
  const message = `commands must run in a sandbox (sandbox: "require"), and there is none: ${reason}. To get one: ${fix}`;
  return new SluiceError("Session", "sandbox_missing", message, { detail: { reason, fix } });
}

function notBuilt(why: string): SluiceError {
  return fault("sandbox_failed", `The sandbox for this command could not be created, so nothing was run: ${why}`);
}

function numberIn(status: string, name: string): number | undefined {
  const value = new RegExp(`"${name}": *(\\d+)`).exec(status)?.[1];
  return value === undefined ? undefined : Number(value);
}

/** Shells, and the first process inside, report a signal as exit code 128 + its number. */
function signalOf(exitCode: number | null): string | null {
  const found = Object.entries(system.signals).find(([, number]) => number + 128 === exitCode);
  return found?.[0] ?? null;
}

/** Waits until the processes inside, which are killed with the wall's process, can no longer write. */
async function untilGone(first: number): Promise<void> {
  // Real time: an injected clock may stand still.
  // The first process of a namespace becomes a zombie only after all others have ended.
  for (let left = SETTLE_MS; left > 0 && startOf(first) !== undefined; left -= 1) await setTimeout(1);
}
