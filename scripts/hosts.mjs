// `npm run hosts [-- host…]`: installs pinned versions of real hosts on demand and drives them. CI never needs it.
import { join } from "node:path";
import { become, build, install, root } from "./setup.mjs";

const node = install();
build(node);
become(node, [join(root, "test/hosts-lab/main.mjs"), ...process.argv.slice(2)]);
