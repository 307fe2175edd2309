// biome-ignore-all lint/suspicious/noTemplateCurlyInString: texts of the sources
import type { WallBug } from "./wall-bugs.ts";

/** A bug put on purpose into the gate, the tool calls of a run, or what reads, judges and writes command lines; some test has to fail then. */
export interface LineBug extends Omit<WallBug, "file"> {
  /** Below packages. */
  readonly file: string;
  /** The tests that are to find it. */
  readonly tests: readonly string[];
}

const BASH = "stages/src/tools/bash";
const READER = `${BASH}/language/read-line.ts`;
const EXPANDER = `${BASH}/language/expand.ts`;
const WORDS = ["test/property/plain-words.test.ts"];
const LINES = ["test/property/line-judging.test.ts", "test/unit/plain-lines.test.ts"];
const SPECS = ["test/unit/argument-specs.test.ts"];
const GATE = ["test/unit/gate-commands.test.ts"];
const OPTIONS = ["test/unit/gate-options.test.ts"];
const AUTHORIZE = "core/src/gate/authorize-call.ts";
const AUTHORIZED = ["test/unit/authorize-call.test.ts"];
const USAGE = "core/src/gate/usage.ts";
const LIMITS = ["test/attack/call-limits.test.ts"];
const RUN_CALLS = "core/src/run/tool-calls/run-tool-calls.ts";
const APPROVED_BEFORE = ["test/attack/approved-before.test.ts"];
const RANDOM_CALLS = ["test/property/tool-calls.test.ts"];

