// Tests the server with version 2 of the TypeScript SDK.
//
//     node ts_v2.mjs [--era modern|legacy] URL
//     node ts_v2.mjs [--era modern|legacy] -- COMMAND ARGUMENT..
//
// Environment: TOOLCRIB_CLIENTS (see packages.mjs); TOOLCRIB_BEARER, a token
// for the Authorization header.

import { checkEra, converse, main } from "./conversation.mjs";
import { load } from "./packages.mjs";

const { Client, StreamableHTTPClientTransport } = load("@modelcontextprotocol/client");
const { StdioClientTransport } = load("@modelcontextprotocol/client/stdio");

const NAME = "ts-v2";

await main(NAME, ["modern", "legacy"], async (options) => {
  // "auto" asks `server/discover` and falls back, as a careful client does.
  const mode = options.era === "modern" ? "auto" : "legacy";
  const client = new Client({ name: NAME, version: "1.0.0" }, { versionNegotiation: { mode } });
  await client.connect(transport(options));
  checkEra(options, client.getNegotiatedProtocolVersion());
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
