// `npm run golden`: records the golden journals again, with the current command.
import { join } from "node:path";
import { become, bundle, install, root } from "./setup.mjs";

const node = install();
bundle(node);
become(node, ["--disable-warning=ExperimentalWarning", join(root, "test/golden/record.ts"), ...process.argv.slice(2)]);
