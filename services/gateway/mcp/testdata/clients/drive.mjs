// The official client drives Hub: node drive.mjs http URL KEY | stdio PROGRAM URL KEY, in the folder that has the packages.
// It writes what it was answered, as JSON; the test judges it.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
const load = (name) => import(pathToFileURL(createRequire(process.cwd() + "/").resolve("@modelcontextprotocol/sdk/" + name)));
const { Client } = await load("client/index.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
const { StdioClientTransport } = await load("client/stdio.js");

const [kind, ...rest] = process.argv.slice(2);
const input = JSON.parse(process.env.SEGMENT);
function transport() {
  if (kind === "http") {
    const [url, key] = rest;
    return new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: "Bearer " + key } } });
  }
  const [program, url, key] = rest;
  return new StdioClientTransport({ command: program, args: ["mcp"], env: { HUB_URL: url, HUB_API_KEY: key } });
}
const client = new Client({ name: "hub-test", version: "1" });
await client.connect(transport());
const tools = (await client.listTools()).tools;
const call = (name, args, key) => client.callTool({ name, arguments: args, ...(key && { _meta: { "hub/idempotencyKey": key } }) });
const refused = async (promise) => {
  try {
    return await promise;
  } catch (e) {
    return { thrown: { code: e.code, message: e.message } };
  }
};
const out = {
  version: client.getServerVersion(),
  instructions: client.getInstructions(),
  tools: tools.map((t) => t.name),
  read: await call("list_segments", {}),
  failure: await call("get_brand", { brand: 1 }),
  first: await refused(call("create_segment", input, "k-" + kind)),
  again: await refused(call("create_segment", input, "k-" + kind)),
  unkeyed: await refused(call("create_segment", input)),
  scope: await call("execute_read_sql", { sql: "SELECT 1" }),
  unknown: await refused(call("no_such_tool", {})),
};
await client.close();
console.log(JSON.stringify(out));
