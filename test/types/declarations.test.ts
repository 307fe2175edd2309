import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const root = join(import.meta.dirname, "../..");

test("exported pipelines, stages and tools compile with `declaration: true`, and their types name public entries only", () => {
  mkdirSync(join(root, "node_modules/.cache"), { recursive: true });
  const folder = mkdtempSync(join(root, "node_modules/.cache/declarations-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const fixtures = join(root, "test/fixtures/declarations");
  const compilerOptions = {
    composite: false,
    declaration: true,
    emitDeclarationOnly: true,
    outDir: join(folder, "out"),
    rootDir: fixtures,
    typeRoots: [join(root, "node_modules/@types")],
  };
  const config = join(folder, "tsconfig.json");
  const files = [join(fixtures, "library.ts")];
  writeFileSync(config, JSON.stringify({ extends: join(root, "tsconfig.base.json"), compilerOptions, files }));
  execFileSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", config], { encoding: "utf8" });

  const declarations = readFileSync(join(folder, "out/library.d.ts"), "utf8");
  const named = new Set([...declarations.matchAll(/import\("([^"]+)"\)/g)].map(([, from]) => from));
  expect(named).toEqual(new Set(["@sluice/core", "@sluice/stages"]));
  expect(declarations).toContain('checks: import("@sluice/core").Pipeline<');
});
