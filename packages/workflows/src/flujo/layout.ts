// The names that the states and steps of a machine have in its pipeline.

import { textsOfKind } from "../kinds/compile.ts";
import { idFor, idsFor } from "../read/names.ts";
import type { Finding } from "../read/shape.ts";
import { chosenTargets } from "./check.ts";
import type { FlujoDocument, FlujoMachine, FlujoState } from "./read-document.ts";
import { type KnownStep, knowStep } from "./step-kinds.ts";
import { readsAnswer, readsInput } from "./templates.ts";

export interface PlacedStep extends KnownStep {
  /** The name of its output upstream; of a stage, that of its state. */
  readonly key: string;
  /** The key of the pipeline that it runs as a child. */
  readonly pipeline: string;
}
export interface PlacedState {
  readonly name: string;
  readonly id: string;
  readonly steps: readonly PlacedStep[];
  /** Its one step is an agent's or of another kind than an import, and the state is that stage. */
  readonly isStage: boolean;
}
export interface Layout {
  /** The states that are entered, in the order of the document. */
  readonly states: readonly PlacedState[];
  readonly findings: readonly Finding[];
  idOf(name: string): string;
  /** A step by its name: of this state, else of any other. */
  stepCalled(name: string, state: PlacedState): PlacedStep | undefined;
}

/** Lays out the states that rows lead to. `id` is that of the pipeline. */
export function layOut(
  document: FlujoDocument,
  machine: FlujoMachine,
  reached: ReadonlySet<string>,
  id: string,
): Layout {
  const ends = machine.ends.map(({ name }) => name);
  const ids = idsFor(new Set([...machine.states.keys(), ...ends]));
  const idOf = (name: string): string => ids.get(name) ?? name;
  const findings: Finding[] = [];
  const outputs = new Set(ids.values());
  // A pipeline cannot run another one of its own id.
  const pipelines = new Set([id, ...Object.keys(document.fields.imports ?? {}).map(idFor)]);
  const states: PlacedState[] = [];
  for (const state of machine.states.values()) {
    if (ends.includes(state.name)) continue;
    const known = knownSteps(document, state, findings);
    if (!reached.has(state.name)) continue;
    const stateId = idOf(state.name);
    const [only, ...more] = known;
    // A stage in which the run starts has the run's input, where nothing comes from a state before it.
    const isStage =
      only !== undefined &&
      more.length === 0 &&
      only.save.length === 0 &&
      isSingle(only) &&
      !(state.name === machine.start && textsOfStep(only).some(({ text }) => readsInput(text)));
    for (const { use, step } of known) {
      if (use.kind !== "other" || use.given.kind !== "router" || isStage) continue;
      const message =
        more.length > 0
          ? `${JSON.stringify(step.name)} is a router, which is the only step of its state.`
          : `${JSON.stringify(step.name)} is a router in the start state, where no state before it has given anything to read.`;
      findings.push({ severity: "error", rule: "router-step", message, path: step.path, what: "key" });
    }
    const steps = known.map((step): PlacedStep => {
      const { use } = step;
      const key = isStage ? stateId : free(outputs, step.step.name, stateId);
      const pipeline = use.kind === "import" ? idFor(use.alias) : free(pipelines, `${stateId}-${key}`, stateId);
      return { ...step, key, pipeline };
    });
    states.push({ name: state.name, id: stateId, steps, isStage });
  }
  findings.push(...forgedAnswers(machine, states));
  const called = (name: string, among: readonly PlacedStep[]): PlacedStep | undefined =>
    among.find(({ step }) => step.name === name);
  return {
    states,
    findings,
    idOf,
    stepCalled: (name, state) =>
      called(name, state.steps) ??
      called(
        name,
        states.flatMap(({ steps }) => steps),
      ),
  };
}

/** A router's model writes the input of the state that it chooses, so it could write what a person has answered before. */
function forgedAnswers(machine: FlujoMachine, states: readonly PlacedState[]): readonly Finding[] {
  const chosen = new Set(machine.states.values().flatMap((state) => chosenTargets(state).map(({ name }) => name)));
  return states.flatMap((state): readonly Finding[] => {
    if (!chosen.has(state.name)) return [];
    return state.steps.flatMap(({ step, use }): readonly Finding[] => {
      const { prompt, message, input } = step.fields;
      const texts = [prompt, message, ...(typeof input === "string" ? [input] : Object.values(input ?? {}))];
      const all = [...texts, ...(use.kind === "other" ? textsOfKind(use.given).map(({ text }) => text) : [])];
      if (!all.some((text) => typeof text === "string" && readsAnswer(text))) return [];
      const why = `A router leads to ${JSON.stringify(state.name)}, and its model could write the answer that "resume_input" reads.`;
      const suggestion = 'save the answer with "sink_to", and read it from the context';
      return [{ severity: "error", rule: "router-step", message: why, suggestion, path: step.path, what: "key" }];
    });
  });
}

/** Whether a step can be a state by itself. */
function isSingle({ use }: KnownStep): boolean {
  return use.kind === "agent" || use.kind === "other";
}

/** The texts of such a step that may hold templates. */
function textsOfStep({ use }: KnownStep): readonly { readonly text: string }[] {
  if (use.kind === "agent") return [{ text: use.agent.prompt }];
  return use.kind === "other" ? textsOfKind(use.given) : [];
}

function knownSteps(document: FlujoDocument, state: FlujoState, findings: Finding[]): readonly KnownStep[] {
  const names = new Set<string>();
  return state.steps.flatMap((step) => {
    if (names.has(step.name)) {
      const message = `Two steps of ${JSON.stringify(state.name)} are called ${JSON.stringify(step.name)}.`;
      findings.push({ severity: "error", rule: "duplicate-step", message, path: step.at("name") });
    }
    names.add(step.name);
    const one = knowStep(document, step);
    findings.push(...one.findings);
    return one.known === undefined ? [] : [one.known];
  });
}

/** An id that is not taken yet: of the name, else with the state's before it, else with a number. */
function free(taken: Set<string>, name: string, state: string): string {
  const own = idFor(name);
  const candidates = [own, idFor(`${state}-${own}`)];
  let id = candidates.find((candidate) => !taken.has(candidate));
  for (let number = 2; id === undefined; number += 1) {
    const numbered = `${own.slice(0, 56)}-${number}`;
    if (!taken.has(numbered)) id = numbered;
  }
  taken.add(id);
  return id;
}
