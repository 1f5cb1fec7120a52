"""Runs a command; stderr's last line is JSON {"seconds", "cpu_seconds", "peak_rss_kib", "exit"}.

A process of its own and as small as possible: the kernel counts what a child shares with its
parent before it becomes the command, so ru_maxrss is never below the parent's size (about 10 MiB).
"""
import os
import sys
import time

begin = time.perf_counter()
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(child, 0)
seconds = time.perf_counter() - begin
sys.stderr.write('{"seconds": %.6f, "cpu_seconds": %.6f, "peak_rss_kib": %d, "exit": %d}\n'
                 % (seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss,
                    os.waitstatus_to_exitcode(status)))
