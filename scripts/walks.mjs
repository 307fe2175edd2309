// `npm run walks [-- --list <walk> | --json]`: counts the source files, functions and calls of one read call, one grant, …
import { join } from "node:path";
import { become, build, install, root } from "./setup.mjs";

const node = install();
build(node);
become(node, [join(root, "test/walks/main.ts"), ...process.argv.slice(2)]);
