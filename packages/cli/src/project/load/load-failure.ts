// Why a file of a user's code cannot be loaded: the file, the line and what to do, from what Node throws.
import { existsSync, readdirSync } from "node:fs";
import { dirname, extname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { field, isSluiceError, type SluiceError, type SourcePlace } from "@sluice/core";
import {
  didYouMean,
  jsonFaultPosition,
  jsonFaultText,
  messageOf,
  positionAt,
  sourcePlaceOf,
} from "@sluice/core/runtime";
import { definitionFieldPlace } from "./field-place.ts";
import { isFile, textOf } from "./file-text.ts";

export interface LoadFault {
  /** What is wrong and how to fix it. */
  readonly message: string;
  /** With an absolute path. */
  readonly at?: SourcePlace;
}

/** What a reader needs beyond the thrown message. */
interface Explained {
  /** In place of the thrown message. */
  readonly why?: string;
  readonly fix?: string;
  readonly at?: SourcePlace | undefined;
}

interface Thrown {
  readonly message: string;
  readonly code: string;
  /** The file that was to be loaded. */
  readonly entry: string;
  readonly at: SourcePlace | undefined;
}

/** Explains what the import of a file threw. */
export function explainLoad(thrown: unknown, entry: string): LoadFault {
  if (!(thrown instanceof Error)) return { message: `it throws ${thrownText(thrown)}, which is not an Error` };
  const at = sourcePlaceOf(thrown);
  if (isSluiceError(thrown)) {
    const place = fieldPlace(thrown, at) ?? at;
    return { message: thrown.message, ...(place === undefined ? {} : { at: place }) };
  }
  const code = "code" in thrown && typeof thrown.code === "string" ? thrown.code : "";
  const facts: Thrown = { message: messageWithCause(thrown), code, entry, at };
  const found = EXPLANATIONS.map((explain) => explain(facts)).find((one) => one !== undefined) ?? {};
  const why = (found.why ?? facts.message).trim().replace(/\.$/u, "");
  const place = found.at ?? at;
  return {
    message: found.fix === undefined ? why : `${why}; ${found.fix}`,
    ...(place === undefined ? {} : { at: place }),
  };
}

/** Where the file that defines a pipeline sets the option of its first problem. */
function fieldPlace({ detail }: SluiceError, at: SourcePlace | undefined): SourcePlace | undefined {
  const problems = field(detail, "problems");
  const path = Array.isArray(problems) ? field(problems[0], "path") : undefined;
  return at === undefined || typeof path !== "string" ? undefined : definitionFieldPlace(at.file, path);
}

/** The message, and that of the cause if it says more. */
function messageWithCause(thrown: Error): string {
  const message = messageOf(thrown);
  const cause = thrown.cause instanceof Error ? messageOf(thrown.cause) : "";
  return cause === "" || message.includes(cause) ? message : `${message}: ${cause}`;
}

function thrownText(thrown: unknown): string {
  if (thrown === undefined || thrown === null) return `${thrown}`;
  return typeof thrown === "string" ? JSON.stringify(thrown) : `a value (${messageOf(thrown)})`;
}

type Explain = (thrown: Thrown) => Explained | undefined;

/** Node's way to name what TypeScript has beyond types, and what to write instead. */
const INSTEAD: readonly (readonly [found: RegExp, instead: string])[] = [
  [/enum/, "write an object instead: const Name = { A: 'a' } as const"],
  [/namespace|module/, "use a module of its own instead of a namespace"],
  [/parameter propert/, "declare the field, and assign it in the constructor"],
  [/import (?:=|equals)|export assignment/, "write import … from instead"],
];

const EXPLANATIONS: readonly Explain[] = [
  function unstrippable({ code, message }) {
    if (code !== "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") return undefined;
    const instead = INSTEAD.find(([found]) => found.test(message))?.[1] ?? "write it without";
    return { why: `${message}: Node removes types and compiles nothing`, fix: instead };
  },
  function badSyntax({ code, message }) {
    return code === "ERR_INVALID_TYPESCRIPT_SYNTAX" ? { why: `it is not valid TypeScript: ${message}` } : undefined;
  },
  function missingExport({ message, at }) {
    const { from, name } =
      /^The requested module '(?<from>[^']+)' does not provide an export named '(?<name>[^']+)'/.exec(message)
        ?.groups ?? {};
    if (from === undefined || name === undefined) return undefined;
    return { why: `${from} has no export ${name}`, fix: exportFix(from, name, at) };
  },
  function commonJsName({ message }) {
    const { name, from } =
      /^Named export '(?<name>[^']+)' not found. The requested module '(?<from>[^']+)' is a CommonJS module/.exec(
        message,
      )?.groups ?? {};
    if (from === undefined || name === undefined) return undefined;
    return { why: `${from} is CommonJS and has no export ${name}`, fix: commonJsFix(from, name) };
  },
  function missingModule({ code, message, entry }) {
    if (code !== "ERR_MODULE_NOT_FOUND") return undefined;
    const { kind, target, importer } =
      /^Cannot find (?<kind>package|module) '(?<target>[^']+)' imported from (?<importer>[^\n]+)/s.exec(message)
        ?.groups ?? {};
    if (target === undefined || importer === undefined) return undefined;
    const from = importer.startsWith("file:") ? fileURLToPath(importer) : importer;
    return kind === "package" ? missingPackage(target, from, entry) : missingFile(target, from);
  },
  function unexported({ code, message, entry }) {
    if (code !== "ERR_PACKAGE_PATH_NOT_EXPORTED") return undefined;
    const {
      path,
      manifest,
      importer = entry,
    } = /Package subpath '\.(?<path>[^']*)' is not defined by "exports" in (?<manifest>\S+package\.json)(?: imported from (?<importer>.+))?$/s.exec(
      message,
    )?.groups ?? {};
    if (path === undefined || manifest === undefined) return undefined;
    const name = dirname(manifest).split("/node_modules/").at(-1) ?? "";
    return {
      why: `the package ${name} does not export .${path}`,
      fix: "import a path that its package.json lists in exports",
      at: importOf(importer, (specifier) => specifier === `${name}${path}`),
    };
  },
  function unknownExtension({ code, message, entry }) {
    const file = /for (?<file>.+)$/s.exec(message)?.groups?.file;
    if (code !== "ERR_UNKNOWN_FILE_EXTENSION" || file === undefined) return undefined;
    const extension = extname(file);
    const fix = /^\.[jt]sx$/.test(extension)
      ? "compile it, or write it without JSX in a .ts file"
      : "rename it to .ts, .mts, .js or .mjs";
    return { why: `Node cannot load ${extension} files (${file})`, fix, at: importerOf(entry, file) };
  },
  function jsonWithoutType({ code, message, entry }) {
    const address = /^Module "(?<address>file:[^"]+)"/.exec(message)?.groups?.address;
    if (code !== "ERR_IMPORT_ATTRIBUTE_MISSING" || address === undefined) return undefined;
    const file = fileURLToPath(address.replace(/[?#].*$/s, ""));
    return {
      why: `${file} is imported as code, and is JSON`,
      fix: 'write import … with { type: "json" }',
      at: importerOf(entry, file),
    };
  },
  function damagedJson({ message, at }) {
    const { file, fault } = /^(?<file>\/[^\n]*\.json): (?<fault>.*)$/s.exec(message)?.groups ?? {};
    const position = file === undefined || at !== undefined ? undefined : jsonFaultPosition(textOf(file) ?? "");
    if (file === undefined || fault === undefined || position === undefined) return undefined;
    return { why: `${file} is not valid JSON: ${jsonFaultText(fault)}`, at: { file, ...position } };
  },
  function invalidManifest({ code, message }) {
    const file = /^Invalid package config (?<file>.+?package\.json)/s.exec(message)?.groups?.file;
    return code === "ERR_INVALID_PACKAGE_CONFIG" && file !== undefined
      ? { why: `${file} is not valid JSON`, fix: "fix it; every import below that folder reads it" }
      : undefined;
  },
  function typesInPackage({ code, message }) {
    if (code !== "ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING") return undefined;
    return { why: message, fix: "Node removes no types below node_modules: compile that package to JavaScript" };
  },
  function requireInModule({ message }) {
    return message.startsWith("require is not defined in ES module scope")
      ? { why: "require is not defined in an ES module", fix: "write import … from instead" }
      : undefined;
  },
  function importInScript({ message }) {
    return message === "Cannot use import statement outside a module" || message === "Unexpected token 'export'"
      ? { why: "it is loaded as CommonJS, and uses import or export", fix: "rename it to .mjs or .ts" }
      : undefined;
  },
];

function commonJsFix(from: string, name: string): string {
  return `write import pkg from "${from}"; const { ${name} } = pkg`;
}

/** A name that is only a type leaves no export behind. */
function exportFix(from: string, name: string, at: SourcePlace | undefined): string {
  const file = at === undefined ? undefined : localFile(from, at.file);
  const text = file === undefined ? "" : (textOf(file) ?? "");
  if (file !== undefined && /^\.c[jt]s$/.test(extname(file))) return commonJsFix(from, name);
  const types = [...text.matchAll(/\bexport\s+(?:declare\s+)?(?:type|interface)\s+([\w$]+)/g)].map(([, type]) => type);
  if (types.includes(name)) return `it is a type there: write import type { ${name} }, or { type ${name} }`;
  const exported = /\bexport\s+(?:async\s+)?(?:const|let|var|function\*?|class)\s+([\w$]+)/g;
  const names = [...text.matchAll(exported)].flatMap(([, value]) => value ?? []);
  const close = didYouMean(name, names);
  if (close !== undefined) return `did you mean "${close}"?`;
  if (names.length > 0) return `it exports ${names.slice(0, 12).join(", ")}`;
  return "check the name, or whether it is only a type: write import type then";
}

function missingPackage(name: string, importer: string, entry: string): Explained {
  const at = importOf(importer, (specifier) => specifier === name || specifier.startsWith(`${name}/`));
  const beside = resolve(dirname(importer), name);
  if (isFile(beside)) return { why: `the package ${name} is not installed`, fix: `did you mean ./${name}?`, at };
  if (/^[@~]\//.test(name))
    return { why: `${name} is not a package`, fix: "Node reads no paths of tsconfig.json: write a relative path", at };
  const folder = folderOfManifest(dirname(entry));
  const place = folder === undefined ? "" : ` in ${folder}`;
  return { why: `the package ${name} is not installed`, fix: `run: npm install ${name}${place}`, at };
}

function missingFile(target: string, importer: string): Explained {
  const is = (specifier: string): boolean =>
    specifier.startsWith(".") && resolve(dirname(importer), specifier) === target;
  const at = importOf(importer, is);
  const near = nearFile(target);
  const fix =
    near === undefined
      ? "check the path; imports of own files end in the file's extension"
      : `did you mean ${relativeTo(importer, near)}?`;
  return { why: `it imports ${relativeTo(importer, target)}, which does not exist`, fix, at };
}

/** An existing file that was probably meant: without its extension, compiled, a folder's index, or misspelled. */
function nearFile(target: string): string | undefined {
  const extensions = [".ts", ".mts", ".js", ".mjs", ".json"];
  const stem = target.slice(0, target.length - extname(target).length);
  const candidates = [
    ...extensions.map((extension) => target + extension),
    ...extensions.map((extension) => stem + extension),
    ...extensions.map((extension) => join(target, `index${extension}`)),
  ];
  const found = candidates.find((path) => path !== target && isFile(path));
  if (found !== undefined) return found;
  const folder = dirname(target);
  const close = existsSync(folder) ? didYouMean(target.slice(folder.length + 1), readdirSync(folder)) : undefined;
  return close === undefined ? undefined : join(folder, close);
}

function relativeTo(importer: string, target: string): string {
  const folder = `${dirname(importer)}/`;
  return target.startsWith(folder) ? `./${target.slice(folder.length)}` : target;
}

function folderOfManifest(from: string): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    if (existsSync(join(folder, "package.json"))) return folder;
    if (folder === dirname(folder)) return undefined;
  }
}

