// What `npm run hosts` does: [host…] [--class hard|guarded] [--verbose]. Drives real hosts, with a scripted model in place of their
// providers. Installs pinned versions on demand. CI never needs it.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { HOST_NAMES } from "@sluice/gateway";
import { overAcp } from "./acp.mjs";
import { faultsOf, probe } from "./faults.mjs";
import { installHost } from "./install.mjs";
import { walk } from "./walk.mjs";

const args = process.argv.slice(2);
const isVerbose = args.includes("--verbose");
const asked = args.filter((arg) => HOST_NAMES.includes(arg));
const modes = ["hard", "guarded"].filter((mode) => !args.includes("--class") || args.includes(mode));
const hosts = asked.length === 0 ? HOST_NAMES : asked;

// Hosts reach nothing but the loopback interface, where that can be had: they are installed before.
if (process.env.SLUICE_HOSTS_ISOLATED === undefined) {
  for (const host of hosts) installHost(host);
  const inside = ["-c", 'ip link set lo up && exec "$@"', "hosts", process.execPath, ...process.execArgv];
  const canIsolate = spawnSync("unshare", ["-n", "sh", "-c", "ip link set lo up"]).status === 0;
  if (!canIsolate)
    process.stderr.write("hosts: no network namespace can be made here, so hosts can reach the network\n");
  else {
    const env = { ...process.env, SLUICE_HOSTS_ISOLATED: "1" };
    const again = spawnSync("unshare", ["-n", "sh", ...inside, ...process.argv.slice(1)], { stdio: "inherit", env });
    process.exit(again.status ?? 1);
  }
}

const parent = join(process.env.XDG_STATE_HOME ?? join(homedir(), ".local", "state"), "sluice-hosts-lab");
mkdirSync(parent, { recursive: true });
const scratch = mkdtempSync(join(parent, "probes-"));

let passed = 0;
let failed = 0;
const report = (host, mode, name, ok, detail = "") => {
  if (ok) passed += 1;
  else failed += 1;
  process.stdout.write(`${ok ? "ok    " : "FAILED"}  ${host.padEnd(8)} ${mode.padEnd(7)}  ${name}${detail}\n`);
};

for (const host of hosts) {
  const bin = installHost(host);
  if (modes.includes("hard")) for (const [name, ok] of await overAcp(host, bin)) report(host, "hard", name, ok);
  for (const mode of modes) {
    const { checks, log } = await walk(host, mode, bin);
    for (const [name, ok] of checks) report(host, mode, name, ok);
    if (isVerbose) process.stdout.write(`${JSON.stringify(log, null, 2)}\n`);
    const faults = await faultsOf();
    try {
      const env = { ...process.env, PATH: `${bin}:${dirname(process.execPath)}:${process.env.PATH}` };
      const { findings } = await probe({ host, mode, env, scratch, faults: mode === "hard" ? [] : faults.all });
      for (const { canary, outcome, ok } of findings) report(host, mode, canary, ok, `: ${outcome}`);
    } finally {
      await faults.close();
    }
  }
}
rmSync(scratch, { recursive: true, force: true });
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exit(failed === 0 ? 0 : 1);
