import { userInfo } from "node:os";
import { messageOf } from "@sluice/core/runtime";

/** The user's name, for the record of who answered or cancelled. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch (thrown) {
    // A user id without an account, as in containers.
    return `user ${process.getuid?.() ?? `unknown (${messageOf(thrown)})`}`;
  }
}
