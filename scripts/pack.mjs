// `npm run pack`: writes a tarball of each package, to install where there is no registry that has them.
// `-- --to <folder>` writes them there; `-- --check` also installs them with npm, pnpm and yarn, and uses what is installed.
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { become, build, install, pnpm, root, tool } from "./setup.mjs";

const { values } = parseArgs({ options: { to: { type: "string" }, check: { type: "boolean", default: false } } });
const folder = resolve(values.to ?? join(root, "packed"));
const node = install();
build(node);
mkdirSync(folder, { recursive: true });
for (const name of readdirSync(folder)) if (/^sluice-.*\.tgz$/.test(name)) rmSync(join(folder, name));
pnpm(["--recursive", "--filter", "./packages/*", "--silent", "pack", "--pack-destination", folder]);
for (const name of readdirSync(folder).sort()) process.stdout.write(`${join(relative(process.cwd(), folder), name)}\n`);
if (values.check) {
  process.env.SLUICE_TEST_PACKED = folder;
  process.env.SLUICE_TEST_INSTALLS = "all";
  become(node, [tool("vitest/vitest.mjs"), "run", "test/packages/packed.test.ts", "--reporter=verbose"]);
}
