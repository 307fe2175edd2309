import { resolve } from "node:path";
import type { JsonObject } from "@sluice/core";
import { type Diagnostic, renderSarif } from "@sluice/workflows";
import type { CommandContext } from "../../command-context.ts";
import { ownVersion } from "../../options.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { usageError, write } from "../../output/output.ts";
import { workspaceOf } from "../../project/project-paths.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import type { CommonFlags } from "../../runs/run-flags.ts";
import { checkedLines, countOf, readChecked, relativeTo } from "./checked.ts";
import { type Examined, proveAll, simulateFile, tryOnRuns } from "./examine.ts";

export type CheckFlags = CommonFlags & {
  readonly sarif?: boolean;
  readonly property?: readonly string[];
  /** A file of outcomes. */
  readonly simulate?: string;
  /** The number of runs; true for the default. */
  readonly againstRuns?: number | true;
  readonly trust?: boolean;
  readonly config?: boolean;
};

/** `sluice check`: what is wrong or doubtful about workflows. Nothing is called or written. */
export async function check(context: CommandContext, names: readonly string[], flags: CheckFlags): Promise<number> {
  const { terminal, here } = context;
  const { property: properties = [], simulate, againstRuns, outputFormat } = flags;
  const asked = [...(properties.length > 0 ? ["--property"] : []), ...(simulate === undefined ? [] : ["--simulate"])];
  if (againstRuns !== undefined) asked.push("--against-runs");
  if (flags.sarif === true && asked.length > 0) throw usageError(`--sarif has mistakes only; leave out ${asked[0]}`);
  const root = workspaceOf(flags, here);
  const projects = projectsHere(flags, context);
  const checked = await readChecked(names, projects, root);
  const [one, ...others] = checked;
  if (asked.length > 0 && (one === undefined || others.length > 0))
    throw usageError(`${asked[0]} needs one workflow, not ${checked.length}: name it`);

  const diagnostics = checked.flatMap((each) => each.diagnostics);
  if (flags.sarif === true) {
    terminal.out(`${JSON.stringify(renderSarif(relativeTo(root, diagnostics), ownVersion()), null, 2)}\n`);
    return exitOf(diagnostics, []);
  }
  const examined: Examined[] = [];
  if (one?.spec !== undefined && asked.length > 0) {
    examined.push(...proveAll(one.spec, properties));
    if (simulate !== undefined) examined.push(await simulateFile(one.spec, resolve(here, simulate)));
    if (againstRuns !== undefined) {
      const runs = againstRuns === true ? DEFAULT_RUNS : againstRuns;
      examined.push(await tryOnRuns(one.spec, await projects.place(), runs));
    }
  }
  const [errors, warnings] = [countOf(diagnostics, "error"), countOf(diagnostics, "warning")];
  const shown = relativeTo(here, diagnostics);
  write(outputFormat, terminal, {
    json: {
      workflows: checked.length,
      errors,
      warnings,
      diagnostics: shown.map((diagnostic) => ({ ...diagnostic })),
      ...jsonOf(examined),
    },
    text: () => [
      ...(checked.length === 0 ? NO_WORKFLOWS : checkedLines(checked, here)),
      ...examined.flatMap(({ lines }) => ["", ...lines]),
    ],
  });
  return exitOf(diagnostics, examined);
}

const NO_WORKFLOWS = [
  "There are no workflows in .sluice/workflows/. Name a file to check it, or write one to start from: sluice init --workflow",
];

/** Runs that a trial looks at. */
const DEFAULT_RUNS = 20;

function jsonOf(examined: readonly Examined[]): JsonObject {
  const properties = examined.flatMap(({ json }) => ("property" in json ? [json.property] : []));
  const others = examined.filter(({ json }) => !("property" in json)).map(({ json }) => json);
  return Object.assign({}, ...others, properties.length === 0 ? {} : { properties });
}

function exitOf(diagnostics: readonly Diagnostic[], examined: readonly Examined[]): number {
  return countOf(diagnostics, "error") === 0 && examined.every(({ holds }) => holds) ? EXIT.completed : EXIT.failed;
}
