import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { type Directive, parseSync, type Statement } from "oxc-parser";

const root = join(import.meta.dirname, "../..");

/** A name where it is declared. */
interface Place {
  readonly file: string;
  readonly name: string;
}
interface Declaration {
  /** As the compiler emits it, without the comment before it. */
  readonly text: string;
  /** The comment before it, as Markdown. */
  readonly doc: string;
  readonly isType: boolean;
  /** Every name in it, its own members' included: what is declared nowhere is passed over. */
  readonly uses: ReadonlySet<string>;
}
/** One emitted declaration file: what it declares, imports and exports. */
interface Module {
  readonly declarations: Map<string, readonly Declaration[]>;
  readonly imports: Map<string, Place>;
  /** `file` is set for what is handed on from elsewhere. */
  readonly exports: Map<string, { readonly file?: string; readonly name: string }>;
  readonly stars: string[];
}
type ModuleAt = (file: string) => Module;

/** An entry of a package: what it exports, and the types that these need without being exported. */
export interface Entry {
  /** `@sluice/core/host`. */
  readonly name: string;
  readonly own: readonly Documented[];
  readonly needed: readonly Documented[];
}
export interface Documented {
  readonly name: string;
  readonly doc: string;
  readonly text: string;
  readonly isType: boolean;
}

/** What each entry of a package exports, by its name. */
export function publicTypes(name: string): readonly Entry[] {
  const folder = join(root, "packages", name);
  const manifest: { readonly exports: Readonly<Record<string, string | { readonly types: string }>> } = JSON.parse(
    readFileSync(join(folder, "package.json"), "utf8"),
  );
  const modules = new Map<string, Module>();
  const moduleAt = (file: string): Module => {
    const module = modules.get(file) ?? readModule(file);
    modules.set(file, module);
    return module;
  };
  return Object.entries(manifest.exports).flatMap(([entry, of]) =>
    typeof of === "string" ? [] : [readEntry(`@sluice/${name}${entry.slice(1)}`, join(folder, of.types), moduleAt)],
  );
}

function readEntry(title: string, file: string, moduleAt: ModuleAt): Entry {
  const exported = exportedNames(file, moduleAt);
  const names = new Map([...exported].map(([as, place]) => [keyOf(place), as]));
  const seen = new Map<string, Documented & { readonly own: boolean }>();
  const queue = [...exported.values()];
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const key = keyOf(next);
    if (seen.has(key)) continue;
    const declarations = moduleAt(next.file).declarations.get(next.name) ?? [];
    const name = names.get(key);
    seen.set(key, {
      name: name ?? next.name,
      doc: declarations.find(({ doc }) => doc !== "")?.doc ?? "",
      text: declarations.map(({ text }) => text).join("\n"),
      isType: declarations.every(({ isType }) => isType),
      own: name !== undefined,
    });
    for (const { uses } of declarations) {
      for (const used of uses) {
        const found = find(next.file, used, moduleAt);
        if (found !== undefined) queue.push(found);
      }
    }
  }
  const sorted = [...seen.values()].toSorted((a, b) => compare(a.name, b.name) || compare(a.text, b.text));
  return { name: title, own: sorted.filter(({ own }) => own), needed: sorted.filter(({ own }) => !own) };
}

function keyOf({ file, name }: Place): string {
  return JSON.stringify([file, name]);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

/** Every name a module exports, with where it is declared. */
function exportedNames(file: string, moduleAt: ModuleAt, seen = new Set<string>()): Map<string, Place> {
  const names = new Map<string, Place>();
  if (seen.has(file)) return names;
  seen.add(file);
  const module = moduleAt(file);
  for (const star of module.stars)
    for (const [name, place] of exportedNames(star, moduleAt, seen)) names.set(name, place);
  for (const [as, { file: from, name }] of module.exports) {
    const found = from === undefined ? find(file, name, moduleAt) : exportedNames(from, moduleAt).get(name);
    if (found === undefined) throw new Error(`${file} exports ${name}, which is declared nowhere`);
    names.set(as, found);
  }
  return names;
}

/** Where a name that a module uses is declared; undefined for what comes from other packages and the language. */
function find(file: string, name: string, moduleAt: ModuleAt): Place | undefined {
  const module = moduleAt(file);
  if (module.declarations.has(name)) return { file, name };
  const imported = module.imports.get(name);
  return imported === undefined ? undefined : exportedNames(imported.file, moduleAt).get(imported.name);
}

function readModule(file: string): Module {
  const text = readFileSync(file, "utf8");
  const { program, errors, comments } = parseSync(file, text);
  if (errors[0] !== undefined) throw new Error(`${file} does not parse: ${errors[0].message}`);
  const module: Module = { declarations: new Map(), imports: new Map(), exports: new Map(), stars: [] };
  const local = (specifier: string): string => resolve(dirname(file), specifier.replace(/\.ts$/, ".d.ts"));
  const declare = (node: Statement | Directive, start: number): readonly string[] => {
    const names = namesOf(node);
    const above = comments.find(({ type, end }) => type === "Block" && text.slice(end, start).trim() === "");
    const declaration = {
      text: text.slice(node.start, node.end).replace(/^declare /, ""),
      doc: above === undefined ? "" : markdownOf(above.value),
      isType: node.type === "TSInterfaceDeclaration" || node.type === "TSTypeAliasDeclaration",
      uses: usesOf(node),
    };
    for (const name of names) module.declarations.set(name, [...(module.declarations.get(name) ?? []), declaration]);
    return names;
  };
  for (const node of program.body) {
    if (node.type === "ImportDeclaration") {
      if (!node.source.value.startsWith(".")) continue;
      for (const specifier of node.specifiers) {
        const name = specifier.type === "ImportSpecifier" ? nameOf(specifier.imported) : specifier.local.name;
        module.imports.set(specifier.local.name, { file: local(node.source.value), name });
      }
    } else if (node.type === "ExportAllDeclaration") module.stars.push(local(node.source.value));
    else if (node.type === "ExportNamedDeclaration") {
      if (node.declaration !== null)
        for (const name of declare(node.declaration, node.start)) module.exports.set(name, { name });
      const from = node.source === null ? {} : { file: local(node.source.value) };
      for (const { exported, local: inner } of node.specifiers)
        module.exports.set(nameOf(exported), { ...from, name: nameOf(inner) });
    } else declare(node, node.start);
  }
  return module;
}

function nameOf(name: { readonly type: string; readonly name?: string; readonly value?: unknown }): string {
  return name.name ?? String(name.value);
}

function namesOf(node: Statement | Directive): readonly string[] {
  if (node.type === "VariableDeclaration")
    return node.declarations.flatMap(({ id }) => (id.type === "Identifier" ? [id.name] : []));
  if (!("id" in node) || node.id === null || !("name" in node.id)) return [];
  return [node.id.name];
}

function usesOf(node: unknown): ReadonlySet<string> {
  const names = new Set<string>();
  const collect = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    if ("type" in value && value.type === "Identifier" && "name" in value && typeof value.name === "string")
      names.add(value.name);
    for (const member of Object.values(value)) collect(member);
  };
  collect(node);
  return names;
}

/** The text of a comment without its frame. */
function markdownOf(comment: string): string {
  return comment
    .split("\n")
    .map((line) => line.replace(/^\s*\*+ ?/u, "").trimEnd())
    .join("\n")
    .trim();
}
