/** A message, a request body: 4 MB. */
export const MAX_BODY_BYTES = 4 * 1024 * 1024;
