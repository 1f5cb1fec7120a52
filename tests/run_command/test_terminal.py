"""Ctrl-C, Ctrl-Z and fg in a real terminal, and where the summary begins."""

import fcntl
import os
import signal
import struct
import termios
import time

from launching import COUNT_SIGNALS


def test_ctrl_c_reaches_the_program_once(terminal):
    term = terminal(COUNT_SIGNALS)
    term.wait_for("ready")
    os.write(term.fd, b"\x03")
    term.wait_for("ENDED 0")
    assert term.text.count("SIGINT") == 1


def test_ctrl_c_that_kills_the_program_is_what_the_shell_sees(terminal):
    term = terminal("""
        import signal, time
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        print("ready", flush=True)
        time.sleep(60)
    """)
    term.wait_for("ready")
    os.write(term.fd, b"\x03")
    term.wait_for("ENDED -2")


def test_ctrl_z_stops_the_job_and_fg_continues_it(terminal):
    term = terminal("""
        import time
        print("ready", flush=True)
        input()
        print("read a line")
    """)
    term.wait_for("ready")
    os.write(term.fd, b"\x1a")
    term.wait_for(f"STOPPED {int(signal.SIGTSTP)}")
    time.sleep(0.3)
    os.write(term.fd, b"hello\n")
    term.wait_for("ENDED 0")
    assert "read a line" in term.text


def test_the_summary_begins_a_line_where_the_program_left_one_unfinished(terminal):
    term = terminal("""
        import sys
        input()
        sys.stdout.write("half a line")
    """, options=())
    fcntl.ioctl(term.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 33, 0, 0))
    os.write(term.fd, b"\n")
    term.wait_for("ENDED 0")
    # On a terminal 33 blanks and a return are the begin of the next line.
    assert f"half a line{' ' * 33}\rgpumemprof: nothing recorded" in term.text
