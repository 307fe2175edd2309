// Reads a Flujo document into its machines, states and steps, each with its path in the document.

import { isJsonObject, type Json } from "@sluice/core";
import { z } from "zod";
import type { DocumentPath } from "../diagnostic.ts";
import { type Finding, readShape } from "../read/shape.ts";
import {
  type DocumentFields,
  type MachineFields,
  machineDocumentSchema,
  machineSchema,
  partialMachine,
  partialMachineDocument,
  partialState,
  partialStep,
  partialStepsDocument,
  type StepFields,
  stateSchema,
  stepSchema,
  stepsDocumentSchema,
  type Transition,
} from "./schema.ts";

/** A part of the document. `at` is the path in the document of one of its fields. */
export interface Part {
  readonly path: DocumentPath;
  at(...path: DocumentPath): DocumentPath;
}
export interface FlujoStep extends Part {
  readonly name: string;
  readonly fields: StepFields;
  /** Of a step that is a machine. */
  readonly machine?: FlujoMachine;
}
export interface FlujoState extends Part {
  readonly name: string;
  readonly steps: readonly FlujoStep[];
  readonly outcome?: "completed" | "failed" | "cancelled";
}
export interface FlujoMachine extends Part {
  readonly name: string | undefined;
  readonly start: string | undefined;
  readonly ends: readonly { readonly name: string; readonly path: DocumentPath }[];
  readonly states: ReadonlyMap<string, FlujoState>;
  /** Every name that `states` has, mistaken ones included. */
  readonly names: ReadonlySet<string>;
  readonly transitions: readonly Transition[];
}
export interface FlujoDocument extends Part {
  readonly name: string | undefined;
  readonly fields: DocumentFields;
  /** A document is one machine, or steps. */
  readonly body: { readonly machine: FlujoMachine } | { readonly steps: readonly FlujoStep[] };
  readonly findings: readonly Finding[];
}

/** Whether a document is for this format. */
export function isFlujo(document: Json): boolean {
  if (Array.isArray(document))
    return document.some((step) => isMachine(step) || (isJsonObject(step) && "name" in step));
  return isMachine(document) || (isJsonObject(document) && Array.isArray(document.steps));
}

function isMachine(value: Json): boolean {
  return isJsonObject(value) && value.kind === "StateMachine";
}

export function readDocument(value: Json): FlujoDocument {
  const findings: Finding[] = [];
  if (Array.isArray(value)) {
    const steps = readSteps(findings, value, []);
    return { name: undefined, fields: {}, body: bodyOf(steps), findings, ...partAt([]) };
  }
  if (isMachine(value)) {
    const shape = readShape(machineDocumentSchema, partialMachineDocument, value);
    findings.push(...shape.findings);
    const { kind: _kind, name, start_state, end_states, states, transitions, ...fields } = shape.value ?? {};
    const part: Part = { path: [], at: (...path) => shape.locate(path) };
    const machine = machineOf(findings, { name, start_state, end_states, states, transitions }, value, part);
    return { name, fields, body: { machine }, findings, ...part };
  }
  const shape = readShape(stepsDocumentSchema, partialStepsDocument, value);
  findings.push(...shape.findings);
  const { name, steps = [], ...fields } = shape.value ?? {};
  const part: Part = { path: [], at: (...path) => shape.locate(path) };
  return { name, fields, body: bodyOf(readSteps(findings, steps, part.at("steps"))), findings, ...part };
}

/** A file whose only step is a machine is that machine. */
function bodyOf(steps: readonly FlujoStep[]): FlujoDocument["body"] {
  const [only, ...more] = steps;
  return only?.machine !== undefined && more.length === 0 ? { machine: only.machine } : { steps };
}

function partAt(path: DocumentPath): Part {
  return { path, at: (...inside) => [...path, ...inside] };
}

/** Reads a part by its own schema, under the name that messages call it by. */
function readPart<T>(
  findings: Finding[],
  schema: z.ZodObject,
  partial: z.ZodType<T>,
  value: Json,
  { path, called }: { readonly path: DocumentPath; readonly called: string },
): { readonly fields: T | undefined } & Part {
  const shape = readShape(z.strictObject({ [called]: schema }), z.strictObject({ [called]: partial.optional() }), {
    [called]: value,
  });
  const at = (...inside: DocumentPath): DocumentPath => [...path, ...shape.locate([called, ...inside]).slice(1)];
  for (const finding of shape.findings) findings.push({ ...finding, path: [...path, ...finding.path.slice(1)] });
  const read: unknown = shape.value?.[called];
  const fields = partial.safeParse(read);
  return { fields: fields.success ? fields.data : undefined, path, at };
}

function readSteps(findings: Finding[], steps: readonly Json[], path: DocumentPath): readonly FlujoStep[] {
  return steps.flatMap((value, index) => {
    const step = readStep(findings, value, [...path, index], `step ${index + 1}`);
    return step === undefined ? [] : [step];
  });
}

function readStep(findings: Finding[], value: Json, path: DocumentPath, position: string): FlujoStep | undefined {
  const own = isJsonObject(value) && typeof value.name === "string" ? value.name : position;
  const called = own === "" ? position : own;
  if (isMachine(value)) {
    const { fields = {}, ...part } = readPart(findings, machineSchema, partialMachine, value, { path, called });
    return {
      name: called,
      fields: { kind: "StateMachine" },
      machine: machineOf(findings, fields, value, part),
      ...part,
    };
  }
  const { fields, ...part } = readPart(findings, stepSchema, partialStep, value, { path, called });
  return fields === undefined ? undefined : { name: called, fields, ...part };
}

function machineOf(
  findings: Finding[],
  { name, start_state: start, end_states, states = {}, transitions = [] }: Omit<MachineFields, "kind" | "description">,
  whole: Json,
  part: Part,
): FlujoMachine {
  const read = Object.entries(states).map(
    ([state, value]) => [state, readState(findings, state, value, part)] as const,
  );
  const written = isJsonObject(whole) ? whole.states : undefined;
  const listed = typeof end_states === "string" ? [end_states] : (end_states ?? []);
  return {
    name,
    start,
    ends: listed.map((end, index) => ({
      name: end,
      path: typeof end_states === "string" ? part.at("end_states") : part.at("end_states", index),
    })),
    states: new Map(read),
    names: new Set(isJsonObject(written) ? Object.keys(written) : []),
    transitions,
    ...part,
  };
}

/** A state is an object with steps, or the list of its steps. */
function readState(findings: Finding[], name: string, value: Json, machine: Part): FlujoState {
  const path = machine.at("states", name);
  if (Array.isArray(value)) return { name, steps: readSteps(findings, value, path), ...partAt(path) };
  const { fields = {}, ...part } = readPart(findings, stateSchema, partialState, value, { path, called: name });
  const { steps = [], outcome } = fields;
  return {
    name,
    steps: readSteps(findings, steps, part.at("steps")),
    ...(outcome === undefined ? {} : { outcome }),
    ...part,
  };
}
