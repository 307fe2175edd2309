import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

/** A Chromium of this machine: the one CHROMIUM names, else one on the PATH; undefined where there is none. */
export function findBrowser(): string | undefined {
  const named = process.env.CHROMIUM;
  if (named !== undefined && named !== "") return named;
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  return ["chromium", "chromium-browser", "google-chrome"]
    .flatMap((name) => folders.map((folder) => join(folder, name)))
    .find((file) => existsSync(file));
}

/** Not a name is resolved, nothing is sent, and nothing is asked of the desktop. */
const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
  "--hide-scrollbars",
  "--host-resolver-rules=MAP * ~NOTFOUND",
  "--virtual-time-budget=10000",
];

/** What a page is once its own scripts have run, as HTML. */
export function dumpPage(browser: string, page: string, flags: readonly string[] = []): string {
  const folder = mkdtempSync(join(tmpdir(), "sluice-browser-"));
  try {
    const file = join(folder, "page.html");
    writeFileSync(file, page);
    const args = [...FLAGS, ...flags, `--user-data-dir=${join(folder, "profile")}`, "--dump-dom", `file://${file}`];
    const { stdout, status, error } = spawnSync(browser, args, {
      encoding: "utf8",
      timeout: 90_000,
      killSignal: "SIGKILL",
      maxBuffer: 64_000_000,
      stdio: ["ignore", "pipe", "ignore"],
    });
    if (error !== undefined) throw error;
    if (status !== 0) throw new Error(`the browser ended with ${status}`);
    return stdout;
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
