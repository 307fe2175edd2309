import type { JsonObject } from "@sluice/core";
import type { HostName } from "../host-names.ts";

/**
 * What was proven about a host, from strongest to weakest: `hard` refuses what the gate did not allow, `guarded` asks the gate
 * before what its hooks see, `advisory` promises nothing.
 */
export type HostClass = "hard" | "guarded" | "advisory";

/** How a class is reached. */
export type HostForm = "gateway tools only" | "inverted default" | "hooks";

/** What a host is started with. */
export interface LaunchRequest {
  /** The gateway's address, for example http://127.0.0.1:4711. */
  readonly url: string;
  readonly token: string;
  /** The folder that the agent works in: absolute, links resolved. */
  readonly workspace: string;
  /** A folder of this run only, outside the workspace, that no one else can read. */
  readonly folder: string;
  readonly mode: "hard" | "guarded";
  /** Class hard with the host's own tools instead of the gateway's. Only Claude Code has it. */
  readonly native?: boolean;
  /** The name of the gateway's MCP server at the host: one that no project can know before. */
  readonly server: string;
  /** Names of the gateway's tools. */
  readonly tools: readonly string[];
  /** The first prompt of the session, unless `args` has a prompt. */
  readonly task?: string;
  /** Further arguments of the host. */
  readonly args: readonly string[];
  /** The version that the host reports. */
  readonly version?: string | undefined;
  /** The class that doctor proved for this version and this way to start it. */
  readonly proven?: HostClass | undefined;
  /** Folders and settings of the user that a plan refers to. */
  readonly user: UserPlaces;
  /** Command lines of the hooks that talk to this gateway, for all hosts but opencode. */
  readonly hookCommand?: (event: string) => string;
  /** The source of the opencode plugin that talks to this gateway. */
  readonly plugin?: string;
}

export interface UserPlaces {
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Reads a settings file of the user: JSON, comments allowed. Undefined if there is none or it cannot be read. */
  read(path: string): JsonObject | undefined;
  exists(path: string): boolean;
  /** Whether root alone can change what is at this path, and all folders around it. */
  isOfRoot?(path: string): boolean;
}

/** A file that a plan needs. Only the user can read it. */
export interface PlannedFile {
  readonly path: string;
  readonly text: string;
}

/** How a host is started: data, so that it can be shown, compared and tested without the host. */
export interface LaunchPlan {
  readonly host: HostName;
  readonly class: HostClass;
  readonly form: HostForm;
  /** The program, looked up on the PATH. */
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** Variables that are set, or removed where the value is undefined. The token is only here and in `files`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly files: readonly PlannedFile[];
  /** Links in the private folder to files of the user that the host needs, such as its login. */
  readonly links: readonly { readonly path: string; readonly target: string }[];
  /** What of the user's and the project's configuration has no effect, in words. */
  readonly ignores: readonly string[];
  /** What the class does not cover, and why it is not the one that was asked for, in words. */
  readonly notes: readonly string[];
}

/** The part of a plan that a host decides. */
export type HostPlan = Pick<LaunchPlan, "form" | "args" | "env" | "files" | "ignores" | "notes"> &
  Partial<Pick<LaunchPlan, "links">> & {
    /** Why the class is not reached with the configuration of the user or the project. */
    readonly weaker?: string;
    /** The class that is reached instead; default: `guarded`. */
    readonly atMost?: HostClass;
  };

/** A host: how it is found, which versions were measured, and how it is started. */
export interface Host {
  readonly name: HostName;
  /** The name that people know. */
  readonly title: string;
  readonly command: string;
  readonly package: string;
  /** The first and the last version whose behaviour was measured. */
  readonly measured: readonly [from: string, to: string];
  readonly arguments: HostArguments;
  plan(request: LaunchRequest): HostPlan;
  /** The arguments that give a session its first prompt. */
  prompt(task: string, command: string | undefined): readonly string[];
}

/** Which arguments a person may add. Whatever is not listed is refused, since it could lift the class. */
export interface HostArguments {
  /** Options without a value. */
  readonly flags: readonly string[];
  /** Options with a value. */
  readonly values: readonly string[];
  /** Those of `values` that are the prompt. */
  readonly prompts: readonly string[];
  /** Options whose value decides whether they are harmless. */
  readonly checked?: Readonly<Record<string, RegExp>>;
  /** Options that were seen to lift a class, with what they do. */
  readonly refused: Readonly<Record<string, string>>;
  /** First words that are commands of the host and leave the class as it is. They are put before all other arguments. */
  readonly commands: readonly string[];
  /** Whether words without a dash are the prompt. */
  readonly words: boolean;
}

/** Seconds that a host waits for a hook. A person may have to answer meanwhile. */
export const HOOK_SECONDS = 600;
/** What hooks cannot prevent. */
export const SHELL_NOTE =
  "The agent has a shell with your rights: it can read what you can read, and stop the gateway.";

/** How names of the gateway's MCP server begin. */
export const SERVER_NAME = "sluice";
export const TOKEN_VARIABLE = "SLUICE_GATEWAY_TOKEN";

export function jsonFile(path: string, value: JsonObject): PlannedFile {
  return { path, text: `${JSON.stringify(value, null, 2)}\n` };
}
