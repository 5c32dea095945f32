"""An MCP server that says its secret on standard error and dies, or says far too much."""
import json
import os
import sys

for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if "id" not in message:
        continue
    if method == "initialize":
        result = {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "leaky", "version": "1"},
        }
    elif method == "tools/call" and message["params"]["name"] == "say_much":
        result = {"content": [{"type": "text", "text": "zebra " * 20_000}]}
    elif method == "tools/call":
        print("my token is", os.environ["LEAKY_TOKEN"], file=sys.stderr, flush=True)
        os._exit(3)
    else:
        error = {"code": -32601, "message": "no"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
