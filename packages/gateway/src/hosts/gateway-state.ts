import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";

/** How installed hooks reach the gateway of a workspace. Whoever reads it can act as the run's agent. */
export interface GatewayState {
  readonly url: string;
  readonly token: string;
  /** Proves to a hook that an answer is the gateway's. Never sent. */
  readonly secret: string;
  readonly pid: number;
}

/** The file in a store's folder that names the gateway; installed hooks look for it at `.sluice/store`. */
export function gatewayStateFile(store: string): string {
  return join(store, "gateway.state");
}

/** Written with one value a line, since a shell script reads it. Only the user can read it. */
export function writeGatewayState(file: string, { url, token, secret, pid }: GatewayState): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}.tmp`;
  rmSync(draft, { force: true });
  const descriptor = openSync(draft, "wx", 0o600);
  try {
    writeFileSync(descriptor, `${[url, token, secret, pid].join("\n")}\n`);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  renameSync(draft, file);
}

/** Undefined if there is no gateway, or if others could have written the file. */
export function readGatewayState(file: string): GatewayState | undefined {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined || !stats.isFile() || (stats.mode & 0o077) !== 0) return undefined;
  const [url, token, secret, pid] = readFileSync(file, "utf8").split("\n");
  if (url === undefined || token === undefined || secret === undefined || !/^\d+$/.test(pid ?? "")) return undefined;
  return { url, token, secret, pid: Number(pid) };
}

/** Removes the file if it is this gateway's. A gateway that was killed leaves it behind, and hooks then refuse every call. */
export function removeGatewayState(file: string, token: string): void {
  if (readGatewayState(file)?.token === token) rmSync(file, { force: true });
}
