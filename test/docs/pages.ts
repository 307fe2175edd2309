import { spawnSync } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";

export const root = join(import.meta.dirname, "../..");

/** A page of the documentation, as it is on disk. */
export interface Page {
  /** Relative to the repository. */
  readonly path: string;
  readonly text: string;
}

export function readPages(): readonly Page[] {
  const paths = [
    "README.md",
    "AGENTS.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "examples/README.md",
    ...globSync(["docs/*.md", "docs/decisions/*.md", "{bench,test/*}/README.md"], { cwd: root }).sort(),
  ];
  return paths.map(readPage);
}

export function readPage(path: string): Page {
  return { path, text: readFileSync(join(root, path), "utf8") };
}

/**
 * One fenced block. What stands in an HTML comment right before it says how it is checked:
 * `<!-- run -->` a program that is run, `<!-- run: name -->` one that others go on from, `<!-- after: name -->` a piece
 * that goes on from the block of that name, `<!-- given … -->` a piece with lines before it that readers need not see,
 * `<!-- output -->` what the block before it prints.
 */
export interface Block {
  readonly page: string;
  /** Of its first line, from 1. */
  readonly line: number;
  readonly language: string;
  readonly text: string;
  readonly note: string;
}

export function blocksOf({ path, text }: Page): readonly Block[] {
  const blocks: Block[] = [];
  const fence = /(?:<!--(?<note>(?:(?!-->)[\s\S])*)-->\n+)?^```(?<language>\w+)\n(?<body>[\s\S]*?)^```$/gm;
  for (const match of text.matchAll(fence)) {
    const { note = "", language = "", body = "" } = match.groups ?? {};
    const start = match.index + match[0].length - body.length - "```".length;
    blocks.push({ page: path, line: text.slice(0, start).split("\n").length, language, text: body, note: note.trim() });
  }
  return blocks;
}

/** The part of a page below a heading, up to the next one of its level. */
export function sectionOf({ path, text }: Page, heading: string): string {
  const level = /^#+/.exec(heading)?.[0] ?? "";
  const lines = text.split("\n");
  const start = lines.indexOf(heading);
  if (start === -1) throw new Error(`${path} has no heading ${heading}`);
  const rest = lines.slice(start + 1);
  const end = rest.findIndex((line) => new RegExp(`^#{1,${level.length}} `).test(line));
  return rest.slice(0, end === -1 ? undefined : end).join("\n");
}

/** The rows of the first table of a text, without its head; each cell without the marks around it. */
export function tableOf(text: string): readonly (readonly string[])[] {
  const [rows = ""] = /(?:^\|.*$\n?)+/m.exec(text) ?? [];
  return rows
    .trimEnd()
    .split("\n")
    .slice(2)
    .map((row) =>
      row
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim().replaceAll("\\|", "|")),
    );
}

/** The texts in backquotes. */
export function codesIn(text: string): readonly string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
}

/** A folder inside the repository, so that its packages are found from there; gone when the test is. */
export function scratchInside(): string {
  const parent = join(root, ".reports");
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(parent, "docs-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export interface Ran {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs Node with nothing of this machine's settings. */
export function runNode(args: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}): Ran {
  const settings = { PATH: process.env.PATH, HOME: cwd, TMPDIR: cwd, NO_COLOR: "1", ...env };
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd, encoding: "utf8", env: settings });
  return { status, stdout, stderr };
}

/** The built command, as users start it. */
export function sluice(args: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}): Ran {
  return runNode([join(root, "packages/cli/bin/sluice.js"), ...args], cwd, env);
}
