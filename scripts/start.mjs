// `npm start [-- args]`: installs and builds if needed, then runs `sluice demo` or `sluice <args>`.
import { join } from "node:path";
import { become, bundle, install, root, usersEnvironment } from "./setup.mjs";

const args = process.argv.slice(2);
const node = install();
bundle(node);
const command = [join(root, "packages/cli/bin/sluice.js"), ...(args.length === 0 ? ["demo"] : args)];
become(node, command, usersEnvironment());
