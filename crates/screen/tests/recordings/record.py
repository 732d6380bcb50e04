#!/usr/bin/env python3
"""Records what a program prints on a terminal of 80x24, for the tests beside this file.

record.py NAME INPUT... -- PROGRAM ARGUMENT...

Each INPUT is typed when the program has been quiet for a while (escapes as in Python). The bytes go
to NAME.bytes here; `PATTERM_WRITE_GRIDS=1 cargo nextest run -p patterm-screen recordings` writes
NAME.grid from them, to be read by a person before it is committed. Record under `unshare --uts` with
another host name, in a folder of no machine's.
"""
import fcntl, os, pty, select, struct, sys, termios

QUIET = 0.7

name, rest = sys.argv[1], sys.argv[2:]
split = rest.index("--")
inputs, program = rest[:split], rest[split + 1 :]
home = os.getcwd()
pid, master = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {"TERM": "xterm-256color", "PATH": "/usr/bin:/bin", "HOME": home, "LANG": "C.UTF-8",
                   "PS1": "$ ", "SHELL": "/bin/bash", "USER": "user", "FORCE_COLOR": "1"}
    os.execvpe(program[0], program, environment)
out = bytearray()
while True:
    ready, _, _ = select.select([master], [], [], QUIET)
    if ready:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        out += piece
    elif inputs:
        os.write(master, inputs.pop(0).encode().decode("unicode_escape").encode("latin-1"))
    else:
        break
os.close(master)
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".bytes"), "wb") as file:
    file.write(out)
