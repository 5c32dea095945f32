// Tests the server with the command line of the MCP inspector. It starts anew
// for each request, so it cannot test stdio: a handle ends with its server.
//
//     node inspector.mjs [--era modern|legacy] URL
//
// Environment: TOOLCRIB_CLIENTS (see packages.mjs); TOOLCRIB_BEARER, a token
// for the Authorization header.

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { converse, expect, main } from "./conversation.mjs";
import { modernNode, program } from "./packages.mjs";

const NAME = "inspector";

// What it exits with when a tool's result has `isError`.
const TOOL_ERROR = 5;

await main(NAME, ["modern", "legacy"], async ({ era, url, headers }) => {
  // It keeps its settings in the home directory; nobody's own shall count here.
  const home = mkdtempSync(join(tmpdir(), "inspector-"));
  process.once("exit", () => rmSync(home, { recursive: true, force: true }));

  const fixed = [program("@modelcontextprotocol/inspector", "inspector"), "--cli", url.href];
  fixed.push("--transport", "http", "--protocol-era", era, "--format", "json", "--stored-auth-only");
  for (const [name, value] of Object.entries(headers)) fixed.push("--header", `${name}: ${value}`);
  const ask = (...args) => run(modernNode(), [...fixed, ...args], { ...process.env, HOME: home });

  await converse(
    NAME,
    async () => {
      const { code, said, result } = await ask("--method", "tools/list", "--strict");
      expect("exit code of tools/list --strict", code, 0, said);
      return result.tools;
    },
    async (name, args) => {
      const call = ["--method", "tools/call", "--tool-name", name, "--tool-args-json", JSON.stringify(args)];
      const { code, said, result } = await ask(...call);
      expect(`exit code of tools/call ${name}`, code, result.isError ? TOOL_ERROR : 0, said);
      return result;
    },
    // It looks each tool up in the list first.
    false,
  );
});

function run(command, args, env) {
  return new Promise((resolve, reject) => {
    execFile(command, args, { env, maxBuffer: 16 << 20 }, (error, stdout, stderr) => {
      const code = error?.code ?? 0;
      try {
        resolve({ code, said: stderr, result: JSON.parse(stdout).result });
      } catch {
        reject(new Error(`exit ${code}: ${stderr || stdout}`));
      }
    });
  });
}
