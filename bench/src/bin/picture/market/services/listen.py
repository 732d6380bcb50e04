import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("database system is ready to accept connections", flush=True)
while True:
    server.accept()[0].close()
