// The stages of a folder: frontmatter and prompt as a stage, and what its mistakes are called in the file.

import { type AllowedTool, type AnyState, type JsonObject, type JsonSchema, type Problem, stage } from "@sluice/core";
import { matchesName, readPattern } from "@sluice/core/gate";
import type { DocumentPath } from "../diagnostic.ts";
import type { FindingAt } from "../format.ts";
import { onlyGiven } from "../kinds/fields.ts";
import { type Finding, readShape } from "../read/shape.ts";
import type { SourceFile } from "../read/source.ts";
import { expandTemplates } from "../read/template.ts";
import { type StageFields, stageFields } from "./fields.ts";

/** Model calls of one attempt, unless the stage says otherwise. */
const TURN_CAP = 50;
const READ_SKILL = "ReadSkill";
const SKILL_NAME = /^(?!.*\.\.)[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$/;

export interface CompiledStage {
  readonly state: AnyState;
  /** The mistakes of its file. */
  readonly findings: readonly Finding[];
  /** The schema of its output; undefined if it completes by events. */
  readonly output?: JsonObject;
  /** Where a problem of the stage is. Its path is relative to the stage. */
  locate(problem: Pick<Problem, "place">, path: DocumentPath): FindingAt;
}

/** Compiles a stage from its file. */
export function compileStage(name: string, source: SourceFile): CompiledStage {
  const shape = readShape(stageFields, stageFields, source.value);
  const fields: StageFields = shape.value ?? {};
  const prompt = expandTemplates(fields.prompt ?? "");
  const own = findingsOf(name, fields).map((finding) => ({ ...finding, path: shape.locate(finding.path) }));
  const output = fields.completionSchema === undefined ? {} : { output: fields.completionSchema };
  return {
    state: stateOf(fields, prompt.text),
    findings: [...shape.findings, ...own].map((finding) => ({ ...finding, source })),
    ...output,
    locate: ({ place }, path) => {
      const named = path[0] === "retryPolicy" && fields.retries !== undefined ? ["retries"] : path;
      return { source, path: shape.locate(named), ...(place === undefined ? {} : prompt.original(place)) };
    },
  };
}

function stateOf(fields: StageFields, prompt: string): AnyState {
  const { visibility, model, temperature, maxOutputTokens, topP, seed, stopSequences, reasoning, toolChoice } = fields;
  const { providerOptions, fallbackModels, onProviderFault, cache } = fields;
  const allowedTools = envelopeOf(fields);
  const attempts = fields.retries === undefined ? fields.retryPolicy?.maxAttempts : fields.retries + 1;
  const common = {
    prompt,
    turnCap: fields.turnCap ?? TURN_CAP,
    ...(allowedTools === undefined ? {} : { allowedTools }),
    ...onlyGiven({ visibility, model, temperature, maxOutputTokens, topP, seed, stopSequences, reasoning, toolChoice }),
    ...onlyGiven({ providerOptions, fallbackModels, onProviderFault, cache }),
    ...(fields.retry === undefined ? {} : { retry: onlyGiven(fields.retry) }),
    ...(fields.limits === undefined ? {} : { limits: onlyGiven(fields.limits) }),
    ...(attempts === undefined ? {} : { retryPolicy: { maxAttempts: attempts } }),
    ...(fields.inputSchema === undefined ? {} : { inputSchema: objectSchema(fields.inputSchema) }),
    ...(fields.sandbox === undefined ? {} : { sandbox: onlyGiven(fields.sandbox) }),
    ...(fields.env === undefined ? {} : { env: onlyGiven(fields.env) }),
  };
  const { completionTool, completionSchema = {} } = fields;
  if (completionTool === undefined) return stage(common);
  return stage({ ...common, completionTool, completionSchema: objectSchema(completionSchema) });
}

/** A schema as TypeScript knows schemas: models send named arguments, so it is one of objects. */
export function objectSchema(schema: JsonObject): JsonSchema {
  return { ...schema, type: "object" };
}

/** The envelope. `skills` limits the rule for ReadSkill to the folders of these skills. */
function envelopeOf({ allowedTools, skills }: StageFields): readonly AllowedTool[] | undefined {
  const names = skills?.filter((name) => SKILL_NAME.test(name)) ?? [];
  return allowedTools?.map((entry): AllowedTool => {
    const tool = entryOf(entry);
    if (tool !== READ_SKILL || names.length === 0) return tool;
    return `${READ_SKILL}(*/skills/${names.length === 1 ? names[0] : `{${names.join(",")}}`}/**)`;
  });
}

function entryOf(tool: NonNullable<StageFields["allowedTools"]>[number]): AllowedTool {
  return typeof tool === "string" ? tool : { tool: tool.tool, optional: true };
}

function findingsOf(name: string, fields: StageFields): readonly Finding[] {
  const { id, allowedTools, completionTool, completionSchema, inputSchema, retries, retryPolicy } = fields;
  const found: Finding[] = [];
  const error = (rule: string, field: string | undefined, message: string, suggestion?: string): void => {
    found.push({ severity: "error", rule, message, suggestion, path: field === undefined ? [] : [field], what: "key" });
  };
  found.push(...idFindings(name, id));
  if ((fields.prompt ?? "") === "")
    error("missing-field", undefined, "The file has no text below its frontmatter, which is the prompt.");
  if (completionTool !== undefined && completionSchema === undefined)
    error(
      "missing-field",
      "completionTool",
      "The stage has no completionSchema, which says what its completion tool takes.",
    );
  if (completionTool === undefined && completionSchema !== undefined)
    error(
      "missing-field",
      "completionSchema",
      "The stage has no completionTool to which the schema belongs.",
      "name one, such as submit_result",
    );
  for (const [field, schema] of Object.entries({ completionSchema, inputSchema }))
    if (schema !== undefined && !describesObject(schema))
      error(
        "wrong-type",
        field,
        `${field} must describe an object, since models send named fields.`,
        "write type: object",
      );
  if (retries !== undefined && retryPolicy?.maxAttempts !== undefined)
    error("alias-twice", "retryPolicy", "retries and retryPolicy say the same.", "remove one of them");
  found.push(...skillFindings(fields));
  if (fields.resolutionPolicy !== undefined)
    found.push({
      severity: "warning",
      rule: "no-effect",
      message: "resolutionPolicy has no effect: a Markdown stage has no gate of its own to resolve.",
      path: ["resolutionPolicy"],
      what: "key",
    });
  if (allowedTools === undefined)
    found.push({
      severity: "warning",
      rule: "no-envelope",
      message: "The stage lists no tools, so the session's mode decides every tool call.",
      suggestion: "write allowedTools, with [] for none",
      path: [],
    });
  return found;
}

/** The id of a stage, if its file gives one, is the name of the file. */
export function idFindings(name: string, id: string | undefined): readonly Finding[] {
  if (id === undefined || id === name) return [];
  const message = `The stage is called ${name}, as its file.`;
  const suggestion = `write id: ${name}, or remove the line`;
  return [{ severity: "error", rule: "stage-id", message, suggestion, path: ["id"], what: "key" }];
}

export function describesObject({ type }: JsonObject): boolean {
  return type === undefined || type === "object";
}

function skillFindings({ skills, allowedTools = [] }: StageFields): readonly Finding[] {
  if (skills === undefined) return [];
  const found = skills.flatMap((name, index): Finding[] => {
    if (SKILL_NAME.test(name)) return [];
    const message = `${JSON.stringify(name.slice(0, 80))} is not the name of a skill: letters, digits, -, _ and . , at most 64.`;
    return [{ severity: "error", rule: "wrong-name", message, path: ["skills", index] }];
  });
  for (const [index, tool] of allowedTools.entries()) {
    const reading = readPattern(entryOf(tool));
    if (tool === READ_SKILL || !reading.ok || !matchesName(reading.value, READ_SKILL)) continue;
    const message = `skills and ${JSON.stringify(reading.value.text)} both say which skills the stage may read.`;
    const [rule, suggestion] = ["skills-without-tool", `write ${READ_SKILL}, or remove skills`];
    found.push({ severity: "error", rule, message, suggestion, path: ["allowedTools", index] });
  }
  if (found.length > 0 || allowedTools.some((tool) => tool === READ_SKILL)) return found;
  const message = `The stage names skills, but does not list ${READ_SKILL}, with which it would read them.`;
  const suggestion = `add ${READ_SKILL} to allowedTools`;
  return [
    ...found,
    { severity: "error", rule: "skills-without-tool", message, suggestion, path: ["skills"], what: "key" },
  ];
}
