// `npm run build`: sets up what is missing, bundles the packages and writes their declarations.
import { build, install } from "./setup.mjs";

build(install());
