// `npm run api`: writes the public types of every package to docs/api, after a change of them that is meant.
import { become, build, install, tool } from "./setup.mjs";

const node = install();
build(node);
become(node, [tool("vitest/vitest.mjs"), "run", "test/packages/public-types.test.ts", "--update"]);
