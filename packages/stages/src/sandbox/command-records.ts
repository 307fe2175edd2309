import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseJson } from "@sluice/core";
import { COMMANDS_FOLDER, shape } from "@sluice/core/runtime";
import { contains, entriesIn, isFile } from "../tools/files/paths.ts";
import { fault, withFallback } from "../tools/files/results.ts";
import type { SandboxedExit } from "../tools/sandbox.ts";
import { repositoryAt } from "../tools/search/git-settings.ts";
import { isObeyed, moveAway, type ObeyedBefore, type WatchedPaths } from "./after-call.ts";
import { folderMarks, identityAt, keyOf, type Mark } from "./folder-marks.ts";
import { namedMarks, obeyedPaths, unreadIndex, withLinks } from "./repository.ts";

/** What moving away after a call needs, by a process that did not see its beginning. */
const commandRecord = shape.object({
  /** The workspace, and what it was then: other numbers of disks after a restart make all identities useless. */
  root: shape.pair(shape.text(), shape.text()),
  tops: shape.list(shape.text()),
  /** Identities and states by path, as they were before. */
  marks: shape.list(shape.pair(shape.text(), shape.text())),
  paths: shape.list(shape.pair(shape.text(), shape.text())),
  /** Identities of the folders that hold the marks, by path. */
  holders: shape.list(shape.pair(shape.text(), shape.text())),
  repository: shape.list(shape.text()),
  since: shape.optional(shape.decimal()),
});
type CommandRecord = shape.ShapeOf<typeof commandRecord>;

/** A call that is about to begin. */
export interface BegunCall {
  readonly root: string;
  readonly tops: readonly string[];
  readonly marks: readonly Mark[];
  readonly watched: WatchedPaths;
  readonly before: ObeyedBefore;
}

