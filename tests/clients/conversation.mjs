// The conversation that each Node client has with the server.
//
// A client program gives two functions, `listTools` and `callTool`; what is
// asked, and what must come back, stands here, and again in conversation.py.

import { isDeepStrictEqual } from "node:util";

const MODERN = "2026-07-28";
const QUERY = "echo a message back to me";
const SEARCH_KEYS = ["workflow_run_id", "step", "capability_token", "tool_candidates", "message", "instructions"];
const DEADLINE_MS = 60_000;
// On the surface `gateway`, with everything__echo and time__* eager.
const GATEWAY_TOOLS = [
  "crib__describe_tool",
  "crib__execute_tool",
  "crib__search_tools",
  "everything__echo",
  "time__convert_time",
  "time__get_current_time",
];
const COLD = "everything__get-sum";
const SUM = "The sum of 2 and 3 is 5.";

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

/**
 * The conversation of the surface that `TOOLCRIB_SURFACE` names. `callsUnlisted` tells whether the client calls a tool
 * that is not in the list.
 */
export async function converse(client, listTools, callTool, callsUnlisted = true) {
  const surfaces = { connected, gateway, discovery };
  await surfaces[process.env.TOOLCRIB_SURFACE ?? "connected"](client, listTools, callTool, callsUnlisted);
}

async function connected(client, listTools, callTool) {
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

async function discovery(_client, listTools, callTool) {
  const listed = (await listTools()).map((tool) => tool.name).sort();
  expect("tools", listed, ["execute_tool", "time__get_current_time", "tool_search"]);

  const found = await callTool("tool_search", { query: "everything get-sum", max_results: 3 });
  expect("`isError` of tool_search", found.isError ?? false, false, found);
  const tools = found.structuredContent.tools;
  expect("number of tools", tools.length, 3, tools);
  expect("keys of a tool", Object.keys(tools[0]).sort(), ["description", "input_schema", "name", "score"], tools);
  expect("the best tool", tools[0].name, COLD, tools);
  expect("its schema", tools[0].input_schema.required, ["a", "b"], tools);

  const ran = await callTool("execute_tool", { name: COLD, arguments: { a: 2, b: 3 } });
  expect("`isError` of execute_tool", ran.isError ?? false, false, ran);
  expect("content of execute_tool", ran.content.map((block) => [block.type, block.text]), [["text", SUM]]);

  const refused = await callTool("execute_tool", { name: COLD, arguments: { a: 2 } });
  expect("`isError` with an argument missing", refused.isError, true, refused);
  expect("`error` with an argument missing", refused.structuredContent.error, "INVALID_ARGUMENTS", refused);
  const unknown = await callTool("execute_tool", { name: "everything__get-sums", arguments: {} });
  expect("`error` of an unknown name", unknown.structuredContent.error, "UNKNOWN_TOOL", unknown);
  expect("the nearest name", unknown.structuredContent.hint.includes(COLD), true, unknown);
}

async function gateway(_client, listTools, callTool, callsUnlisted) {
  expect("tools", (await listTools()).map((tool) => tool.name).sort(), GATEWAY_TOOLS);

  const found = await callTool("crib__search_tools", { query: "add two numbers", max_results: 4 });
  expect("`isError` of crib__search_tools", found.isError ?? false, false, found);
  const matches = found.structuredContent.tools;
  expect("number of matches", matches.length, 4, matches);
  expect("keys of a match", Object.keys(matches[0]).sort(), ["description", "name"], matches);
  expect("a cold tool is found", matches.some((one) => one.name === COLD), true, matches);

  const described = await callTool("crib__describe_tool", { names: [COLD, "everything__echo"] });
  expect("`isError` of crib__describe_tool", described.isError ?? false, false, described);
  const schemas = described.structuredContent.tools.map((one) => [one.name, one.inputSchema.required]);
  expect("what is described", schemas, [[COLD, ["a", "b"]], ["everything__echo", ["message"]]]);

  const sum = { a: 2, b: 3 };
  const calls = [["crib__execute_tool", { name: COLD, arguments: sum }]];
  if (callsUnlisted) calls.push([COLD, sum]);
  for (const [name, given] of calls) {
    const ran = await callTool(name, given);
    expect(`\`isError\` of ${name}`, ran.isError ?? false, false, ran);
    expect(`content of ${name}`, ran.content.map((block) => [block.type, block.text]), [["text", SUM]]);
  }

  const refused = await callTool("crib__execute_tool", { name: COLD, arguments: { a: 2 } });
  expect("`isError` with an argument missing", refused.isError, true, refused);
  expect("`error` with an argument missing", refused.structuredContent.error, "INVALID_ARGUMENTS", refused);
  const unknown = await callTool("crib__execute_tool", { name: "everything__get-sums", arguments: {} });
  expect("`error` of an unknown name", unknown.structuredContent.error, "UNKNOWN_TOOL", unknown);
  expect("the nearest name", unknown.structuredContent.hint.includes(COLD), true, unknown);
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
