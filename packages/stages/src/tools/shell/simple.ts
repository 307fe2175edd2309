import type { Assignment, Command, Redirection, Word } from "unbash";
import {
  assignedNames,
  changesReading,
  declaredNames,
  keepsAssignments,
  mayMove,
  redefinedNames,
  redefinesNames,
  unwrapBuiltin,
} from "./builtins.ts";
import { ANYWHERE, cdTarget, type Directories, enter, type Flow, stay, union } from "./directory.ts";
import { type ExpansionVisitor, visitAssignment, visitHereDoc, visitWord } from "./expansion.ts";
import { addCommand, addPath, assign, type Context, type Findings } from "./findings.ts";
import { unwrapGit } from "./git.ts";
import { unwrapProgram } from "./programs.ts";
import { excerpt, unsupported } from "./refusal.ts";
import { type Inner, type Unwrapped, unwrapShell } from "./shells.ts";
import { literalWord, readAssignmentWord, readWord, type ShellWord, unknownWord } from "./word.ts";
import { unwrapEnv, unwrapFind, unwrapParallel, unwrapPrefix, unwrapXargs } from "./wrappers.ts";

/** What a simple command needs from the walk around it. */
export interface Walk {
  readonly findings: Findings;
  /** Handles what expanding words in `context` runs. */
  readonly visitor: (context: Context, directories: Directories) => ExpansionVisitor;
  /** Analyses a text that a command runs as shell code. */
  readonly text: (inner: Extract<Inner, { kind: "text" }>, context: Context, directories: Directories) => Flow;
}

export function visitCommand(command: Command, walk: Walk, outer: Context, directories: Directories): Flow {
  checkApart(command);
  const names = command.prefix.flatMap((item) => (item.type === "Assignment" ? [item.name] : []));
  const bare = command.name === undefined;
  const context = bare ? outer : { ...outer, assignments: [...outer.assignments, ...names] };
  const visitor = walk.visitor(context, directories);
  for (const item of [...command.prefix, ...command.suffix]) {
    if (item.type === "Assignment") {
      visitAssignment(item, visitor);
      const elements = item.value.type === "ArrayValue" ? item.value.elements : [];
      for (const element of elements) addGlob(readWord(element), walk, directories);
    } else if (item.type === "Word") visitWord(item, visitor);
    else visitRedirection(item, walk, context, directories);
  }
  if (command.name === undefined) {
    for (const name of names) assign(walk.findings, name);
    return stay(directories);
  }
  visitWord(command.name, visitor);
  const words = [command.name, ...command.suffix].flatMap(argument);
  const lasting = keepsAssignments(words[0]?.text ?? "");
  for (const name of names) (lasting ? walk.findings.environment : walk.findings.prefixed).add(name);
  return visitWords(words, walk, context, directories);
}

/** To bash `a<(b)` is one word, to the parser two. */
function checkApart(command: Command): void {
  const items = [...command.prefix, ...(command.name === undefined ? [] : [command.name]), ...command.suffix];
  for (const [at, item] of items.entries()) {
    const isWord = item.type === "Word" || item.type === "Assignment";
    if (isWord && items[at - 1]?.end === item.pos) throw unsupported("a process substitution joined to other text");
  }
}

function argument(item: Word | Assignment | Redirection): readonly ShellWord[] {
  if (item.type === "Word") return [readWord(item)];
  return item.type === "Assignment" ? [readAssignmentWord(item)] : [];
}

/** Reports a command and all that it runs in turn. */
function visitWords(words: readonly ShellWord[], walk: Walk, context: Context, directories: Directories): Flow {
  const { findings } = walk;
  const first = words[0];
  if (first === undefined) return stay(directories);
  if (first.dynamic) {
    // Whatever it turns out to be, it may be `cd` or `eval`.
    addCommand(findings, { words, context, directories, transparent: undefined, unseen: false });
    findings.redefined = true;
    findings.moved = true;
    return stay(union(directories, ANYWHERE));
  }
  const name = first.text;
  const program = name.slice(name.lastIndexOf("/") + 1);
  if (changesReading(name, words) || (name === "alias" && context.dialect !== "bash")) {
    throw unsupported(`${excerpt(words.map((word) => word.text).join(" "))}, which changes how the rest is read,`);
  }
  if (redefinesNames(name)) findings.redefined = true;
  for (const shadowed of redefinedNames(name, words)) findings.shadowed.add(shadowed);
  for (const declared of declaredNames(name, words)) {
    if (declared !== "") findings.environment.add(declared);
    assign(findings, declared);
  }
  for (const assigned of assignedNames(name, words)) assign(findings, assigned);
  const unwrapped = unwrap(program, words);
  const transparent = name === program || unwrapped === undefined ? unwrapped?.transparent : false;
  addCommand(findings, { words, context, directories, transparent, unseen: false });
  for (const file of unwrapped?.files ?? []) {
    addPath(findings, { word: file, access: "read", from: "operand", directories });
  }
  let flow = stay(directories);
  for (const inner of unwrapped?.inner ?? []) {
    const after = visitInner(inner, walk, context, directories);
    if (inner.kind !== "unseen" && inner.inShell === true) flow = after;
  }
  if (name === "cd") return visitCd(words, walk, directories);
  if (name === "trap") findings.outOfOrder = true;
  if (mayMove(name)) {
    findings.moved = true;
    return stay(union(directories, ANYWHERE));
  }
  return flow;
}

