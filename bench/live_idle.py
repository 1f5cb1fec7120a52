"""What serve and top cost while nothing happens: bench/live_idle.py [COMMAND]. Prints shares of one core."""
import fcntl
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

COMMAND = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).resolve().parent.parent / ".venv/bin/gpumemprof")
SECONDS = 20


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def share(pid):
    time.sleep(2)
    before, begin = cpu_seconds(pid), time.monotonic()
    time.sleep(SECONDS)
    return (cpu_seconds(pid) - before) / (time.monotonic() - begin)


def drain(read):
    threading.Thread(target=lambda: [None for _ in iter(read, b"")], daemon=True).start()


def serve(with_stream):
    with subprocess.Popen([COMMAND, "serve", "--listen", "0"], stdout=subprocess.PIPE, text=True) as process:
        port = int(re.search(r":(\d+)/", process.stdout.readline())[1])
        if with_stream:
            stream = socket.create_connection(("127.0.0.1", port))
            stream.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            drain(lambda: stream.recv(65536))
        result = share(process.pid)
        process.send_signal(signal.SIGTERM)
    return result


def top():
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(COMMAND, [COMMAND, "top"], dict(os.environ, TERM="xterm-256color"))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))
    drain(lambda: os.read(terminal, 65536))
    result = share(pid)
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
    return result


processes = sum(name.isdigit() for name in os.listdir("/proc"))
print(f"{processes} processes on this machine, {SECONDS} s each")
print(f"serve, nobody asks:      {serve(False):7.2%} of a core")
print(f"serve, one page is open: {serve(True):7.2%} of a core")
print(f"top, 200 x 60, 1 Hz:     {top():7.2%} of a core")
