import { userInfo } from "node:os";
import { messageOf } from "@sluice/core";

/** Who sits here, for the record of who answered or cancelled. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch (thrown) {
    // A user id without an account, as containers have.
    return `user ${process.getuid?.() ?? `unknown (${messageOf(thrown)})`}`;
  }
}