function unwrap(program: string, words: readonly ShellWord[]): Unwrapped | undefined {
  switch (program) {
    case "env":
      return unwrapEnv(words);
    case "xargs":
      return unwrapXargs(words);
    case "find":
      return unwrapFind(words);
    case "parallel":
      return unwrapParallel(words);
    case "git":
      return unwrapGit(words);
    default:
      return both(
        unwrapShell(program, words) ?? unwrapPrefix(program, words) ?? unwrapBuiltin(program, words),
        unwrapProgram(program, words),
      );
  }
}

function both(a: Unwrapped | undefined, b: Unwrapped | undefined): Unwrapped | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return {
    transparent: a.transparent && b.transparent,
    inner: [...a.inner, ...b.inner],
    files: [...(a.files ?? []), ...(b.files ?? [])],
  };
}

function visitInner(inner: Inner, walk: Walk, outer: Context, directories: Directories): Flow {
  if (inner.kind === "unseen") {
    addUnseen(walk.findings, inner.text, inside(outer, inner.via), directories);
    return stay(directories);
  }
  const context = { ...inside(outer, inner.via), foreign: outer.foreign || inner.foreign === true };
  if (inner.kind === "text") return walk.text(inner, context, context.foreign ? ANYWHERE : directories);
  const changed = inner.assignments ?? [];
  const running = changed.length === 0 ? context : { ...context, assignments: [...context.assignments, ...changed] };
  return visitWords(inner.words, walk, running, inner.elsewhere === true ? ANYWHERE : directories);
}

/** A glob shows which files there are. */
export function addGlob(word: ShellWord, walk: Walk, directories: Directories): void {
  if (word.lists === true) addPath(walk.findings, { word, access: "read", from: "operand", directories });
}

/** The same place, one level further in. */
export function inside(context: Context, via: string): Context {
  return { ...context, via: [...context.via, via], depth: context.depth + 1 };
}

/** A command in place of what nobody can know: it is never read-only and its word equals no word of a rule. */
export function addUnseen(findings: Findings, text: string, context: Context, directories: Directories): void {
  addCommand(findings, { words: [unknownWord(text)], context, directories, transparent: false, unseen: true });
}

function visitCd(words: readonly ShellWord[], walk: Walk, directories: Directories): Flow {
  const { findings } = walk;
  findings.moved = true;
  const target = cdTarget(words, findings.root);
  if (target === undefined) {
    const operand = words[1] ?? unknownWord("~");
    addPath(findings, { word: unknownWord(operand.text), access: "read", from: "cd", directories });
    return { ok: ANYWHERE, fail: directories };
  }
  if (target !== "") addPath(findings, { word: literalWord(target), access: "read", from: "cd", directories });
  return { ok: enter(directories, target), fail: directories };
}

export function visitRedirection(item: Redirection, walk: Walk, context: Context, directories: Directories): void {
  const visitor = walk.visitor(context, directories);
  if (item.descriptor?.type === "FileDescriptorVariable") visitor.assigned(item.descriptor.name);
  if (item.type === "HereDoc") {
    if (item.closing === undefined || item.delimiter === undefined)
      throw unsupported("a here-document without its end");
    visitHereDoc(item.body, item.delimiter.quoted, visitor);
    return;
  }
  if (item.target === undefined) throw unsupported(`the redirection ${item.operator}`);
  visitWord(item.target, visitor);
  if (item.type === "HereString") return;
  const word = readWord(item.target);
  // `2>&1` and `>&-` copy and close descriptors; any other word after `>&` is a file.
  const copies = /^[<>]&$/.test(item.operator) && /^(?:[0-9]+-?|-)$/.test(item.target.text);
  if (copies) return;
  // Bash takes `>&-` for an operator of its own, and removes quotes twice from a file name here.
  if (item.operator === ">&" || item.operator === "<&") {
    if (!/^(?:[\w./][\w./-]*|\$\w+)$/.test(item.target.text)) throw unsupported(`the redirection ${item.operator}`);
  }
  addPath(walk.findings, { word, access: item.operator === "<" ? "read" : "write", from: "redirect", directories });
}
