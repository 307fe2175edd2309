// `npm run build`: sets up what is missing and compiles the packages.
import { build, install } from "./setup.mjs";

build(install());
