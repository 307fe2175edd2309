import { dirname, join } from "node:path";
import { field, parseJson, type Workspace } from "@sluice/core";
import { SYSTEM_FOLDER } from "@sluice/core/runtime";
import { contains, exists } from "../../files/paths.ts";
import { readSmallFile } from "../../search/gitignore.ts";

/** What the shell of a script acts on: a value that is known only when it runs, a comment, a pipe. */
const SHELL_SIGNS = /[&|<>`$()#\\\r\n]/;
/** Variables in front of a command, also behind the programs that set them. */
const SETTINGS = /^(?:(?:cross-env|env)\s+)?(?:\w+=[^\s'"]*\s+)*/;

/** Words, also in quotes. */
const WORDS = /(?:'[^']*'|"[^"]*"|\S)+/g;
const QUOTED = /'([^']*)'|"([^"]*)"/g;

/** What stands between the words of a script and those of another one that it calls. */
const CALLS = "\n";
const MOST_CALLS = 5;

/**
 * The words of the script that a package manager runs for a command such as `npm test -- -t name`, by the nearest package.json of the
 * workspace: of several commands those of the last one, which gets the words that are added. If that calls another script, its words
 * follow behind a line end. Empty for a script without a last command; undefined for other commands, and for a script that is not of
 * plain commands.
 */
export function packageScript(
  argv: readonly string[],
  cwd: string,
  { root }: Workspace,
): readonly string[] | undefined {
  if (nameOf(argv) === undefined) return undefined;
  const manifest = manifestAbove(cwd, root);
  const script = scriptIn(manifest, nameOf(argv));
  if (script === undefined) return undefined;
  const words = [...script.words];
  // A command in front, such as `cd`, may lead to another package.json.
  for (let called = script, calls = 0; called.isAlone && calls < MOST_CALLS; calls += 1) {
    const next = scriptIn(manifest, nameOf(called.words));
    if (next === undefined) break;
    words.push(CALLS, ...next.words);
    called = next;
  }
  return words;
}

/** The name of the script that a command of a package manager runs. */
function nameOf(argv: readonly string[]): string | undefined {
  // These options say nothing about the script.
  const [program = "", verb = "", name = ""] = argv.filter((word) => !/^(?:-s|--silent|--if-present)$/.test(word));
  const manager = program.replace(SYSTEM_FOLDER, "");
  if (!/^(?:npm|pnpm|yarn|bun)$/.test(manager)) return undefined;
  if (verb === "run") return name;
  // `bun test` is a test runner of its own.
  if (verb === "test") return manager === "bun" ? undefined : verb;
  if (manager === "npm") return verb === "t" ? "test" : undefined;
  // The others run a script by its name alone, if they have no command of that name.
  return OWN_COMMANDS.has(verb) ? undefined : verb;
}

/** The commands of pnpm, Yarn and Bun. */
const OWN_COMMANDS: ReadonlySet<string> = new Set(
  (
    "a add approve-builds audit autoclean bin build c cache cat-file cat-index ci completion config constraints create dedupe deploy " +
    "dlx doctor env exec explain fetch find-hash generate-lock-entry get getcompletion global help i ignored-builds import info init " +
    "install install-completion install-test it la licenses link list ll ln login logout ls node npm outdated owner pack patch " +
    "patch-commit patch-remove plugin plugins pm policies prune publish rb rebuild remove repl rm root search self-update server set " +
    "setup stage store tag team un uninstall unlink unplug up update upgrade upgrade-interactive version versions view whoami why " +
    "workspace workspaces x"
  ).split(" "),
);

interface PackageScript {
  /** Of its last command. */
  readonly words: readonly string[];
  /** Whether it has no other command. */
  readonly isAlone: boolean;
}

function scriptIn(text: string | undefined, name: string | undefined): PackageScript | undefined {
  const manifest = text === undefined || name === undefined ? undefined : parseJson(text);
  const script = manifest?.ok === true ? field(field(manifest.value, "scripts"), name ?? "") : undefined;
  if (typeof script !== "string") return undefined;
  const commands = script.split(/&&|;/);
  // Between quotes, a sign separates nothing.
  if (commands.length > 1 && /["']/.test(script)) return undefined;
  if (commands.some((command) => SHELL_SIGNS.test(command))) return undefined;
  const words = (commands.at(-1) ?? "").trim().replace(SETTINGS, "").match(WORDS) ?? [];
  const read = words.map((word) => word.replaceAll(QUOTED, "$1$2"));
  // A quote within others, or one that is not closed.
  if (read.some((word) => /["']/.test(word))) return undefined;
  return { words: read, isAlone: commands.length === 1 };
}

/** The text of the package.json in a folder or the nearest one above it. */
function manifestAbove(cwd: string, root: string): string | undefined {
  for (let folder = cwd; contains(root, folder); folder = dirname(folder)) {
    const file = join(folder, "package.json");
    if (exists(file)) return readSmallFile(file);
  }
  return undefined;
}
