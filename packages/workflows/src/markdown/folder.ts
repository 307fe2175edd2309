// The parts of a folder of Markdown stages: what pipeline.yaml names, and the files of its stages.

import { field, isJsonObject, type Json } from "@sluice/core";
import { idFault, messageOf } from "@sluice/core/runtime";
import type { DocumentPath } from "../diagnostic.ts";
import type { FilesBeside } from "../format.ts";
import { RETURN } from "../kinds/ends.ts";
import { type NamedTarget, routerTargets } from "../kinds/fields.ts";
import { suggestClosest } from "../read/field-names.ts";
import type { Finding } from "../read/shape.ts";
import type { SourceFile } from "../read/source.ts";
import { readStageFile } from "./stage-file.ts";

/** The ends that a transition may name instead of a stage, unless a final state has that name. */
export const DONE = "done";
export const FAIL = "fail";

/** A place where pipeline.yaml names a stage, or where the file of a router does. */
export interface Mention extends NamedTarget {
  /** The file, if it is not pipeline.yaml. */
  readonly source?: SourceFile;
}

/** Reads the file of each stage that pipeline.yaml names. */
export async function readStages(
  first: readonly Mention[],
  ends: ReadonlySet<string>,
  beside: FilesBeside,
): Promise<{
  readonly stages: ReadonlyMap<string, SourceFile>;
  /** Each stage, where it is named first. */
  readonly mentions: readonly Mention[];
  readonly findings: readonly Finding[];
}> {
  const names = (await beside.list()).filter((name) => name.endsWith(EXTENSION)).map((name) => name.slice(0, -3));
  const findings: Finding[] = [];
  const stages = new Map<string, SourceFile>();
  const mentions = [...first];
  // The files of routers add to the list while it is gone through.
  for (const mention of mentions) {
    const { name } = mention;
    if (idFault(name) !== undefined || !names.includes(name)) {
      findings.push(missingStage(mention, names));
      continue;
    }
    const reading = await readStage(mention, beside);
    findings.push(...reading.findings);
    if (reading.source === undefined) continue;
    stages.set(name, reading.source);
    for (const one of targetsOfRouter(reading.source))
      if (!ends.has(one.name) && !mentions.some((known) => known.name === one.name)) mentions.push(one);
  }
  return { stages, mentions, findings: [...findings, ...unusedFiles(names, mentions)] };
}

const EXTENSION = ".md";

/** The stages that a router's file names. */
export function targetsOfRouter(source: SourceFile): readonly Mention[] {
  const { value } = source;
  if (field(value, "kind") !== "router") return [];
  const fields = { targets: field(value, "targets"), fallback: field(value, "fallback") };
  return routerTargets(fields).map((mention) => ({ ...mention, source }));
}

async function readStage({ name, path }: Mention, beside: FilesBeside): Promise<ReturnType<typeof readStageFile>> {
  let given: Awaited<ReturnType<FilesBeside["read"]>>;
  try {
    given = await beside.read(`${name}${EXTENSION}`);
  } catch (thrown) {
    const message = `${name}${EXTENSION} cannot be read: ${messageOf(thrown)}.`;
    return { findings: [{ severity: "error", rule: "file-missing", message, path }] };
  }
  return readStageFile(given.file, given.text);
}

function missingStage({ name, path, source }: Mention, names: readonly string[]): Finding {
  const from = source === undefined ? {} : { source };
  const base = { severity: "error", rule: "unknown-target", path, ...from } as const;
  const fault = idFault(name);
  if (fault !== undefined) return { ...base, message: `This cannot name a stage: ${fault}.` };
  const suggestion =
    suggestClosest(name, [...names, DONE, FAIL, RETURN]) ??
    `write the stage in ${name}.md, or list ${name} under final`;
  return { ...base, message: `There is no stage ${name}: the folder has no ${name}.md.`, suggestion };
}

/** Names that repositories give to files of another purpose. */
const OTHER_PURPOSE = /^(?:[A-Z][A-Z_-]*|index)$/;

function unusedFiles(names: readonly string[], mentions: readonly Mention[]): readonly Finding[] {
  const used = new Set(mentions.map(({ name }) => name));
  return names
    .filter((name) => !used.has(name) && !OTHER_PURPOSE.test(name))
    .map((name) => ({
      severity: "warning",
      rule: "unused-stage",
      message: `${name.slice(0, 80)}.md is not part of the pipeline: no transition names it.`,
      path: ["transitions"],
      what: "key",
    }));
}

/** What pipeline.yaml names that is not a stage. */
export function endNames(pipeline: Json): ReadonlySet<string> {
  return new Set([DONE, FAIL, RETURN, "*", ...finalNames(pipeline)]);
}

/** Each stage that pipeline.yaml names, where it does so first. */
export function firstMentions(pipeline: Json): readonly Mention[] {
  const ends = endNames(pipeline);
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
  const stages: readonly Json[] = Array.isArray(pipeline.stages) ? pipeline.stages : [];
  return [
    ...named(pipeline.initial, ["initial"]),
    ...stages.flatMap((name, index) => named(name, ["stages", index])),
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
