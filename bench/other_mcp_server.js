// The same as other_mcp_server.py, under Node.js.
for (const name of ["http", "https", "crypto", "child_process", "zlib", "url", "util"]) require(name);
const tools = [0, 1, 2, 3, 4].map((number) => ({
  name: `tool_${number}`,
  description: "Looks something up elsewhere.",
  inputSchema: { type: "object", properties: { query: { type: "string" } } },
}));
require("readline")
  .createInterface({ input: process.stdin })
  .on("line", (line) => {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) return;
    const answer = { jsonrpc: "2.0", id };
    if (method === "initialize")
      answer.result = {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: "other", version: "1" },
      };
    else if (method === "tools/list") answer.result = { tools };
    else answer.error = { code: -32601, message: "Method not found" };
    console.log(JSON.stringify(answer));
  });
