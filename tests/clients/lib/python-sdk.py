"""A client written with the Python MCP SDK; lib/sdk.mjs says what goes in and out."""

import json
import os
from importlib.metadata import version

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client


def transport(server: dict):
    if "url" in server:
        http = create_mcp_http_client(headers=server["headers"])
        return streamable_http_client(server["url"], http_client=http)
    return StdioServerParameters(**{key: server[key] for key in ("command", "args", "env")})


async def main() -> None:
    given = json.loads(os.environ["SDK_JOB"])
    mode = {"modern": "2026-07-28", None: "auto"}.get(given["mode"], given["mode"])
    async with Client(transport(given["server"]), mode=mode) as client:
        tools = []
        page = None
        while page is None or page.next_cursor:
            page = await client.list_tools(cursor=page and page.next_cursor)
            tools += [tool.name for tool in page.tools]
        result = await client.call_tool("whoami", {})
        failure = await client.call_tool("help", {"topic": "no such topic"})
        revision = client.protocol_version
    answers = {"result": result, "failure": failure}
    answers = {name: answer.model_dump(mode="json", by_alias=True) for name, answer in answers.items()}
    print(json.dumps({"version": version("mcp"), "revision": revision, "tools": tools, **answers}))


anyio.run(main)
