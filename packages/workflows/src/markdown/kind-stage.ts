// The stages of a folder that run no agent: the frontmatter has the fields of their kind.

import { field, type Json } from "@sluice/core";
import { pathWords } from "../diagnostic.ts";
import { compileKind } from "../kinds/compile.ts";
import { KIND_NAMES, type KindName, kindFields, readKind, UNREADABLE } from "../kinds/fields.ts";
import { outputOfKind } from "../kinds/outputs.ts";
import { problemFindings } from "../read/problem-finding.ts";
import { type Finding, readShape } from "../read/shape.ts";
import type { SourceFile } from "../read/source.ts";
import { fullTemplates, templateFindings } from "../read/template.ts";
import { kindStageFields } from "./fields.ts";
import { type CompiledStage, idFindings } from "./stages.ts";

/** The kind that a stage's file names, if it is one without an agent. */
export function kindNamed(value: Json): KindName | undefined {
  const kind = field(value, "kind");
  return KIND_NAMES.find((name) => name === kind);
}

/** Compiles a stage that runs no agent from its file. `pipelineKey` is the key of a workflow that it names. */
export function compileKindStage(
  name: string,
  kind: KindName,
  source: SourceFile,
  pipelineKey: (workflow: string) => string,
): CompiledStage {
  const schema = kindStageFields[kind];
  const shape = readShape(schema, schema.partial(), source.value);
  const { id, prompt = "", ...rest } = shape.value ?? {};
  const body = prompt.trim() === "" ? undefined : prompt;
  const known = Object.keys(kindFields[kind].shape);
  const own = Object.entries(rest).filter(([key]) => known.includes(key));
  const given = readKind(kind, { ...bodyOf(kind, body), ...Object.fromEntries(own) });
  const compiled = compileKind(given ?? UNREADABLE, {
    template: fullTemplates,
    templateFaults: templateFindings,
    stateId: (state) => state,
    pipelineKey,
  });
  const fieldOf = (path: Finding["path"]): Finding["path"] =>
    kind === "human" && path[0] === "question" && !own.some(([key]) => key === "question") ? ["prompt"] : path;
  const at = (path: Finding["path"]): Finding["path"] => shape.locate(fieldOf(path));
  const problems = problemFindings(compiled.state.spec.problems, (problem) => ({
    path: fieldOf(compiled.locate(problem)),
  }));
  const found = [
    ...idFindings(name, id),
    ...bodyFindings(kind, body, given !== undefined),
    ...compiled.findings,
    ...problems,
  ];
  const output = given === undefined ? undefined : outputOfKind(given);
  return {
    state: compiled.state,
    findings: [...shape.findings, ...found.map((finding) => ({ ...finding, path: at(finding.path) }))].map(
      (finding) => ({
        ...finding,
        source,
      }),
    ),
    ...(output === undefined ? {} : { output }),
    locate: (_problem, path) => ({ source, path: at(compiled.locate({ path: pathWords(path) })) }),
  };
}

/** The field that the text below the frontmatter is. In other kinds it is a note for people. */
function bodyOf(kind: KindName, body: string | undefined): Readonly<Record<string, string>> {
  if (body === undefined) return {};
  if (kind === "human") return { question: body };
  return kind === "router" ? { prompt: body } : {};
}

function bodyFindings(kind: KindName, body: string | undefined, isRead: boolean): readonly Finding[] {
  if (body !== undefined || isRead || (kind !== "human" && kind !== "router")) return [];
  const what = kind === "human" ? "the question" : "the prompt";
  const message = `The file has no text below its frontmatter, which is ${what}.`;
  return [{ severity: "error", rule: "missing-field", message, path: [], what: "key" }];
}
