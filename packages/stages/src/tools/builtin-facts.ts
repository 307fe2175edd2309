import { shape, type ToolFacts } from "@sluice/core/runtime";
import { LINE_CHARACTERS, SEARCH_TIMEOUT_MS } from "./search/grep-search.ts";
import { SKILL_FILE, SKILL_NAME } from "./skills/skill-names.ts";

// What models see of the built-in tools. Every session has it; the code of a tool is loaded with its first call.

const filePath = shape.text({ min: 1, description: "The file, absolute or relative to the workspace." });

/** The lines that Read shows by default, and at most. */
export const READ_LINES = 2_000;
export const READ_LINE_CHARACTERS = 2_000;
/** About 22,000 tokens; a longer output would lose its middle. */
export const READ_CHARACTERS = 90_000;

const readInput = shape.object({
  file_path: filePath,
  offset: shape.optional(shape.integer({ min: 1, description: "First line to show, from 1. Default: 1." })),
  limit: shape.optional(
    shape.integer({
      min: 1,
      max: READ_LINES,
      description: `Lines to show. Default and maximum: ${READ_LINES}.`,
    }),
  ),
});
export type ReadInput = shape.ShapeOf<typeof readInput>;

export const READ_FACTS: ToolFacts<ReadInput> = {
  name: "Read",
  description: `Shows a text file with line numbers, each followed by a tab.
- Shows at most ${READ_LINES} lines, ${READ_LINE_CHARACTERS} characters per line and ${READ_CHARACTERS} characters in total. If lines are omitted, the result gives the offset to continue from.
- Of a file over 10 MB only the first 10 MB can be shown, and it cannot be edited.
- Attaches an image or a PDF of up to 5 MB if the model can read it. Other binary files fail with binary_file.
- Edit and Write require that you Read an existing file first.`,
  input: readInput,
  effect: "read",
};

const editInput = shape.object({
  file_path: filePath,
  old_string: shape.text({
    min: 1,
    description: "The exact text to replace, with its indentation and without line numbers.",
  }),
  new_string: shape.text({ description: "The text to replace it with. May be empty." }),
  replace_all: shape.optional(shape.flag({ description: "Replace every occurrence. Default: false." })),
});
export type EditInput = shape.ShapeOf<typeof editInput>;

export const EDIT_FACTS: ToolFacts<EditInput> = {
  name: "Edit",
  description: `Replaces exact text in an existing text file (UTF-8, at most 10 MB).
- Read the file first in this stage. If you have not, or if it has changed since, the call fails with stale_file: Read it again.
- old_string must match exactly (old_string_not_found) and occur once, unless replace_all is true (old_string_not_unique lists the lines: add surrounding text).
- Line endings, byte order mark and file mode are preserved. The change is atomic.
- new_string must not contain a "[redacted:" marker (redacted_content), which replaces a secret in the file.`,
  input: editInput,
  effect: "write",
};

const writeInput = shape.object({
  file_path: filePath,
  content: shape.text({ description: "The complete new content." }),
});
export type WriteInput = shape.ShapeOf<typeof writeInput>;

export const WRITE_FACTS: ToolFacts<WriteInput> = {
  name: "Write",
  description: `Writes a complete text file (UTF-8, at most 10 MB): creates it, with missing parent folders, or replaces it. To change a part, use Edit.
- To replace an existing file, Read it first in this stage. If you have not, or if it has changed since, the call fails with stale_file.
- An existing file keeps its mode, byte order mark and CR LF line endings. The write is atomic.
- content must not contain a "[redacted:" marker (redacted_content), which replaces a secret in the file.`,
  input: writeInput,
  effect: "write",
};

/** The result lines that Grep shows by default. */
export const GREP_LINES = 250;
/** About 12,000 tokens. */
export const GREP_CHARACTERS = 50_000;

const CONTEXT_LINES = { min: 0, max: 50 };
const grepInput = shape.object({
  pattern: shape.text({
    min: 1,
    max: 4_000,
    description: "Regular expression in ripgrep's syntax: escape literal braces as \\{.",
  }),
  path: shape.optional(
    shape.text({
      min: 1,
      description: "The file or folder to search, absolute or relative to the workspace. Default: the workspace.",
    }),
  ),
  glob: shape.optional(
    shape.text({
      min: 1,
      max: 1_000,
      description: "Search only matching files, for example *.ts or src/**/*.{js,ts}. Relative to path.",
    }),
  ),
  output_mode: shape.optional(
    shape.oneOf(["content", "files_with_matches", "count"], { description: "Default: files_with_matches." }),
  ),
  "-i": shape.optional(shape.flag({ description: "Ignore case." })),
  "-n": shape.optional(shape.flag({ description: "Show line numbers in content mode. Default: true." })),
  "-A": shape.optional(
    shape.integer({ ...CONTEXT_LINES, description: "Lines to show after each match in content mode." }),
  ),
  "-B": shape.optional(
    shape.integer({ ...CONTEXT_LINES, description: "Lines to show before each match in content mode." }),
  ),
  "-C": shape.optional(
    shape.integer({ ...CONTEXT_LINES, description: "Lines to show before and after each match in content mode." }),
  ),
  head_limit: shape.optional(
    shape.integer({ min: 1, max: 2_000, description: `Result lines to show. Default: ${GREP_LINES}.` }),
  ),
  multiline: shape.optional(shape.flag({ description: "Let the pattern span lines, and . match line breaks." })),
});
export type GrepInput = shape.ShapeOf<typeof grepInput>;

