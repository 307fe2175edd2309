import { digestOf } from "@sluice/core/runtime";
import type { CommandContext } from "../command-context.ts";
import { digestCode, findCode } from "../project/code.ts";
import type { FoundPipeline } from "../project/pipelines.ts";
import { createProjects, type Projects } from "../project/projects.ts";
import { createTrust } from "../project/trust.ts";

/** A project folder in one version of its code and its trust. */
export interface KnownProject {
  /** Changes with the code and the trust; undefined if these are unknown, and so nothing of the project may be kept. */
  readonly version: string | undefined;
  readonly projects: Projects;
  /** Loads each pipeline once. */
  remember(key: string, load: () => Promise<FoundPipeline>): Promise<FoundPipeline>;
}

/** Project folders whose code is loaded once, and again when it or its trust changed. `store` is that of the runs. */
export function createProjectCache(store: string, context: CommandContext): (root: string) => KnownProject {
  const known = new Map<string, KnownProject>();
  return (root) => {
    const version = versionOf(root, context);
    const found = known.get(root);
    if (found !== undefined && version !== undefined && found.version === version) return found;
    const project = createProject(store, context, version);
    known.set(root, project);
    return project;
  };
}

function createProject(store: string, context: CommandContext, version: string | undefined): KnownProject {
  const loaded = new Map<string, Promise<FoundPipeline>>();
  return {
    version,
    // No user is asked: what was not trusted before is not loaded.
    projects: createProjects({ store }, context, undefined),
    remember: async (key, load) => {
      const known = loaded.get(key) ?? load();
      loaded.set(key, known);
      try {
        return await known;
      } catch (thrown) {
        // It may be fixed by the next time.
        loaded.delete(key);
        throw thrown;
      }
    },
  };
}

/** What the code of a folder is now, and whether it is trusted; undefined if that cannot be read, for example because of a link. */
function versionOf(root: string, { env }: CommandContext): string | undefined {
  try {
    const code = findCode(root);
    const trust = createTrust(env);
    const digests = trust.codeOf(root, digestCode(code));
    return digestOf({ files: [...digests], unread: [...code.unread], trust: trust.stateOf(root, digests).kind });
  } catch {
    // Loading the code throws the same error, which is reported.
    return undefined;
  }
}