/** Records a call, so that another process can move away what it leaves if this one is killed. Returns what removes the record. */
export function recordCall(store: string, { root, tops, marks, watched, before }: BegunCall): () => void {
  const obeyed = marks.filter(isObeyed);
  const holders = [...new Set(obeyed.map(({ path }) => dirname(path)))];
  const call: CommandRecord = {
    root: [root, identityAt(root) ?? ""],
    tops: [...tops],
    marks: obeyed.map(({ path, identity }) => [path, identity]),
    paths: [...before.paths],
    holders: holders.map((path) => [path, identityAt(path) ?? ""]),
    repository: [...watched.repository],
    ...(before.since === undefined ? {} : { since: before.since }),
  };
  const folder = join(store, COMMANDS_FOLDER);
  const file = join(folder, `${process.pid}-${startOf(process.pid) ?? ""}-${randomUUID()}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // On disk before the call begins, since the machine may lose power.
  writeFileSync(file, JSON.stringify(call), { flag: "wx", mode: 0o600, flush: true });
  return () => rmSync(file, { force: true });
}

/** The calls of other processes that are active in a workspace. Each is recorded before it begins. */
export function callsElsewhere(store: string, root: string): readonly ObeyedBefore[] {
  const folder = join(store, COMMANDS_FOLDER);
  return entriesIn(folder).flatMap(({ name }): readonly ObeyedBefore[] => {
    const [, pid, start] = RECORD.exec(name) ?? [];
    if (pid === undefined || Number(pid) === process.pid || startOf(Number(pid)) !== start) return [];
    const call = readCall(join(folder, name));
    if (call === undefined || call.root[0] !== root) return [];
    return [recordedBefore(call, new Map(call.paths), call.tops)];
  });
}

/**
 * Moves away what recorded calls of ended processes left in a workspace. Throws `sandbox_failed` if something could not be moved, or
 * for a record that cannot be read.
 */
export async function moveAwayRecorded({
  root,
  store,
}: {
  readonly root: string;
  readonly store: string;
}): Promise<SandboxedExit["movedAway"]> {
  const folder = join(store, COMMANDS_FOLDER);
  const movedAway: SandboxedExit["movedAway"][number][] = [];
  for (const { name } of entriesIn(folder)) {
    const [, pid, start] = RECORD.exec(name) ?? [];
    if (pid === undefined || startOf(Number(pid)) === start) continue;
    const file = join(folder, name);
    const call = readCall(file);
    if (call !== undefined && call.root[0] !== root) continue;
    for (const moved of call === undefined ? [] : await endCall(call, store)) movedAway.push(moved);
    rmSync(file, { force: true });
  }
  return movedAway;
}

/** The name of a record. Nothing else is touched: the folder may have come from elsewhere. */
const RECORD = /^(\d+)-(\d*)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

async function endCall(call: CommandRecord, store: string): Promise<SandboxedExit["movedAway"]> {
  const [root, place] = call.root;
  const repository = withFallback(() => repositoryAt(root), undefined);
  // A record that came with its folder from elsewhere must not name files elsewhere.
  const areas = [root, ...(repository === undefined ? [] : [repository.folder, repository.shared])];
  const isOwn = (path: string): boolean => areas.some((area) => contains(area, resolve(path)));
  const marksBelow = folderMarks();
  const tops = call.tops.filter(isOwn);
  const knownPaths = new Set(call.marks.map(([path]) => path));
  const isSamePlace = identityAt(root) === place;
  const holders = new Map(call.holders);
  // The user's editor may have replaced a file since then. A command could only replace the folder that holds it.
  const mayBeReplaced = (path: string): boolean =>
    isFile(path) && holders.get(dirname(path)) === identityAt(dirname(path));
  const isUsers = ({ path }: Mark): boolean => knownPaths.has(path) && (!isSamePlace || mayBeReplaced(path));
  const without = (marks: readonly Mark[]): readonly Mark[] => marks.filter((mark) => !isUsers(mark));
  const paths = new Map(call.paths.filter(([path]) => isOwn(path)));
  const folders = call.repository.filter(isOwn);
  const before = recordedBefore(call, paths, areas);
  const named = (): readonly Mark[] => (folders.length === 0 ? [] : withFallback(() => namedMarks(root, areas), []));
  const unread = (): readonly string[] => withFallback(() => unreadIndex({ place: root, folders }, areas), []);
  return await moveAway(before, {
    lists: [() => withLinks([...paths.keys(), ...obeyedPaths(folders, areas)], areas), unread],
    searches: [async () => without((await marksBelow(tops, tops)).marks), () => Promise.resolve(without(named()))],
    root,
    store,
    left: new Map(),
  });
}

function recordedBefore(
  { marks, since }: CommandRecord,
  paths: ObeyedBefore["paths"],
  areas: readonly string[],
): ObeyedBefore {
  const keys = new Set(marks.map(([path, identity]) => keyOf({ path, identity })));
  return { marks: keys, paths, areas, readOnly: [], ...(since === undefined ? {} : { since }) };
}

/** Undefined if the call never began, or if another process has ended it. */
function readCall(file: string): CommandRecord | undefined {
  const text = withFallback(() => readFileSync(file, "utf8"), "");
  const call = parseJson(text);
  if (!call.ok) return undefined;
  if (commandRecord.fits(call.value, [])) return call.value;
  const message = `${file} is no record of a command that this version can read. Look for new files in its workspace, then remove it.`;
  throw fault("sandbox_failed", message);
}

/**
 * When a process was started, by the system's own count; undefined if it has ended. Elsewhere than on Linux only whether it lives.
 */
export function startOf(pid: number): string | undefined {
  return withFallback(() => {
    if (process.platform !== "linux") return process.kill(pid, 0) ? "" : undefined;
    // The name of the program comes first, in parentheses, and may hold any character.
    const [state = "", ...fields] = readFileSync(`/proc/${pid}/stat`, "latin1")
      .replace(/^.*\) /s, "")
      .split(" ");
    return /[ZX]/.test(state) ? undefined : fields[START_FIELD];
  }, undefined);
}

/** Of the fields behind the state. */
const START_FIELD = 18;
