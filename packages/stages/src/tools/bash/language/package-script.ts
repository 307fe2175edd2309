import { dirname, join } from "node:path";
import { field, parseJson, type Workspace } from "@sluice/core";
import { contains, exists } from "../../files/paths.ts";
import { readSmallFile } from "../../search/gitignore.ts";

/** What the shell of a script acts on: a value that is known only when it runs, a comment, a pipe. */
const SHELL_SIGNS = /[&|<>`$()#\\\r\n]/;
/** Variables in front of a command, also behind the programs that set them. */
const SETTINGS = /^(?:(?:cross-env|env)\s+)?(?:\w+=[^\s'"]*\s+)*/;

/**
 * The words of the script that a package manager runs for a command such as `npm test -- -t name`, by the nearest package.json of the
 * workspace: of several commands those of the last one, which gets the words that are added. Undefined for other commands, and for a
 * script that is not of plain commands.
 */
export function packageScript(
  argv: readonly string[],
  cwd: string,
  { root }: Workspace,
): readonly string[] | undefined {
  const [manager = "", verb = "", name = ""] = argv;
  if (!/^(?:npm|pnpm|yarn|bun)$/.test(manager)) return undefined;
  if (verb === "run") return scriptIn(manifestAbove(cwd, root), name);
  // `bun test` is a test runner of its own.
  const isTest = (verb === "test" && manager !== "bun") || (verb === "t" && manager === "npm");
  return isTest ? scriptIn(manifestAbove(cwd, root), "test") : undefined;
}

function scriptIn(text: string | undefined, name: string): readonly string[] | undefined {
  const manifest = text === undefined ? undefined : parseJson(text);
  const script = manifest?.ok === true ? field(field(manifest.value, "scripts"), name) : undefined;
  if (typeof script !== "string") return undefined;
  const commands = script.split(/&&|;/);
  // Between quotes, a sign separates nothing.
  if (commands.length > 1 && /["']/.test(script)) return undefined;
  if (commands.some((command) => SHELL_SIGNS.test(command))) return undefined;
  const words = (commands.at(-1) ?? "").trim().replace(SETTINGS, "");
  return words === "" ? undefined : words.split(/\s+/);
}

/** The text of the package.json in a folder or the nearest one above it. */
function manifestAbove(cwd: string, root: string): string | undefined {
  for (let folder = cwd; contains(root, folder); folder = dirname(folder)) {
    const file = join(folder, "package.json");
    if (exists(file)) return readSmallFile(file);
  }
  return undefined;
}
