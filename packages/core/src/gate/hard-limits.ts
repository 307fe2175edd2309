// What no grant can allow: paths outside the workspace, protected files, and commands that control Sluice itself.
import { isAbsolute, relative, sep } from "node:path";
import type { Subject, Workspace } from "./subjects.ts";

type PathSubject = Extract<Subject, { readonly kind: "path" }>;
type CommandSubject = Extract<Subject, { readonly kind: "command" }>;

export interface HardLimits {
  readonly workspace: Workspace;
  /** Absolute real paths of files and folders that may not be written, besides those protected in every workspace. */
  readonly protectedPaths?: readonly string[];
}

/** Why a subject violates a hard limit; undefined if it does not. */
export function hardLimitOn(subject: Subject, limits: HardLimits): string | undefined {
  switch (subject.kind) {
    case "path":
      return pathLimit(subject, limits);
    case "command":
      return commandLimit(subject);
    case "refused":
      return subject.reason;
    case "line":
      return subject.unread !== undefined && callsUs(subject.unread) ? STEERING : undefined;
    case "host":
    case "opaque":
    case "sandboxed":
      return undefined;
    default:
      return "the tool returned a subject of a kind that the gate does not know";
  }
}

function pathLimit(
  { real, access, from }: PathSubject,
  { workspace, protectedPaths = [] }: HardLimits,
): string | undefined {
  const { root, store } = workspace;
  if (!isAbsolute(real) || real.includes("\0")) return `${JSON.stringify(real)} is not an absolute path`;
  if (store !== undefined && isInside(real, store)) return `${real} is in the run store, which no tool may touch`;
  const path = insideRoot(root, real);
  // Changing to a folder outside touches nothing there; it needs a grant, but is not a hard limit.
  if (path === undefined) return from === "cd" ? undefined : `${real} is outside the workspace`;
  if (access === "read") return undefined;
  const name = path.split("/").find(isProtectedName);
  if (name !== undefined) return `${path} may not be written: ${name} is protected`;
  if (store !== undefined && isInside(store, real)) return `${real} may not be written: it holds the run store`;
  const overlaps = protectedPaths.find((other) => isInside(real, other) || isInside(other, real));
  return overlaps === undefined ? undefined : `${path} may not be written: ${overlaps} is protected`;
}

/** Characters that some filesystems ignore in names. */
const DROPPED = /\p{Default_Ignorable_Code_Point}/gu;
/** `.git`, `.sluice` and `sluice.config.*`, and their aliases on other filesystems: trailing dots, streams, short names. */
const PROTECTED = /^(?:\.git|\.sluice|sluice\.config)(?:[ .:].*)?$|^(?:git|sluice)~\d+$/;

function isProtectedName(name: string): boolean {
  return PROTECTED.test(foldCase(name.replaceAll(DROPPED, "")));
}

/** The command's name, its file, or its package with or without a version. */
const OURSELVES = /(?:^|[/\\])sluice(?:\.[a-z0-9]+)?(?:@[^/\\]*)?$|^@sluice\/(?:cli|tui)(?:@.*)?$/;
const VERB =
  /^(?:answer|cancel|resume|prune|export|replay|fork|interrupt|message|wake|serve|gateway|hook|acp|--trust|--adopt-store|--answers)$/;
/** Options whose value is a program, as in `npx -c` and `node -e`. */
const PROGRAM_OPTION = /^(?:-[cepS]|--(?:call|eval|print|split-string))$/;
/** Not a folder, `.sluice`, `sluice.config.*` or a longer name. */
const OUR_NAME = /(?<![\w.@-])sluice(?![\w/-]|\.config\b)|(?<!\w)@sluice\/(?:cli|tui)\b/;
const VERB_BEHIND = /\b(?:answer|cancel|resume|prune|replay|fork)\b|--(?:trust|adopt-store)\b/;

const STEERING =
  "only people may run sluice answer, cancel, resume, interrupt, message, wake, serve, gateway, hook, acp, prune, export, replay and fork, or pass --trust and --adopt-store: a run cannot approve or control runs";

/** Whether program text may call such a command. Words that are ordinary elsewhere count only in the same command. */
function callsUs(program: string): boolean {
  const behind = behindName(program);
  if (behind === undefined) return false;
  return VERB_BEHIND.test(behind) || behind.split(/[;&|\n]/).some(hasCommonVerb);
}

function hasCommonVerb(command: string): boolean {
  return /\b(?:export|interrupt|message|wake|serve|gateway|hook|acp)\b/.test(behindName(command) ?? "");
}

/** Searches only once from the left: a pattern that restarts at each name takes quadratic time on hostile text. */
function behindName(text: string): string | undefined {
  const at = text.search(OUR_NAME);
  return at === -1 ? undefined : text.slice(at);
}

/**
 * Runs cannot approve their own requests. A read-only command cannot start another program, so its operands are harmless; any
 * other command may pass them to one.
 */
function commandLimit({ argv, dynamic, readOnly }: CommandSubject): string | undefined {
  const words = argv.map(foldCase);
  const at = words.findIndex((word) => OURSELVES.test(word));
  const verb =
    at === 0 || (at > 0 && !readOnly)
      ? words.findIndex((word, index) => index > at && isVerb(word, dynamic[index]))
      : -1;
  const inProgram = words.some((word, index) => PROGRAM_OPTION.test(argv[index - 1] ?? "") && callsUs(word));
  if (verb === -1 && !inProgram) return undefined;
  return STEERING;
}

function isVerb(word: string, dynamic: boolean | undefined): boolean {
  return VERB.test(word) || dynamic !== false;
}

/** A path relative to the root, with `/` between folders and "" for the root itself. Undefined if it is outside. */
export function insideRoot(root: string, real: string): string | undefined {
  const path = relative(root, real);
  if (path === ".." || path.startsWith(`..${sep}`) || isAbsolute(path)) return undefined;
  return sep === "/" ? path : path.replaceAll(sep, "/");
}

/** Whether a path is a folder or inside it, on a filesystem that may ignore case. */
function isInside(path: string, folder: string): boolean {
  return insideRoot(foldCase(folder), foldCase(path)) !== undefined;
}

/** Upper case first, because it folds letters such as the long s, which some filesystems treat as an s. */
function foldCase(text: string): string {
  return text.toUpperCase().toLowerCase();
}
