import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Expression, parseSync, Visitor } from "oxc-parser";

export const root = join(import.meta.dirname, "../..");

export interface SourceFile {
  /** From the root of the repository, with forward slashes: `packages/core/src/run/loop.ts`. */
  readonly path: string;
  readonly lines: number;
  /** Every specifier, however it is imported: static, type only, dynamic, re-exported, `import("x").T`, `require`. */
  readonly imports: readonly string[];
  /** An `import()` of something that is not a literal: no checker can follow it. */
  readonly computedImports: number;
  readonly exportsDefault: boolean;
  /** Names or modules handed on instead of defined here, by `export … from` or by exporting what was imported. */
  readonly reExports: readonly string[];
}

export function readSources(): readonly SourceFile[] {
  const paths = globSync("packages/*/src/**/*.{ts,tsx,mts,cts,js,jsx,mjs,cjs}", { cwd: root });
  return paths
    .map((path) => path.replaceAll("\\", "/"))
    .toSorted()
    .map((path) => parseSource(path, readFileSync(join(root, path), "utf8")));
}

export function parseSource(path: string, text: string): SourceFile {
  const parsed = parseSync(path, text);
  const error = parsed.errors[0];
  if (error !== undefined) throw new Error(`${path} does not parse: ${error.message}`);

  const imports: string[] = [];
  const reExports: string[] = [];
  const imported = new Set<string>();
  const exportedLocals: string[] = [];
  let computedImports = 0;
  let exportsDefault = false;

  const dynamic = (source: Expression): void => {
    const specifier = literalOf(source);
    if (specifier === undefined) computedImports += 1;
    else imports.push(specifier);
  };

  new Visitor({
    ImportDeclaration(node) {
      imports.push(node.source.value);
      for (const specifier of node.specifiers) imported.add(specifier.local.name);
    },
    ImportExpression: (node) => dynamic(node.source),
    TSImportType: (node) => void imports.push(node.source.value),
    TSExternalModuleReference: (node) => void imports.push(node.expression.value),
    CallExpression(node) {
      const [argument] = node.arguments;
      const isRequire = node.callee.type === "Identifier" && node.callee.name === "require";
      if (isRequire && argument !== undefined && argument.type !== "SpreadElement") dynamic(argument);
    },
    ExportAllDeclaration(node) {
      imports.push(node.source.value);
      reExports.push(`* from ${node.source.value}`);
    },
    ExportNamedDeclaration(node) {
      if (node.source !== null) {
        imports.push(node.source.value);
        reExports.push(`{…} from ${node.source.value}`);
      }
      for (const { local, exported } of node.specifiers) {
        if (nameOf(exported) === "default") exportsDefault = true;
        if (node.source === null) exportedLocals.push(nameOf(local));
      }
    },
    ExportDefaultDeclaration: () => {
      exportsDefault = true;
    },
    TSExportAssignment: () => {
      exportsDefault = true;
    },
  }).visit(parsed.program);

  reExports.push(...exportedLocals.filter((name) => imported.has(name)));
  return { path, lines: countLines(text), imports, computedImports, exportsDefault, reExports };
}

function literalOf(source: Expression): string | undefined {
  if (source.type === "Literal" && typeof source.value === "string") return source.value;
  if (source.type === "TemplateLiteral" && source.expressions.length === 0) return source.quasis[0]?.value.cooked ?? "";
  return undefined;
}

function nameOf(node: { readonly type: string; readonly name?: string; readonly value?: unknown }): string {
  return node.name ?? String(node.value);
}

function countLines(text: string): number {
  return text === "" ? 0 : text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
}
