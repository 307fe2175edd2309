// `npm run bench [-- args]`: installs and builds if needed, then measures the built packages.
import { join } from "node:path";
import { become, bundle, install, root } from "./setup.mjs";

const node = install();
bundle(node);
become(node, [join(root, "bench/main.ts"), ...process.argv.slice(2)]);
