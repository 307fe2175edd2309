import type { IncomingMessage, ServerResponse } from "node:http";

/** What answers requests to one path. The token, Host, Origin and size of a request are checked before it is called. */
export interface Route {
  readonly path: string;
  handle(req: IncomingMessage, body: Buffer, res: ServerResponse): Promise<void>;
}
