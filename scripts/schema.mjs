// `npm run schema`: writes the JSON Schema of workflow files, after a change of them that is meant.
import { become, install, tool } from "./setup.mjs";

become(install(), [tool("vitest/vitest.mjs"), "run", "test/packages/workflow-schema.test.ts", "--update"]);
