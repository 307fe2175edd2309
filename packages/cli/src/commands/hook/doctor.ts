import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "@sluice/core";
import {
  type Examination,
  examineHost,
  HOSTS,
  type HostName,
  hostProofs,
  launcherCommand,
  launcherScript,
  newHookProof,
  opencodePlugin,
  reaches,
  readVersion,
} from "@sluice/gateway";
import { readSettings, refuseInsideRun, stateFolder } from "@sluice/tui/user";
import { table } from "@sluice/view/text";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../output/exit-codes.ts";
import type { OutputFormat } from "../../output/formats.ts";
import { usageError, write } from "../../output/output.ts";

export interface DoctorFlags {
  readonly class: "hard" | "guarded";
  readonly native?: true;
  readonly json?: true;
  readonly outputFormat: OutputFormat;
}

/** Seconds that a hook waits: no person has to answer. */
const HOOK_SECONDS = 20;

/** `sluice hook doctor <host>`: proves what reaches the gate in the version that is installed, and keeps the result. */
export async function doctorHost(context: CommandContext, host: HostName, flags: DoctorFlags): Promise<number> {
  const { env, terminal } = context;
  refuseInsideRun(readSettings(env), "hook doctor");
  const { title, command, package: name } = HOSTS[host];
  const format = flags.json === true ? "json" : flags.outputFormat;
  const native = flags.native === true;
  if (native && host !== "claude") throw usageError(`${title} cannot keep its own tools in class hard`);
  const version = await readVersion(command, { ...env });
  if (version === undefined) {
    write(format, terminal, {
      json: { host, installed: false },
      text: () => [`${title} is not installed: npm install -g ${name}`],
    });
    return EXIT.environment;
  }
  const examination = await examineHost({
    host,
    version,
    mode: flags.class,
    native,
    env: { ...env },
    scratch: join(stateFolder(env), "hosts"),
    hookFiles: ({ url, token, secret }, folder) => {
      const proof = newHookProof(secret);
      const launcher = join(folder, "hook.sh");
      writeFileSync(launcher, launcherScript({ host, url, token, proof, seconds: HOOK_SECONDS }), { mode: 0o600 });
      return {
        hookCommand: (event) => launcherCommand(launcher, event),
        plugin: opencodePlugin({ url, token, proof, seconds: HOOK_SECONDS }),
      };
    },
  });
  hostProofs(stateFolder(env)).write(examination);
  write(format, terminal, {
    json: { ...facts(examination), installed: true },
    items: { key: "findings", each: examination.findings.map((finding) => ({ ...finding })) },
    text: () => linesOf(examination, title),
  });
  return reaches(examination.proven, flags.class) ? EXIT.completed : EXIT.failed;
}

function facts({ host, version, mode, native, proven }: Examination): JsonObject {
  return { host, version: version ?? null, asked: mode, native, proven };
}

function linesOf({ findings, mode, proven, version }: Examination, title: string): readonly string[] {
  const rows = findings.map(({ canary, outcome, ok }) => [ok ? "ok" : "BAD", canary, outcome]);
  const verdict = reaches(proven, mode)
    ? `${title} ${version} is ${proven} on this machine.`
    : `${title} ${version} is not ${mode} on this machine: treat it as ${proven}.`;
  return [...table([["", "CANARY", "OUTCOME"], ...rows]), "", verdict];
}
