/** The state that a function makes of options that the compiler would refuse, as plain JavaScript may give them. */
export function asWritten<S>(make: (options: never) => S, options: object): S {
  const given: { readonly make: (options: object) => S } = Object.assign({ make });
  return given.make(options);
}
