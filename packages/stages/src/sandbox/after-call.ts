import { randomUUID } from "node:crypto";
import { chmodSync, lstatSync, mkdirSync, readlinkSync, renameSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { isSluiceError } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import { certain, openAgain } from "../tools/files/closed-folders.ts";
import { withFolder } from "../tools/files/open.ts";
import { contains, existing, linksOn } from "../tools/files/paths.ts";
import { fault, systemCode, withFallback } from "../tools/files/results.ts";
import type { SandboxedExit } from "../tools/sandbox.ts";
import { beforeNow, type FoundMarks, keyOf, type Mark } from "./folder-marks.ts";
import { realWithin } from "./repository.ts";

/** The paths that programs of the host would obey, as they are before a call. */
export interface ObeyedBefore {
  /** Their keys. */
  readonly marks: ReadonlySet<string>;
  /** State by path: absent (""), a link with its target, or anything else, which the wall protects. */
  readonly paths: ReadonlyMap<string, string>;
  /** What the call may write. */
  readonly areas: readonly string[];
  /** Existing paths in the areas below which it could change nothing. */
  readonly readOnly: readonly string[];
  /** When it began, in milliseconds, if the search was cut off then: what did not change since may have been there. */
  readonly since?: number;
}

type PathList = () => readonly string[];

/** Paths that a call must not create, in addition to those that are obeyed for their name. */
export interface WatchedPaths {
  /** The repository's folders, if it is writable. */
  readonly repository: readonly string[];
  /** Find the paths. One throws `sandbox_failed` if a path cannot be examined. */
  readonly lists: readonly PathList[];
  /** What the call may write. */
  readonly areas: readonly string[];
  /** Existing paths in the areas that are read-only. */
  readonly readOnly: readonly string[];
}

/** Those of all calls that are active in this process. */
const active = new Set<ObeyedBefore>();

/**
 * Begins a call, which `moveAway` ends. What other active calls have made since they began counts as not there before: `elsewhere`
 * returns those of other processes. Throws `sandbox_failed` if a path cannot be examined.
 */
export function obeyedBefore(
  { marks, isWhole }: FoundMarks,
  watched: WatchedPaths,
  elsewhere: () => readonly ObeyedBefore[],
): ObeyedBefore {
  const { areas, lists, readOnly } = watched;
  const listed = lists.flatMap((list) => list());
  // Where a link of the user leads, a command makes what is obeyed without changing the link.
  const paths = [...listed, ...listed.flatMap((path) => realWithin(areas, path))];
  const now = paths.map((path) => [path, stateOf(path, areas)] as const);
  // Last, since a call that begins meanwhile is known before it can make anything.
  const others = [...active, ...elsewhere()];
  const isOld = (mark: Mark): boolean => isObeyed(mark) && !others.some((one) => isMadeBy(one, mark));
  const old = new Set(marks.filter(isOld).map(keyOf));
  const stateBefore = (path: string, state: string): string => {
    const states = others.flatMap((one) => one.paths.get(path) ?? []);
    return states.includes("") ? "" : (states[0] ?? state);
  };
  const before = {
    marks: old,
    paths: new Map(now.map(([path, state]) => [path, stateBefore(path, state)])),
    areas,
    readOnly,
    ...(isWhole ? {} : { since: beforeNow() }),
  };
  active.add(before);
  return before;
}

/** Whether a call may have made a mark, since it was not there when the call began. */
function isMadeBy({ marks, areas, readOnly, since }: ObeyedBefore, mark: Mark): boolean {
  const { path, identity, changed } = mark;
  // What is known from another path was moved, though its folder alone changed.
  const wasMoved = (): boolean => marks.values().some((key) => key.startsWith(keyOf({ path: "", identity })));
  const isMissed = since !== undefined && changed < since && !wasMoved();
  const isBelow = (one: string): boolean => one !== path && contains(one, path);
  return !marks.has(keyOf(mark)) && !isMissed && areas.some((area) => contains(area, path)) && !readOnly.some(isBelow);
}

/** What is to be moved. */
type Found = Pick<Mark, "path" | "bytes">;

/** What there is after a call. */
export interface ObeyedAfter {
  readonly lists: readonly PathList[];
  /** Each finds marks. */
  readonly searches: readonly (() => Promise<readonly Mark[]>)[];
  /** The workspace. */
  readonly root: string;
  /** The folder of the run store, if it is on disk. */
  readonly store: string | undefined;
  /** Receives what cannot be moved: why, by path. */
  readonly left: Map<string, string>;
}

/**
 * Moves every new obeyed path out of the workspace; those that existed before are mounted and cannot change. Throws
 * `sandbox_failed` if one could not be moved, once all were tried.
 */
export async function moveAway(
  before: ObeyedBefore,
  { lists, searches, root, store, left }: ObeyedAfter,
): Promise<SandboxedExit["movedAway"]> {
  const quarantine = quarantineOf(store, root, before.areas);
  const folderNow = (): string | undefined => {
    if (quarantine !== undefined) mkdirSync(quarantine, { recursive: true, mode: 0o700 });
    return quarantine;
  };
  const movedAway: { path: string; to: string }[] = [];
  const faults: unknown[] = [];
  const take = async (found: readonly Found[], isNew: (path: string) => boolean): Promise<void> => {
    for (const one of found) {
      const { path, bytes } = one;
      // A name that no program obeys, and short enough for every system.
      const name = `${movedAway.length + left.size + 1}-${basename(path).replace(/^\.+/, "").slice(0, MOST_OF_NAME)}.moved`;
      try {
        const to = isNew(path) ? await move(one, name, folderNow) : undefined;
        if (to === undefined) continue;
        movedAway.push({ path, to });
      } catch (thrown) {
        // The others are moved all the same. Whether something is at a path that is no text cannot be checked later.
        if (bytes === undefined) left.set(path, systemCode(thrown) ?? messageOf(thrown));
        else faults.push(thrown);
      }
    }
  };
  const isChanged = (path: string): boolean => {
    const now = stateOf(path, before.areas);
    return now !== "" && now !== (before.paths.get(path) ?? "");
  };
  // First these, which depend on no search. A link among them may have been replaced by a folder.
  await take(foundAt(before.paths.keys()), isChanged);
  const takeMade = async (search: ObeyedAfter["searches"][number]): Promise<void> => {
    const made = (await search()).filter((mark) => isObeyed(mark) && isMadeBy(before, mark));
    const paths = new Set(made.map(({ path }) => path));
    // What else a new repository consists of may have been there before, and is nothing without its HEAD.
    const isRest = ({ path, head = path }: Mark): boolean => head !== path && paths.has(head);
    await take(
      made.filter((mark) => !isRest(mark)),
      () => true,
    );
  };
  const takeAdded = async (list: PathList): Promise<void> => {
    const added = list().filter((path) => !before.paths.has(path));
    // Behind a link that was moved, a link of the user is on the way to nothing.
    const isOnTheWay = (path: string): boolean => !isLink(path) || list().includes(path);
    await take(foundAt(added), (path) => isChanged(path) && isOnTheWay(path));
  };
  const steps = [...searches.map((search) => () => takeMade(search)), ...lists.map((list) => () => takeAdded(list))];
  for (const step of steps) {
    try {
      await step();
    } catch (thrown) {
      // What a command does to one list keeps nothing else.
      faults.push(thrown);
    }
  }
  active.delete(before);
  refuseLeft(left);
  if (faults.length > 1) throw fault("sandbox_failed", faults.map(messageOf).join(" "));
  if (faults.length > 0) throw faults[0];
  return movedAway;
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}

function foundAt(paths: Iterable<string>): readonly Found[] {
  return [...paths].map((path) => ({ path }));
}

/** The folder to which things are moved: beside the store, or else with temporary files. Undefined if commands reach both. */
function quarantineOf(store: string | undefined, root: string, areas: readonly string[]): string | undefined {
  const id = randomUUID();
  const isReached = (path: string): boolean =>
    [root, ...areas].some((area) => contains(area, path)) && !contains(join(root, ".sluice"), path);
  const places = [
    ...(store === undefined ? [] : [{ folder: dirname(store), name: join("moved-away", id) }]),
    { folder: tmpdir(), name: `sluice-moved-away-${id}` },
  ];
  // A command may also have made one of them a link.
  const free = places.find(({ folder }) => ![folder, ...existing(folder), ...linksOn(folder)].some(isReached));
  return free === undefined ? undefined : join(free.folder, free.name);
}

/** Throws `sandbox_failed` while something is there that could not be moved away. */
export function refuseLeft(left: Map<string, string>): void {
  for (const path of left.keys()) if (!mayBeThere(path)) left.delete(path);
  if (left.size === 0) return;
  const named = [...left].map(([path, why]) => `${path} (${why})`).join(", ");
  const message = `A command left what programs of this machine would obey, and it could not be moved away: ${named}. Nothing runs in the sandbox until it is removed.`;
  throw fault("sandbox_failed", message, { paths: [...left.keys()] });
}

/** Characters of a name that are kept; each has at most three bytes. */
const MOST_OF_NAME = 60;

/** A folder on the way that cannot be searched proves nothing. */
function mayBeThere(path: string | Buffer): boolean {
  return withFallback(() => lstatSync(path, { throwIfNoEntry: false }) !== undefined, true);
}

/** Whether a mark is something that programs of the host obey. */
export function isObeyed({ kind }: Mark): boolean {
  return kind === "obeyed";
}

function stateOf(path: string, areas: readonly string[]): string {
  const state = certain(path, areas, () => {
    const stats = lstatSync(path);
    return stats.isSymbolicLink() ? `a link to ${readlinkSync(path)}` : "present";
  });
  return state ?? "";
}

/**
 * Renames a path. Returns where it is then; undefined if it is already gone, moved together with its folder, or lies behind a link,
 * which is moved itself.
 */
async function move(
  { path, bytes }: Found,
  name: string,
  folderNow: () => string | undefined,
): Promise<string | undefined> {
  const holder = dirname(path);
  const mode = openAgain(holder);
  try {
    // Another process in the sandbox could turn the folder into a link to a place outside of the workspace.
    return await withFolder(holder, async (folder) => {
      const beside = `moved-away-${randomUUID()}-${name}`;
      const present = bytes === undefined ? basename(path) : beside;
      try {
        if (bytes !== undefined) {
          // First a name that is text, by which it can be opened.
          const unnamed = Buffer.concat([Buffer.from(folder.at("/")), bytes]);
          if (!mayBeThere(unnamed)) return undefined;
          renameSync(unnamed, folder.at(beside));
        }
        // A folder that its owner may not change cannot be moved into another one.
        openAgain(join(holder, present));
        const elsewhere = (): string | undefined => {
          const quarantine = folderNow();
          return quarantine === undefined ? undefined : join(quarantine, name);
        };
        const there = renamed(folder.at(present), folder.at(beside), elsewhere);
        return there === folder.at(beside) ? join(holder, beside) : there;
      } finally {
        if (mode !== undefined) chmodSync(folder.path, mode);
      }
    });
  } catch (thrown) {
    if (isSluiceError(thrown) && NOT_HERE.has(thrown.code)) return undefined;
    throw thrown;
  }
}

/** Renames something to a path on the same disk, or else to one beside it. Returns its path then; undefined if it is gone. */
function renamed(from: string, beside: string, elsewhere: () => string | undefined): string | undefined {
  try {
    const to = elsewhere() ?? beside;
    renameSync(from, to);
    return to;
  } catch (thrown) {
    if (!mayBeThere(from)) return undefined;
    if (systemCode(thrown) === undefined) throw thrown;
    // Another disk, or no folder of this user. It is never copied, since a command that still runs could change it meanwhile.
    renameSync(from, beside);
    return beside;
  }
}

/** The codes of a folder that is not what its path says. */
const NOT_HERE: ReadonlySet<string> = new Set(["not_found", "path_changed", "not_a_folder"]);
