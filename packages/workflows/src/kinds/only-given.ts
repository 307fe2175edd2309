/** The members that are given, since one that is undefined is not the same as one that is absent. */
export function onlyGiven<T extends object>(members: { readonly [K in keyof T]: T[K] | undefined }): Partial<T> {
  const own: Partial<T> = {};
  for (const name in members) {
    const value = members[name];
    if (value !== undefined) own[name] = value;
  }
  return own;
}
