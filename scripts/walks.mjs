// `npm run walks [-- --list <walk> | --json]`: counts the source files, functions and calls of one read call, one grant, …
import { join } from "node:path";
import { become, install, root } from "./setup.mjs";

become(install(), [join(root, "test/walks/main.ts"), ...process.argv.slice(2)]);