export const GREP_FACTS: ToolFacts<GrepInput> = {
  name: "Grep",
  description: `Searches the content of text files with a regular expression. Results are relative to the workspace and sorted by path.
- Hidden files are included. Paths ignored by .gitignore, .git, binary files and files over 100 MB are excluded. Links are not followed.
- output_mode: files_with_matches lists paths, content shows matching lines, count shows the number of matches per file.
- Shows at most head_limit result lines, ${LINE_CHARACTERS} characters per line and ${GREP_CHARACTERS} in total, and says if results were cut. A search ends after ${SEARCH_TIMEOUT_MS / 1000} s.
- No match is not an error. An invalid pattern or glob fails with invalid_pattern.`,
  input: grepInput,
  effect: "read",
};

/** The files that Glob lists at most. */
export const GLOB_FILES = 1_000;

const globInput = shape.object({
  pattern: shape.text({
    min: 1,
    description: "For example **/*.ts, src/**/*.{ts,tsx} or docs/[a-m]*.md. Relative to path.",
  }),
  path: shape.optional(
    shape.text({
      min: 1,
      description: "The folder to search, absolute or relative to the workspace. Default: the workspace.",
    }),
  ),
});
export type GlobInput = shape.ShapeOf<typeof globInput>;

export const GLOB_FACTS: ToolFacts<GlobInput> = {
  name: "Glob",
  description: `Lists files whose path matches a glob pattern, relative to the workspace and sorted by path.
- * and ? match within one name, ** any number of folders, {a,b} alternatives, [a-z] one character. Hidden files are included. Case matters.
- Excluded: paths ignored by .gitignore, .git, and node_modules unless pattern or path names it. Links are listed, not followed.
- Lists at most ${GLOB_FILES} files and says if there are more. Absolute patterns, .. and negation fail with invalid_pattern: use path instead.`,
  input: globInput,
  effect: "read",
};

export const BASH_TIMEOUT_MS = 120_000;
const BASH_MOST_MS = 600_000;
/** Characters shown to the model from each end of an output. */
export const SHOWN_HALF = 15_000;

const bashInput = shape.object({
  command: shape.text({ min: 1, description: "The command line, run by bash in the workspace's root." }),
  timeout: shape.optional(
    shape.integer({
      min: 1,
      max: BASH_MOST_MS,
      description: `Milliseconds. Default: ${BASH_TIMEOUT_MS}, maximum: ${BASH_MOST_MS}.`,
    }),
  ),
  description: shape.optional(
    shape.text({ max: 500, description: "A few words for the user about the purpose of the command." }),
  ),
});
export type BashInput = shape.ShapeOf<typeof bashInput>;

export const BASH_FACTS: ToolFacts<BashInput> = {
  name: "Bash",
  description: `Runs a command line with bash. Every call starts a fresh shell in the workspace's root, with empty standard input.
- Output and errors are combined in the order written; the first and last ${SHOWN_HALF} characters are shown. A failing command reports its exit code.
- After timeout milliseconds the command and everything it started are stopped (timeout). Background processes are stopped with the command.
- If the stage allows only some commands, use plain lines: commands, pipes, && and ||, globs, "cd DIR &&", 2>&1. Substitutions, loops and here-documents need a grant there.
- To read, search and edit files, use Read, Grep, Glob, Edit and Write.`,
  input: bashInput,
  effect: "write",
};

/** At least one character that a person sees. */
const ANY_WORD = { regex: /\S/, message: "Too small: expected string to have >=1 characters" };
const options = shape.list(shape.text({ min: 1, max: 200 }), {
  min: 2,
  max: 12,
  description: "If given, the answer is exactly one of these.",
});
const askUserInput = shape.object({
  question: shape.holding(
    shape.text({
      min: 1,
      max: 4_000,
      description: "One self-contained question: the person sees nothing else of this conversation.",
    }),
    (question) => ANY_WORD.regex.test(question),
    ANY_WORD.message,
  ),
  options: shape.optional(
    shape.holding(
      options,
      (given) => new Set(given.map((one) => one.trim())).size === given.length,
      "options must be distinct",
    ),
  ),
});
export type AskUserInput = shape.ShapeOf<typeof askUserInput>;

export const ASK_USER_FACTS: ToolFacts<AskUserInput> = {
  name: "AskUser",
  description: `Asks the user a question and waits for the answer.
- Ask only what you can neither find out with your tools nor decide yourself.
- With options the answer is one of them, otherwise free text.
- If no one can answer, the call fails with no_interactor: continue with what you know.`,
  input: askUserInput,
  effect: "ask",
};

/** The characters of a skill's file that ReadSkill shows; about 15,000 tokens. */
export const SKILL_CHARACTERS = 60_000;

const skillInput = shape.object({
  name: shape.text({
    pattern: { regex: SKILL_NAME, message: "is not the name of a skill" },
    description: "The name of a listed skill.",
  }),
  file: shape.optional(
    shape.holding(
      shape.text({
        min: 1,
        max: 512,
        description: `A file of the skill, relative to its folder. Default: ${SKILL_FILE}.`,
      }),
      (path) => !path.startsWith("/") && !/[\0\\]/.test(path) && !path.split("/").includes(".."),
      "must be a path inside the skill's folder, such as references/forms.md",
    ),
  ),
});
export type SkillInput = shape.ShapeOf<typeof skillInput>;

export const READ_SKILL_FACTS: ToolFacts<SkillInput> = {
  name: "ReadSkill",
  description: `Reads a skill of this project: instructions for one kind of task, in ${SKILL_FILE}, and the files beside them.
- Read a skill when its description fits your task, before you start on it.
- Skills are files of the project. They do not change your tools, your limits or how this stage ends.
- Shows at most ${SKILL_CHARACTERS} characters of a text file.`,
  input: skillInput,
  effect: "read",
};
