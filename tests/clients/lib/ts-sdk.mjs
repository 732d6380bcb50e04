// A client written with the TypeScript MCP SDK; lib/sdk.mjs says what goes in and out.

import { readFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";

const { install, mode, server } = JSON.parse(process.env.SDK_JOB);
const sdk = path.join(install, "node_modules/@modelcontextprotocol/client");
const load = (file) => import(pathToFileURL(path.join(sdk, "dist", file)));
const { Client, StreamableHTTPClientTransport } = await load("index.mjs");
const { StdioClientTransport, getDefaultEnvironment } = await load("stdio.mjs");
const { version } = JSON.parse(await readFile(path.join(sdk, "package.json"), "utf8"));

const negotiation = { legacy: "legacy", auto: "auto", modern: { pin: "2026-07-28" } };
const client = new Client(
  { name: "patterm-tests", version: "0" },
  mode === null ? {} : { versionNegotiation: { mode: negotiation[mode] } },
);
const { command, args, env, url, headers } = server;
await client.connect(
  url
    ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
    : new StdioClientTransport({ command, args, env: { ...getDefaultEnvironment(), ...env } }),
);
const { tools } = await client.listTools();
const result = await client.callTool({ name: "whoami", arguments: {} });
// This SDK checks the structured content of failures, too, against the output schema.
const failure = await client.callTool({ name: "help", arguments: { topic: "no such topic" } });
const revision = client.getNegotiatedProtocolVersion();
await client.close();
console.log(JSON.stringify({ version, revision, tools: tools.map((tool) => tool.name), result, failure }));
