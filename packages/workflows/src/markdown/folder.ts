// A folder of Markdown stages as one document: pipeline.yaml, with its stages' files below `stages`.

import { isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { didYouMean, idFault } from "@sluice/core/runtime";
import type { Diagnostic, DocumentPath, Position } from "../diagnostic.ts";
import { readSource, type SourceFile } from "../read/source.ts";
import { readStageFile, type StageFile } from "./stage-file.ts";

export const PIPELINE_FILE = "pipeline.yaml";

/** The ends that a transition may name instead of a stage, unless a final state has that name. */
export const DONE = "done";
export const FAIL = "fail";
/** The target that goes back to the stage that an interrupt left. */
export const RETURN = "$return";

/** A text with the path that diagnostics show. */
export interface NamedText {
  readonly file: string;
  readonly text: string;
}
export interface FolderFiles {
  readonly pipeline: NamedText;
  /** The file of a stage by its name; undefined if there is none. */
  stage(name: string): Promise<NamedText | undefined>;
  /** The names of the Markdown files in the folder, without `.md`. */
  readonly names: readonly string[];
}
export interface FolderReading {
  /** The folder as one document. Absent if pipeline.yaml cannot be read. */
  readonly source?: SourceFile;
  readonly diagnostics: readonly Diagnostic[];
}

/** A place where pipeline.yaml names a stage or an end. */
export interface Mention {
  readonly name: string;
  readonly path: DocumentPath;
}

/** Reads pipeline.yaml and the file of each stage that it names. */
export async function readFolder(files: FolderFiles): Promise<FolderReading> {
  const { source, diagnostics } = readSource(files.pipeline.file, files.pipeline.text);
  if (source === undefined) return { diagnostics };
  const found: Diagnostic[] = [...diagnostics];
  const stages = new Map<string, StageFile>();
  for (const { name, path } of firstMentions(source.value)) {
    const given = idFault(name) === undefined ? await files.stage(name) : undefined;
    if (given === undefined) {
      found.push(missingStage(source, { name, path }, files.names));
      continue;
    }
    const { stage, diagnostics: inStage } = readStageFile(given.file, given.text);
    found.push(...inStage);
    if (stage !== undefined) stages.set(name, stage);
  }
  return { source: folderSource(source, stages), diagnostics: found };
}

function missingStage(source: SourceFile, { name, path }: Mention, names: readonly string[]): Diagnostic {
  const fault = idFault(name);
  const close = didYouMean(name, [...names, DONE, FAIL, RETURN]);
  const suggestion =
    close === undefined ? `write the stage in ${name}.md, or list it under final` : `did you mean "${close}"?`;
  return {
    severity: "error",
    rule: "unknown-target",
    message: fault === undefined ? `There is no file ${name}.md.` : `This cannot name a stage: ${fault}.`,
    ...(fault === undefined ? { suggestion } : {}),
    path: "",
    file: source.file,
    ...source.at(path),
  };
}

/** Each stage that pipeline.yaml names, where it does so first. */
export function firstMentions(pipeline: Json): readonly Mention[] {
  const ends = new Set([DONE, FAIL, RETURN, "*", ...finalNames(pipeline)]);
  const seen = new Set<string>();
  return mentionsIn(pipeline).filter(({ name }) => {
    if (ends.has(name) || seen.has(name)) return false;
    seen.add(name);
    return true;
  });
}

/** Everything that pipeline.yaml names as a stage, whatever else is wrong with it. Targets come before the rows' own stages. */
function mentionsIn(pipeline: Json): readonly Mention[] {
  if (!isJsonObject(pipeline)) return [];
  const rows = (Array.isArray(pipeline.transitions) ? pipeline.transitions : []).map(
    (row: Json, index) => [row, ["transitions", index]] as const,
  );
  const interrupts = isJsonObject(pipeline.interrupts) ? Object.entries(pipeline.interrupts) : [];
  return [
    ...named(pipeline.initial, ["initial"]),
    ...rows.flatMap(([row, path]) => (isJsonObject(row) ? targetsIn(row.to, [...path, "to"]) : [])),
    ...interrupts.flatMap(([name, interrupt]) =>
      isJsonObject(interrupt) ? named(interrupt.target, ["interrupts", name, "target"]) : [],
    ),
    ...rows.flatMap(([row, path]) => (isJsonObject(row) ? named(row.from, [...path, "from"]) : [])),
  ];
}

function targetsIn(target: Json | undefined, path: DocumentPath): readonly Mention[] {
  if (!isJsonObject(target)) return named(target, path);
  const parallel: readonly Json[] = Array.isArray(target.parallel) ? target.parallel : [];
  return [
    ...named(target.state, [...path, "state"]),
    ...parallel.flatMap((name, index) => named(name, [...path, "parallel", index])),
    ...named(target.join, [...path, "join"]),
  ];
}

function named(name: Json | undefined, path: DocumentPath): readonly Mention[] {
  return typeof name === "string" && name !== "" ? [{ name, path }] : [];
}

function finalNames(pipeline: Json): readonly string[] {
  const final = isJsonObject(pipeline) ? pipeline.final : undefined;
  if (Array.isArray(final)) return final.filter((name) => typeof name === "string");
  return isJsonObject(final) ? Object.keys(final) : [];
}

/** pipeline.yaml with the files of its stages; positions below `stages` are those of the files. */
function folderSource(pipeline: SourceFile, stages: ReadonlyMap<string, StageFile>): SourceFile {
  if (!isJsonObject(pipeline.value)) return pipeline;
  const value: JsonObject = {
    ...pipeline.value,
    stages: Object.fromEntries([...stages].map(([name, stage]) => [name, stageValue(stage)])),
  };
  return {
    file: pipeline.file,
    text: pipeline.text,
    value,
    at: (path, what, offset, length = 1) => {
      const [first, name, field, ...inside] = path;
      const stage = first === "stages" ? stages.get(String(name)) : undefined;
      if (stage === undefined) return pipeline.at(path, what, offset, length);
      return { file: stage.header.file, ...inStage(stage, field, inside, what, offset, length) };
    },
  };
}

function stageValue({ header, prompt }: StageFile): Json {
  if (header.value === null) return { prompt };
  return isJsonObject(header.value) ? { ...header.value, prompt } : header.value;
}

function inStage(
  stage: StageFile,
  field: string | number | undefined,
  inside: DocumentPath,
  what: "key" | "value" | undefined,
  offset: number | undefined,
  length: number,
): Position {
  if (field === undefined) return { line: 1, column: 1, length: 3 };
  if (field === "prompt") return stage.promptAt({ offset: offset ?? 0, length });
  return stage.header.at([field, ...inside], what, offset, length);
}
