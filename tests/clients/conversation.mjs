// The conversation that each Node client has with the server.
//
// A client program gives two functions, `listTools` and `callTool`; what is
// asked, and what must come back, stands here, and again in conversation.py.

import { isDeepStrictEqual } from "node:util";

const MODERN = "2026-07-28";
const QUERY = "echo a message back to me";
const SEARCH_KEYS = ["workflow_run_id", "step", "capability_token", "tool_candidates", "message", "instructions"];
const DEADLINE_MS = 60_000;

/** Runs `talk(options)` and turns its outcome into a line and an exit code. */
export async function main(client, eras, talk) {
  const options = parseArguments(eras);
  try {
    await Promise.race([talk(options), deadline()]);
    console.log(`ok ${client} ${options.era}`);
    process.exit(0);
  } catch (error) {
    console.error(`failed ${client} ${options.era}: ${reason(error)}`);
    process.exit(1);
  }
}

function parseArguments(eras) {
  const words = process.argv.slice(2);
  let era = eras[0];
  if (words[0] === "--era") {
    era = words[1];
    words.splice(0, 2);
  }
  if (words[0] === "--") words.shift();
  if (!eras.includes(era) || words.length === 0) {
    console.error(`usage: [--era ${eras.join("|")}] URL, or after -- the command line of a stdio server`);
    process.exit(2);
  }
  const url = /^https?:/.test(words[0]) ? new URL(words[0]) : undefined;
  const token = process.env.TOOLCRIB_BEARER;
  return { era, url, command: words, headers: token ? { Authorization: `Bearer ${token}` } : {} };
}

export function checkEra(options, version) {
  const isModern = version !== undefined && version >= MODERN;
  expect("protocol version is modern", isModern, options.era === "modern", `the server speaks ${version}`);
}

export async function converse(client, listTools, callTool) {
  expect("tools", (await listTools()).map((tool) => tool.name).sort(), ["run_tool", "search_tools"]);

  const found = await callTool("search_tools", { query: QUERY });
  expect("`isError` of search_tools", found.isError ?? false, false, found);
  const search = found.structuredContent;
  const missing = SEARCH_KEYS.filter((key) => !(key in (search ?? {})));
  expect("keys missing in structuredContent of search_tools", missing, [], search);
  const candidates = search.tool_candidates.map((one) => `${one.server_name}/${one.tool_details.name}`);
  expect("`everything/echo` is a candidate", candidates.includes("everything/echo"), true, candidates);

  const words = `hello from ${client}`;
  const call = {
    capability_token: search.capability_token,
    tool_name: "echo",
    server_name: "everything",
    arguments: { message: words },
  };
  const echoed = await callTool("run_tool", call);
  expect("`isError` of run_tool", echoed.isError ?? false, false, echoed);
  const blocks = echoed.content.map((block) => [block.type, block.text]);
  expect("content of run_tool", blocks, [["text", `Echo: ${words}`]]);

  const refused = await callTool("run_tool", call);
  expect("`isError` of run_tool with a used handle", refused.isError, true, refused);
  const code = refused.structuredContent?.error;
  expect("`error` of run_tool with a used handle", code, "INVALID_TOKEN", refused);
}

class Mismatch extends Error {}

export function expect(what, got, wanted, seen) {
  if (isDeepStrictEqual(got, wanted)) return;
  const rest = seen === undefined ? "" : `; ${JSON.stringify(seen)}`;
  throw new Mismatch(`${what}: wanted ${JSON.stringify(wanted)}, got ${JSON.stringify(got)}${rest}`);
}

function deadline() {
  return new Promise((_, reject) => {
    setTimeout(() => reject(new Mismatch(`no end after ${DEADLINE_MS / 1000} s`)), DEADLINE_MS).unref();
  });
}

function reason(error) {
  if (error instanceof Mismatch) return error.message;
  const cause = error?.cause ? ` (${error.cause.message ?? error.cause})` : "";
  return `${error?.name ?? "error"}: ${error?.message ?? error}${cause}`;
}
