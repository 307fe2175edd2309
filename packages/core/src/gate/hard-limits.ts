import { isAbsolute } from "node:path";
import { foldCase, insideRoot, isInside, type Subject, type Workspace } from "./subjects.ts";

type PathSubject = Extract<Subject, { readonly kind: "path" }>;
type CommandSubject = Extract<Subject, { readonly kind: "command" }>;

/** Where no grant reaches. */
export interface HardLimits {
  readonly workspace: Workspace;
  /** Absolute real paths of files and folders that are not to be written besides the ones every workspace protects. */
  readonly protectedPaths?: readonly string[];
}

/** Which hard limit a subject is beyond, as a reason, or undefined. */
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
      return "the tool named something that the gate does not know";
  }
}

function pathLimit(
  { real, access, from }: PathSubject,
  { workspace, protectedPaths = [] }: HardLimits,
): string | undefined {
  const { root, store } = workspace;
  if (!isAbsolute(real) || real.includes("\0")) return `${JSON.stringify(real)} is not a path that can be judged`;
  if (store !== undefined && isInside(real, store)) return `${real} is in the run store, which no tool may touch`;
  const path = insideRoot(root, real);
  // Where a command goes is not yet what it touches; going out needs a grant.
  if (path === undefined) return from === "cd" ? undefined : `${real} is outside the workspace`;
  if (access === "read") return undefined;
  const name = path.split("/").find(isProtectedName);
  if (name !== undefined) return `${path} may not be written: ${name} is protected`;
  if (store !== undefined && isInside(store, real)) return `${real} may not be written: it holds the run store`;
  const overlaps = protectedPaths.find((other) => isInside(real, other) || isInside(other, real));
  return overlaps === undefined ? undefined : `${path} may not be written: ${overlaps} is protected`;
}

/** Characters that some filesystems drop from names. */
const DROPPED = /\p{Default_Ignorable_Code_Point}/gu;
/** `.git`, `.sluice` and `sluice.config.*`, and what other filesystems take for them: trailing dots, streams, short names. */
const PROTECTED = /^(?:\.git|\.sluice|sluice\.config)(?:[ .:].*)?$|^(?:git|sluice)~\d+$/;

function isProtectedName(name: string): boolean {
  return PROTECTED.test(foldCase(name.replaceAll(DROPPED, "")));
}

/** How the command is called: by name, by file, by package with or without a version. */
const OURSELVES = /(?:^|[/\\])sluice(?:\.[a-z0-9]+)?(?:@[^/\\]*)?$|^@sluice\/cli(?:@.*)?$/;
const VERBS: ReadonlySet<string> = new Set([
  "answer",
  "cancel",
  "resume",
  "prune",
  "export",
  "replay",
  "fork",
  "--trust",
  "--adopt-store",
  "--answers",
]);
/** Options whose value is a program, as `npx -c` and `node -e` have them. */
const PROGRAM_OPTIONS: ReadonlySet<string> = new Set([
  "-c",
  "-e",
  "-p",
  "-S",
  "--call",
  "--eval",
  "--print",
  "--split-string",
]);
const OUR_NAME = /\bsluice\b/;
const VERB_BEHIND = /\b(?:answer|cancel|resume|prune|replay|fork)\b|--(?:trust|adopt-store)\b/;

const STEERING =
  "sluice answer, cancel, resume, prune, export, replay, fork, --trust and --adopt-store are for people: no run may answer, steer or trust itself";

/** Whether a program in a word may call us so. `export` only in the same command: shells and modules have one of their own. */
function callsUs(program: string): boolean {
  const behind = behindName(program);
  if (behind === undefined) return false;
  return VERB_BEHIND.test(behind) || behind.split(/[;&|\n]/).some(isExport);
}

function isExport(command: string): boolean {
  return /\bexport\b/.test(behindName(command) ?? "");
}

/** One look from the left: a pattern that begins anew at each name would take as long as a model likes. */
function behindName(text: string): string | undefined {
  const at = text.search(OUR_NAME);
  return at === -1 ? undefined : text.slice(at);
}

/**
 * Nobody approves himself. A command that only reads cannot start another, so its words are just words; any other may hand
 * them on to a program, by whatever launcher.
 */
function commandLimit({ argv, dynamic, readOnly }: CommandSubject): string | undefined {
  const words = argv.map(foldCase);
  const at = words.findIndex((word) => OURSELVES.test(word));
  const verb =
    at === 0 || (at > 0 && !readOnly)
      ? words.findIndex((word, index) => index > at && isVerb(word, dynamic[index]))
      : -1;
  const inProgram = words.some((word, index) => PROGRAM_OPTIONS.has(argv[index - 1] ?? "") && callsUs(word));
  if (verb === -1 && !inProgram) return undefined;
  return STEERING;
}

function isVerb(word: string, dynamic: boolean | undefined): boolean {
  return VERBS.has(word) || dynamic !== false;
}
