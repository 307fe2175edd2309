import type { AnyPipeline, Json, PipelineMeta, Problem } from "@sluice/core";
import type { PipelineDefinition } from "@sluice/core/host";
import { z } from "zod";
import type { DocumentProperty } from "./check/properties/in-documents.ts";
import type { DocumentPath } from "./diagnostic.ts";
import type { Finding } from "./read/shape.ts";
import type { SourceFile } from "./read/source.ts";

/** A kind of workflow file. */
export interface WorkflowFormat {
  readonly name: "statewright" | "flujo" | "markdown";
  /** Whether a document is of this format, by its content. */
  recognizes(document: Json): boolean;
  read(source: SourceFile, beside: FilesBeside): WorkflowReading | Promise<WorkflowReading>;
}

/** The files beside a document. What is read becomes one of the files of the workflow. */
export interface FilesBeside {
  /** The names in the document's folder. */
  list(): Promise<readonly string[]>;
  /** The text of a file, by its path relative to the document's folder, and the name that diagnostics show. Throws if it cannot be read. */
  read(path: string): Promise<{ readonly file: string; readonly text: string }>;
}

/** A document that was checked by itself. What it names in other files is loaded next, then it is compiled. */
export interface WorkflowReading {
  /** The id of its pipeline. */
  readonly id: string;
  readonly findings: readonly Finding[];
  /** The workflows that it invokes, as it writes them. */
  readonly references: readonly WorkflowReference[];
  /** What has to hold on every path. */
  readonly properties?: readonly DocumentProperty[];
  /** Facts that the format keeps beside the pipeline. */
  readonly meta?: WorkflowMeta;
  /** Compiles it; `workflows` has the pipelines of its references by what it writes. */
  compile(workflows: ReadonlyMap<string, AnyPipeline>): WorkflowCompilation;
}

export interface WorkflowReference {
  /** A name or a relative path. */
  readonly name: string;
  readonly path: DocumentPath;
  /** The file, if it is not the document but one that belongs to it. */
  readonly source?: SourceFile;
}

/** Facts about a workflow for people and reports. */
export type WorkflowMeta = PipelineMeta;

export type FindingAt = Pick<Finding, "path" | "source" | "what" | "offset" | "length">;

export interface WorkflowCompilation {
  /** Absent if the document has mistakes that leave nothing to compile. */
  readonly definition?: PipelineDefinition;
  /** Mistakes that appear when compiling. */
  readonly findings: readonly Finding[];
  /** Where in the document a problem of the definition is. */
  locate(problem: Problem): FindingAt;
}

/** The input of a run of a workflow file. */
export interface WorkflowInput {
  /** What the run is to do: `{{ctx.task}}`. */
  readonly task?: string;
  /** Whatever else the file's templates read. */
  readonly [key: string]: Json | undefined;
}

/** Its schema: the `input` of the pipeline of every document. */
export const runInput = z.looseObject({ task: z.string().describe("What the run is to do.").optional() });
