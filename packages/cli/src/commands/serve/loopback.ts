/** An address that only this machine reaches. */
export interface LoopbackAddress {
  /** As a socket takes it, such as `127.0.0.1` or `::1`. */
  readonly host: string;
  readonly port: number;
}

const LOOPBACK = /^(127(?:\.\d{1,3}){3}|localhost|\[::1\]):(\d{1,5})$/;

/** Parses `<host>:<port>`; undefined if it is not on the loopback interface. */
export function parseLoopback(text: string): LoopbackAddress | undefined {
  const [, host = "", digits = ""] = LOOPBACK.exec(text) ?? [];
  const port = Number(digits);
  const inRange = host.split(".").every((part) => !/^\d+$/.test(part) || Number(part) <= 255);
  if (host === "" || port > 65_535 || !inRange) return undefined;
  // A hosts file may point the name elsewhere.
  return { host: host === "localhost" ? "127.0.0.1" : host.replace(/^\[|\]$/g, ""), port };
}

/** Whether the Host header of a request names a loopback address: else a page of a foreign name reads it (DNS rebinding). */
export function isLoopbackHost(header: string | undefined): boolean {
  if (header === undefined) return false;
  return parseLoopback(/:\d+$/.test(header) ? header : `${header}:80`) !== undefined;
}
