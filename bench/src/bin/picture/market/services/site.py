import http.server, os, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(500 if os.path.exists("broken") and self.path == "/health" else 200)
        self.end_headers()

server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print(f"http://127.0.0.1:{sys.argv[1]}/", flush=True)
server.serve_forever()
