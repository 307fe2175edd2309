import { isAbsolute } from "node:path";
import { SluiceError } from "@sluice/core";
import type { HostName } from "../host-names.ts";
import type { HookProof } from "./answer-proof.ts";
import { HOOK_EVENTS } from "./hook-events.ts";

export interface LauncherOptions {
  readonly host: HostName;
  /** The gateway's address: `http://127.0.0.1:<port>`. */
  readonly url: string;
  readonly token: string;
  readonly proof: HookProof;
  /** After so many seconds the answer is a refusal. Has to be below the time limit that the host has for its hooks. */
  readonly seconds: number;
}

/** Events whose hooks decide: without an answer of the gateway they refuse. Other hooks say nothing then. */
const DECIDING_EVENTS: ReadonlySet<string> = new Set(Object.values(HOOK_EVENTS).flatMap(({ decide }) => decide));
const DECIDING = [...DECIDING_EVENTS].join("|");

/** What a hook does if the file that it runs is missing or ends in any way but well: some hosts let the call run then. */
export function refusal(decides: boolean): string {
  return decides ? "{ echo 'The permission gate gave no answer.' >&2; exit 2; }" : ":";
}

/** Of the programs that a script runs: another one of the project could come first on the host's. */
const OWN_PATH = "PATH=/usr/bin:/bin:/usr/local/bin:/opt/homebrew/bin; export PATH";

/**
 * The text of a hook command: a shell script that gets the event's name as its argument and the payload on its standard input. It
 * prints the gateway's answer, or refuses with exit code 2 and a text on standard error, which all hosts read as a refusal. It has
 * the token and the secret of the run, so only the user may read it.
 */
export function launcherScript({ host, url, token, proof, seconds }: LauncherOptions): string {
  checkHook({ url, token, proof, seconds });
  return `#!/bin/sh
# Asks the permission gate of Sluice about one event of ${host}. No answer means no.
${OWN_PATH}
unset BASH_ENV ENV CURL_HOME CURL_CA_BUNDLE http_proxy all_proxy ALL_PROXY
event=$1
secret=${proof.secret}
deny() {
  case $event in ${DECIDING}) ;; *) exit 0 ;; esac
  echo "The permission gate gave no answer ($1), so this is refused. Start it again with: sluice gateway run ${host}" >&2
  exit 2
}
sum() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }
case $event in '' | *[!A-Za-z]*) event=PreToolUse; deny "the hook names no event" ;; esac
command -v curl >/dev/null || deny "curl is not installed"
nonce=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n')
[ "\${#nonce}" -eq 32 ] || deny "no random number"
out=$(curl -q -s -f --noproxy '*' --max-time ${seconds} -X POST -T - -K /dev/fd/3 "${url}/hook/${host}?event=$event" 3<<HEADERS
header = "Authorization: Bearer ${token}"
header = "Content-Type: application/json"
header = "Expect:"
header = "X-Sluice-Nonce: $nonce"
HEADERS
) || deny "status $?"
answer=\${out%#*}
answer=\${answer%?}
proof=$(printf '%s\\n%s\\n%s\\n%s\\n' "$secret" "$nonce" "$answer" "$secret" | sum) || deny "no checksum"
[ "\${#proof}" -gt 64 ] && [ "$out" = "$answer
#\${proof%% *}" ] || deny "the answer is not from the gateway"
printf '%s\\n' "$answer"
`;
}

/**
 * The text of a hook command for the time after a gateway: refuses the calls of the session that drove its run, and says nothing about
 * those of others. It removes itself when the session ends.
 */
export function boundScript(host: HostName, session: string): string {
  return `#!/bin/sh
# Refuses the calls of a session of ${host} that drove a run of Sluice, whose gateway has ended.
${OWN_PATH}
LC_ALL=C; export LC_ALL
payload=$(cat)
${/^[\w.:-]+$/.test(session) ? exceptOthers(session) : "# Its id could be escaped in several ways, so every session counts as this one."}
case $1 in ${DECIDING}) ;; *) exit 0 ;; esac
echo "${boundText(host)}" >&2
exit 2
`;
}

function exceptOthers(session: string): string {
  return `case $payload in
  *'"${session}"'*) case $1 in SessionEnd | sessionEnd) rm -f "$0" ;; esac ;;
  *'"session_id"'* | *'"sessionId"'*) exit 0 ;;
esac`;
}

function boundText(host: HostName): string {
  return `This session worked on a run of Sluice whose gateway has ended, so its calls stay refused. To continue, start one: sluice gateway --hooks ${host}, with --resume and the run if that is not over. Else end the session.`;
}

/** The command line of a hook, for the file that holds the launcher. The file need not be executable. */
export function launcherCommand(file: string, event: string): string {
  if (!isAbsolute(file) || !/^[A-Za-z]+$/.test(event)) throw invalid("the hook's file or event has an odd name");
  return `/bin/sh '${file.replaceAll("'", `'\\''`)}' ${event} || ${refusal(DECIDING_EVENTS.has(event))}`;
}

/** Throws Validation `hook_launcher_invalid` for what a hook's file could not hold as it is. */
export function checkHook({ url, token, proof, seconds }: Omit<LauncherOptions, "host">): void {
  for (const value of [token, proof.secret]) {
    if (!/^[A-Za-z0-9_-]+$/.test(value)) throw invalid("a token or secret has characters that a script cannot hold");
  }
  if (!/^http:\/\/127\.0\.0\.1:\d+$/.test(url)) throw invalid(`${url} is not an address of the gateway`);
  if (!Number.isSafeInteger(seconds) || seconds < 1) throw invalid("the time limit is not a number of seconds");
}

function invalid(message: string): SluiceError {
  return new SluiceError("Validation", "hook_launcher_invalid", `this hook cannot be written: ${message}`);
}
