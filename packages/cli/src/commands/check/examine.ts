// What is asked about one workflow beyond its mistakes.

import { readFile } from "node:fs/promises";
import { type JsonObject, type PipelineSpec, parseJson, type RunJournal } from "@sluice/core";
import { messageOf, visible } from "@sluice/core/runtime";
import { count, oneLine } from "@sluice/view/words";
import {
  againstRuns,
  proveProperty,
  readOutcomes,
  readProperty,
  simulate,
  simulationLines,
  trialLines,
  verdictLines,
} from "@sluice/workflows";
import { usageError } from "../../output/output.ts";
import type { ProjectPaths } from "../../project/project-paths.ts";
import { withStore } from "../../runs/lookup.ts";

/** An answer about a workflow. */
export interface Examined {
  /** Whether it is what the user asked for. */
  readonly holds: boolean;
  /** Lines for people, safe to print. */
  readonly lines: readonly string[];
  readonly json: JsonObject;
}

/** Proves properties over all paths. One that cannot be proven does not hold. Throws Validation `usage`. */
export function proveAll(spec: PipelineSpec, properties: readonly string[]): readonly Examined[] {
  return properties.map((text) => {
    const reading = readProperty(spec, text);
    if (!reading.ok) {
      const hint = reading.suggestion === undefined ? "" : `; ${reading.suggestion}`;
      throw usageError(`--property ${JSON.stringify(text)} cannot be used: ${reading.message}${hint}`);
    }
    const proof = proveProperty(spec, reading.property);
    const { verdict } = proof;
    const how = proof.verdict === "violated" ? { path: proof.path.map((step) => ({ ...step })) } : {};
    const why = proof.verdict === "unknown" ? { why: proof.why } : {};
    return {
      holds: verdict === "proven",
      lines: verdictLines(text, proof).map(visible),
      json: { property: { property: reading.property.text, verdict, ...how, ...why } },
    };
  });
}

/** Walks a workflow with the outcomes of a file. Throws Validation `usage` if the file has no list of outcomes. */
export async function simulateFile(spec: PipelineSpec, file: string): Promise<Examined> {
  const { outcomes, faults } = readOutcomes(await jsonIn(file));
  if (faults.length > 0) {
    const lines = faults.map(({ path, message, suggestion }) => {
      const hint = suggestion === undefined ? "" : `; ${suggestion}`;
      return `${path === "" ? "it" : path} ${message}${hint}`;
    });
    throw usageError(`${file} cannot be simulated: ${lines.join(". ")}`);
  }
  const simulation = await simulate(spec, outcomes);
  const { hops, end, waits, fault, context } = simulation;
  return {
    holds: fault === undefined,
    lines: simulationLines(spec, simulation),
    json: {
      simulation: {
        hops: hops.map(({ trace: _trace, rows, ...hop }) => ({ ...hop, rows: rows.map((row) => ({ ...row })) })),
        context,
        ...(end === undefined ? {} : { end: { ...end } }),
        ...(waits === undefined ? {} : { waits: { for: waits.for, state: waits.state } }),
        ...(fault === undefined ? {} : { fault: { ...fault } }),
      },
    },
  };
}

async function jsonIn(file: string) {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (cause) {
    throw usageError(`${file} cannot be read: ${messageOf(cause)}`, { cause });
  }
  const json = parseJson(text);
  if (!json.ok) throw usageError(`${file} is not JSON: ${json.fault.replaceAll(/\s+/g, " ")}`);
  return json.value;
}

/** Tries a workflow on the newest runs of the store. Runs that have no state in common with it are counted only. */
export async function tryOnRuns(spec: PipelineSpec, place: ProjectPaths, most: number): Promise<Examined> {
  const faults: string[] = [];
  const journals = await withStore(place, async (host) => {
    const read: (readonly RunJournal[])[] = [];
    for (const { runId } of await host.list({ limit: most })) {
      try {
        read.push(await host.journal(runId));
      } catch (thrown) {
        // One journal that cannot be read does not hide the others.
        faults.push(`run ${oneLine(runId)} cannot be read: ${oneLine(messageOf(thrown), 1_000)}`);
      }
    }
    return read;
  });
  const all = await againstRuns(spec, journals);
  const trials = all.filter(({ calls, decisions }) => calls.length + decisions > 0);
  const left = all.length - trials.length;
  return {
    holds: true,
    lines: [
      ...trialLines(trials),
      ...(left === 0 ? [] : [`${count(left, "run")} of ${all.length} had nothing in common with this workflow`]),
      ...(journals.length === 0 && faults.length === 0 ? ["there are no runs to try it on"] : []),
      ...faults,
    ],
    json: {
      trials: trials.map(({ calls, routes, ...trial }) => ({
        ...trial,
        calls: calls.map((call) => ({ ...call })),
        routes: routes.map((route) => ({ ...route })),
      })),
      ...(faults.length === 0 ? {} : { unreadable: faults }),
    },
  };
}
