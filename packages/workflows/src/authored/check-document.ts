// A document that a model wrote, checked as a file is, and by what its author allows.

import { type AnyPipeline, field, isJsonObject, type Json, type PipelineSpec } from "@sluice/core";
import { compilePipeline } from "@sluice/core/host";
import { checkSession, statesWithin } from "@sluice/core/runtime";
import type { Diagnostic } from "../diagnostic.ts";
import { problemFindings } from "../read/problem-finding.ts";
import { type Finding, readShape } from "../read/shape.ts";
import { readSource } from "../read/source.ts";
import { aboutFile, diagnosticsOf } from "../report/diagnostics.ts";
import { partialSchema, statewrightSchema } from "../statewright/schema.ts";
import { readStatewright } from "../statewright/statewright.ts";
import type { AuthoredRules } from "./allow.ts";
import { pipelineWords } from "./describe.ts";
import { AUTHORED_SANDBOX, authoredFindings } from "./rules.ts";

/** A checked document. */
export interface CheckedDocument {
  /** Absent if there are errors. */
  readonly spec?: PipelineSpec;
  readonly diagnostics: readonly Diagnostic[];
  /** The document as the diagnostics count its lines. */
  readonly text: string;
}

/** Where and when the pipeline is to run. */
export interface DocumentScope {
  readonly rules: AuthoredRules;
  /** The names of the session's tools. */
  readonly tools: readonly string[];
  /** When the document was written, in epoch milliseconds. */
  readonly now: number;
}

/** The name of the document in diagnostics. */
const DOCUMENT = "pipeline.json";
/** Characters of a document. */
const LONGEST = 65_536;
/** Characters of the words that describe it. */
const MOST_WORDS = 50_000;

export function checkDocument(written: Json, { rules, tools, now }: DocumentScope): CheckedDocument {
  const document = walled(written);
  const text = JSON.stringify(document, null, 2);
  const refused = (diagnostics: readonly Diagnostic[]): CheckedDocument => ({ diagnostics, text });
  if (!isJsonObject(document)) return refused([aboutFile(DOCUMENT, "wrong-type", "The pipeline is not an object.")]);
  if (text.length > LONGEST)
    return refused([aboutFile(DOCUMENT, "file-size", `The pipeline has more than ${LONGEST} characters.`)]);
  const { source, diagnostics } = readSource(DOCUMENT, text);
  if (source === undefined) return refused(diagnostics);
  const shape = readShape(statewrightSchema, partialSchema, source.value);
  const own = authoredFindings(shape.value ?? {}, rules, now).map(
    (finding): Finding => ({ ...finding, path: shape.locate(finding.path) }),
  );
  // What is not allowed is not compiled: it may be huge.
  if (own.length > 0) return refused(diagnosticsOf(source, [...shape.findings, ...own]));
  const reading = readStatewright(source);
  const workflows = new Map<string, AnyPipeline>();
  for (const { name } of reading.references) {
    const allowed = rules.pipelines.get(name);
    if (allowed !== undefined) workflows.set(name, allowed);
  }
  const { definition, findings, locate } = reading.compile(workflows);
  const found = [...reading.findings, ...findings];
  if (definition === undefined || found.some(({ severity }) => severity === "error"))
    return refused(diagnosticsOf(source, found));
  const { spec, problems } = compilePipeline({ ...definition, limits: rules.limits });
  const kinds = [...new Set(statesWithin(spec).map(({ kind }) => kind))];
  const live = problems.length > 0 ? [] : checkSession(spec, { tools, kinds });
  found.push(...problemFindings([...problems, ...live], locate));
  const all = diagnosticsOf(source, found);
  if (all.some(({ severity }) => severity === "error")) return refused(all);
  // The app shows a question of this length whole.
  if (pipelineWords(spec).length <= MOST_WORDS) return { spec, diagnostics: all, text };
  const message = `What a person has to read about the pipeline has more than ${MOST_WORDS} characters.`;
  return refused([aboutFile(DOCUMENT, "file-size", message)]);
}

/** The document with all its commands in the sandbox, where people see it. */
function walled(document: Json): Json {
  const states = field(document, "states");
  if (!isJsonObject(document) || states === undefined || !isJsonObject(states)) return document;
  const inside = Object.entries(states).map(([name, state]) => [name, walledState(state)] as const);
  return { ...document, states: Object.fromEntries(inside) };
}

function walledState(state: Json): Json {
  if (!isJsonObject(state)) return state;
  const commands = Object.entries(state).flatMap(([name, fields]) =>
    (name === "script" || name === "poll") && isJsonObject(fields) && !("sandbox" in fields)
      ? [[name, { ...fields, sandbox: AUTHORED_SANDBOX }] as const]
      : [],
  );
  return commands.length === 0 ? state : { ...state, ...Object.fromEntries(commands) };
}
