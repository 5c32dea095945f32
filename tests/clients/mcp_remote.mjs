// Tests the server through mcp-remote, the bridge that lends a URL to clients
// which know stdio only. The client in front is version 1 of the TypeScript SDK.
//
//     node mcp_remote.mjs URL
//
// Environment: TOOLCRIB_CLIENTS (see packages.mjs); TOOLCRIB_BEARER, a token
// for the Authorization header.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { converse, main } from "./conversation.mjs";
import { load, program } from "./packages.mjs";

const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = load("@modelcontextprotocol/sdk/client/stdio.js");

const NAME = "mcp-remote";

await main(NAME, ["legacy"], async ({ url, headers }) => {
  // It keeps what it learns about a server, so each run gets a fresh place.
  const home = mkdtempSync(join(tmpdir(), "mcp-remote-"));
  process.once("exit", () => rmSync(home, { recursive: true, force: true }));

  const args = [program("mcp-remote", "mcp-remote"), url.href, "--transport", "http-only"];
  // The value comes from the environment: arguments are for all to see.
  if (headers.Authorization) args.push("--header", "Authorization:${TOOLCRIB_AUTHORIZATION}");
  const env = { ...process.env, MCP_REMOTE_CONFIG_DIR: home, TOOLCRIB_AUTHORIZATION: headers.Authorization ?? "" };
  const client = new Client({ name: NAME, version: "1.0.0" });
  const connection = new StdioClientTransport({ command: process.execPath, args, env, stderr: "pipe" });
  let said = "";
  connection.stderr.on("data", (chunk) => (said = (said + chunk).slice(-2000)));
  try {
    await client.connect(connection);
  } catch (error) {
    error.message += `; mcp-remote said: ${said}`;
    throw error;
  }
  await converse(
    NAME,
    async () => (await client.listTools()).tools,
    (name, args) => client.callTool({ name, arguments: args }),
  );
  await client.close();
});
