// Tests the server with version 1 of the TypeScript SDK, which knows the legacy
// era only.
//
//     node ts_v1.mjs URL
//     node ts_v1.mjs -- COMMAND ARGUMENT..
//
// Environment: TOOLCRIB_CLIENTS (see packages.mjs); TOOLCRIB_BEARER, a token
// for the Authorization header.

import { checkEra, converse, main } from "./conversation.mjs";
import { load } from "./packages.mjs";

const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = load("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = load("@modelcontextprotocol/sdk/client/streamableHttp.js");

const NAME = "ts-v1";

await main(NAME, ["legacy"], async (options) => {
  const client = new Client({ name: NAME, version: "1.0.0" });
  const connection = transport(options);
  // Version 1 tells the negotiated version to its transport only.
  let version;
  connection.setProtocolVersion = chained(connection.setProtocolVersion, connection, (text) => (version = text));
  await client.connect(connection);
  checkEra(options, version);
  await converse(
    NAME,
    async () => (await client.listTools()).tools,
    (name, args) => client.callTool({ name, arguments: args }),
  );
  await client.close();
});

function transport({ url, command: [command, ...args], headers }) {
  return url
    ? new StreamableHTTPClientTransport(url, { requestInit: { headers } })
    : new StdioClientTransport({ command, args, env: { ...process.env } });
}

function chained(method, owner, listener) {
  return (text) => {
    listener(text);
    method?.call(owner, text);
  };
}