export const LINE_BUGS: readonly LineBug[] = [
  {
    name: "escapes-in-double-quotes-stay",
    file: READER,
    find: '.replace(/\\\\(?:([$`"\\\\])|\\n)/g, "$1");',
    replace: ";",
    tests: WORDS,
  },
  {
    name: "single-quotes-are-expanded",
    file: READER,
    find: "text(this.#match(SINGLE_QUOTED)?.[1], true,",
    replace: "text(this.#match(SINGLE_QUOTED)?.[1], false,",
    tests: WORDS,
  },
  {
    name: "background-is-a-list",
    file: READER,
    find: 'if (this.#peek() === "&") throw outside("a background process");',
    replace: 'if (this.#peek() === "&") this.#at += 1;',
    tests: LINES,
  },
  {
    name: "here-documents-are-files",
    file: READER,
    find: 'if (this.#peek() === "<") throw outside("a here-document or here-string");',
    replace: 'while (this.#peek() === "<") this.#at += 1;',
    tests: LINES,
  },
  {
    name: "keywords-are-commands",
    file: READER,
    find: 'else if (first && RESERVED.has(plainText(word) ?? ""))',
    replace: 'else if (first && plainText(word) === "if")',
    tests: LINES,
  },
  {
    name: "backquotes-are-letters",
    file: READER,
    find: 'else if (next === "`") throw outside("a command substitution");',
    replace: 'else if (next === "`") parts.push(text(this.#match(/`/y)?.[0], false, next));',
    tests: LINES,
  },
  {
    name: "a-name-goes-on-in-the-next-line",
    file: READER,
    find: "const ESCAPED = /\\\\([^\\n])/y;",
    replace: "const ESCAPED = /\\\\([^])/y;",
    tests: WORDS,
  },
  {
    name: "variables-are-split-by-nobody",
    file: EXPANDER,
    find: "if (!part.quoted && !/^[^\\s*?[\\]\\\\{}~]+$/.test(value))",
    replace: 'if (!part.quoted && value === "")',
    tests: WORDS,
  },
  {
    name: "unset-variables-are-empty",
    file: EXPANDER,
    find: "if (value === undefined || changed.has(name) || SET_BY_BASH.test(name))",
    replace: 'if (value === undefined) return "";\n  if (changed.has(name))',
    tests: [...WORDS, ...LINES],
  },
  {
    name: "hidden-files-match",
    file: EXPANDER,
    find: 'if (name.startsWith(".") && !showsHidden) continue;',
    replace: "",
    tests: WORDS,
  },
  {
    name: "globs-may-make-options",
    file: EXPANDER,
    find: 'if (found.some((path) => path.startsWith("-")))',
    replace: "if (found.length > 1e9)",
    tests: LINES,
  },
  {
    name: "braces-with-names",
    file: EXPANDER,
    find: "if (alternatives.length > 1 && word.some",
    replace: "if (alternatives.length > 1e9 && word.some",
    tests: WORDS,
  },
  {
    name: "tildes-are-letters",
    file: EXPANDER,
    find: 'throw outside("a tilde; write the whole path");',
    replace: "return;",
    tests: WORDS,
  },
  {
    name: "quotes-are-not-quoted",
    file: `${BASH}/language/judge-line.ts`,
    find: "word.replaceAll(\"'\", `'\\\\''`)",
    replace: "word",
    tests: LINES,
  },
  {
    name: "a-failing-cd-goes-on",
    file: `${BASH}/language/judge-line.ts`,
    find: "|| exit 1; }`;",
    replace: "; }`;",
    tests: LINES,
  },
  {
    name: "any-setting-is-harmless",
    file: `${BASH}/language/environment.ts`,
    find: "return variables.includes(name) &&",
    replace: "return",
    tests: LINES,
  },
  {
    name: "a-cd-goes-unnoticed",
    file: `${BASH}/language/judge-line.ts`,
    find: "shell.cwd = folder;",
    replace: "",
    tests: LINES,
  },
  {
    name: "xargs-trusts-what-it-is-fed",
    file: `${BASH}/language/external.ts`,
    find: "one.readOnly && (found !== undefined || ",
    replace: "one.readOnly && (true || ",
    tests: LINES,
  },
  {
    name: "printf-counts",
    file: `${BASH}/language/builtins.ts`,
    find: "[sdiuoxXfeEgGcbq]))*",
    replace: "[sdiuoxXfeEgGcbqn]))*",
    tests: LINES,
  },
  {
    name: "options-are-abbreviated",
    file: `${BASH}/readers/options.ts`,
    find: "const kind = kinds.get(name);",
    replace: "const kind = kinds.get([...kinds.keys()].find((one) => one.startsWith(name)) ?? name);",
    tests: SPECS,
  },
  {
    name: "git-shows-the-repository-around",
    file: `${BASH}/readers/git.ts`,
    find: "return isOuter ? [",
    replace: 'return isOuter && cwd === "" ? [',
    tests: SPECS,
  },
  {
    name: "links-are-found",
    file: `${BASH}/readers/find.ts`,
    find: 'const safe = ["!", "-type", "l"',
    replace: 'const safe = ["!", "-type", "s"',
    tests: SPECS,
  },
  {
    name: "a-star-covers-writing",
    file: "core/src/gate/envelope.ts",
    find: "overstepOf(command, rule, scene) ?? optionFault(command, rule, scene)",
    replace: "optionFault(command, rule, scene)",
    tests: GATE,
  },
  {
    name: "a-star-covers-any-option",
    file: "core/src/gate/known-options.ts",
    find: "if (option === undefined && isFree) return word;",
    replace: "",
    tests: OPTIONS,
  },
  {
    name: "a-star-covers-files-of-options",
    file: "core/src/gate/known-options.ts",
    find: 'text.startsWith("@") && command.plainAt !== true',
    replace: "false",
    tests: OPTIONS,
  },
  {
    name: "a-listed-command-runs-in-any-folder",
    file: "core/src/gate/envelope.ts",
    find: " ?? folderFault(command, rule, scene)",
    replace: "",
    tests: GATE,
  },
  {
    name: "unread-lines-run-where-files-may-be-written",
    file: "core/src/gate/envelope.ts",
    find: 'return envelope.mayWrite && readable?.includes("") === true;',
    replace: "return envelope.mayWrite;",
    tests: GATE,
  },
  {
    name: "walls-hold-scoped-rules",
    file: "core/src/gate/envelope.ts",
    find: "if (!envelope.rulesFor(tool).some(isPlain)) return false;",
    replace: "if (envelope.rulesFor(tool).length === 0) return false;",
    tests: GATE,
  },
  {
    name: "allowed-calls-run-again",
    file: AUTHORIZE,
    find: "if (ran || !scope.isOpen()) throw",
    replace: "if (!scope.isOpen()) throw",
    tests: AUTHORIZED,
  },
  {
    name: "allowed-calls-run-after-their-attempt",
    file: AUTHORIZE,
    find: "if (ran || !scope.isOpen()) throw",
    replace: "if (ran) throw",
    tests: AUTHORIZED,
  },
  {
    name: "requests-are-granted-twice",
    file: AUTHORIZE,
    find: "if (used || !scope.isOpen()) throw",
    replace: "if (!scope.isOpen()) throw",
    tests: AUTHORIZED,
  },
  {
    name: "approvals-name-any-digest",
    file: AUTHORIZE,
    find: 'if (digest !== argsDigest) return denied(call, policy, "denied", OTHER_ARGUMENTS);',
    replace: "",
    tests: AUTHORIZED,
  },
  {
    name: "approvals-cover-what-was-not-shown",
    file: AUTHORIZE,
    find: "return sameJson(bound.input, body.input) ?",
    replace: "return body.input !== undefined ?",
    tests: AUTHORIZED,
  },
  {
    name: "hooks-are-not-asked-about-grants",
    file: AUTHORIZE,
    find: "if (policy.hooks !== undefined) {",
    replace: 'if (policy.hooks !== undefined && by !== "grant") {',
    tests: AUTHORIZED,
  },
  {
    name: "wider-envelopes-allow-what-was-asked-about",
    file: AUTHORIZE,
    find: 'return prompted(known, "");',
    replace: 'return await allowed(known, "envelope");',
    tests: AUTHORIZED,
  },
  {
    name: "recorded-subjects-are-forgotten",
    file: AUTHORIZE,
    find: "subjects: [...(before ?? NOTHING), ...subjects] }",
    replace: "subjects }",
    tests: AUTHORIZED,
  },
  {
    name: "one-file-more-than-the-limit",
    file: USAGE,
    find: "files.length + more > maxFiles",
    replace: "files.length > maxFiles",
    tests: LIMITS,
  },
  {
    name: "only-added-lines-count",
    file: USAGE,
    find: "sum + Math.max(removed, added)",
    replace: "sum + added",
    tests: LIMITS,
  },
  {
    name: "commands-write-where-edits-are-limited",
    file: "core/src/run/tool-calls/execute-tool-call.ts",
    find: "...(limitsEdits(state.limits) ? { writes: [] } : {}),",
    replace: "",
    tests: LIMITS,
  },
  {
    name: "a-resumed-run-counts-from-zero",
    file: "core/src/run/tool-calls/record-verdicts.ts",
    find: "const facts = { id, tool, ...about, subjects, ...(edits === undefined ? {} : { edits }) };",
    replace: "const facts = { id, tool, ...about, subjects };",
    tests: LIMITS,
  },
  {
    name: "values-of-a-stage-are-expanded",
    file: EXPANDER,
    find: "if (unrecorded.includes(name))",
    replace: "if (name === '')",
    tests: ["test/attack/variables.test.ts"],
  },
  {
    name: "anything-is-a-sealed-call",
    file: AUTHORIZE,
    find: "if (!SealedCall.isSealed(call))",
    replace: "if (call === undefined)",
    tests: AUTHORIZED,
  },
  {
    name: "writing-calls-have-no-open-record",
    file: RUN_CALLS,
    find: 'effect === "write" ? { open: { events: startEvents, intent }, graceMs: WRITE_GRACE_MS } : {},',
    replace: "{},",
    tests: RANDOM_CALLS,
  },
  {
    name: "consumed-grants-expire-too",
    file: RUN_CALLS,
    find: "    of.openRequests.delete(requestId);\n",
    replace: "",
    tests: RANDOM_CALLS,
  },
  {
    name: "writes-run-beside-others",
    file: RUN_CALLS,
    find: 'executable.length > 1 && tool?.effect !== "read"',
    replace: "executable.length > 1 && of.policy.tools.size === 0",
    tests: APPROVED_BEFORE,
  },
  {
    name: "calls-of-a-recorded-group-are-lost",
    file: RUN_CALLS,
    find: "waiting = waiting.slice(decided.length);",
    replace: "waiting = waiting.slice(nextGroup(of, waiting).length);",
    tests: APPROVED_BEFORE,
  },
  {
    name: "begun-calls-are-not-recovered",
    file: "core/src/run/tool-calls/execute-tool-call.ts",
    find: "if (step.opened !== undefined && step.opened.incarnation !== step.incarnation) {",
    replace: 'if (step.opened?.incarnation === "never") {',
    tests: APPROVED_BEFORE,
  },
];