const IMPORTS = /(?:\bfrom|\bimport|\brequire)\s{0,99}\(?\s{0,99}(["'])(?<specifier>[^"'\n]{1,1000})\1/g;

interface FoundImport {
  readonly specifier: string;
  readonly at: SourcePlace;
}

function importsIn(file: string): readonly FoundImport[] {
  const text = textOf(file) ?? "";
  return [...text.matchAll(IMPORTS)].map(({ index, 0: all, groups }) => {
    const specifier = groups?.specifier ?? "";
    const offset = index + all.length - specifier.length - 2;
    return { specifier, at: { file, ...positionAt(text, offset) } };
  });
}

function importOf(file: string, is: (specifier: string) => boolean): SourcePlace | undefined {
  return importsIn(file).find(({ specifier }) => is(specifier))?.at;
}

/** Files whose imports are searched: Node names the file that cannot be loaded, and not who imports it. */
const MOST_FILES = 500;

function importerOf(entry: string, target: string): SourcePlace | undefined {
  const seen = new Set([entry]);
  for (const file of seen) {
    for (const { specifier, at } of importsIn(file)) {
      const found = localFile(specifier, file);
      if (found === target) return at;
      if (found !== undefined && seen.size < MOST_FILES) seen.add(found);
    }
  }
  return undefined;
}

/** The file that a relative import means. */
function localFile(specifier: string, importer: string): string | undefined {
  return specifier.startsWith(".") ? resolve(dirname(importer), specifier.replace(/[?#].*$/s, "")) : undefined;
}
