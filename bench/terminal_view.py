"""`gpumemprof top` on a terminal of its own, and how long it takes to answer a key."""
import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading
import time

MOST_WAIT_S = 120


class TerminalView:
    """A context manager. Nobody looks at the screen: what matters is when the words of another view come."""

    def __init__(self, *argv, columns=120, rows=40):
        self.argv, self.columns, self.rows, self.output = argv, columns, rows, b""
        self.changed = threading.Condition()

    def __enter__(self):
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", self.rows, self.columns, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        self.process = subprocess.Popen(self.argv, stdin=theirs, stdout=theirs, stderr=theirs, env=environment,
                                        start_new_session=True)
        os.close(theirs)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.reader.join(10)
        os.close(self.ours)

    def _read(self):
        try:
            while piece := os.read(self.ours, 65536):
                with self.changed:
                    self.output += piece
                    self.changed.notify_all()
        except OSError:
            pass  # the other end was closed

    def until(self, words):
        """Waits until `words` were written since the last key."""
        with self.changed:
            if not self.changed.wait_for(lambda: words in self.output, MOST_WAIT_S):
                raise TimeoutError(f"no {words!r} on the terminal after {MOST_WAIT_S} s")

    def press(self, key, words):
        """Seconds from the key to the words that it brings onto the screen."""
        with self.changed:
            self.output = b""
        begin = time.monotonic()
        os.write(self.ours, key)
        self.until(words)
        return time.monotonic() - begin
