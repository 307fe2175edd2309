// `npm test`: sets up what is missing, then runs every check on a Node that is new enough.
import { join } from "node:path";
import { become, install, root } from "./setup.mjs";

const node = install();
become(node, [join(root, "scripts/checks.mjs"), ...process.argv.slice(2)]);
