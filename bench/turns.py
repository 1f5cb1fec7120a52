"""Programs that run side by side and are timed in turn, block by block.

    started together:   plain      control    recorded
    round 1                1 ─────────▶ 2 ───────▶ 3         one block of steps each, the order drawn by chance
    round 2                2 ◀───────── 1          3         the others wait for their line on stdin meanwhile

A machine's speed drifts by some percent within seconds, which is more than what is measured: blocks of one round are
within a tenth of a second of each other, whole processes run one after the other are not.
"""
import contextlib
import os
import random
import select
import signal
import statistics
import subprocess
import tempfile

import launch
import pairs


class Program:
    """A program of bench/programs started with --turns: a line on its stdin is a block, a line on its stdout the
    seconds a step of it took. Raises launch.Failed where it ends early or does not answer."""

    def __init__(self, command, timeout_s):
        self._timeout_s = timeout_s
        self._name = os.path.basename(command[0])
        self._stderr = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr,
                                         text=True, bufsize=1, env=launch.environment(), start_new_session=True)

    def turn(self):
        try:
            self._process.stdin.write("\n")
        except BrokenPipeError:
            raise self._failed("has ended") from None
        return self._answer()

    def ready(self):
        """Waits until it has done its first steps."""
        self._answer()

    def end(self):
        self._process.stdin.close()
        try:
            self._process.wait(self._timeout_s)
        except subprocess.TimeoutExpired:
            raise self._failed(f"did not end within {self._timeout_s} s") from None
        if self._process.returncode != 0:
            raise self._failed(f"ended with {self._process.returncode}")

    def close(self):
        """Leaves nothing behind: a program under a recorder is the recorder's child."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._stderr.close()

    def _answer(self):
        if not select.select([self._process.stdout], [], [], self._timeout_s)[0]:
            raise self._failed(f"did not answer within {self._timeout_s} s")
        line = self._process.stdout.readline()  # one line an answer, so none waits in the buffer above
        if not line:
            raise self._failed("has ended")
        try:
            return float(line)
        except ValueError:
            raise self._failed(f"said {line.strip()[:80]!r}") from None

    def _failed(self, what):
        self._stderr.seek(0)
        return launch.Failed(f"{self._name} {what}: {launch.last_words(self._stderr.read())}")


def in_turn(commands, rounds, chance, timeout_s=launch.TIMEOUT_S):
    """{name: command} side by side for `rounds` rounds; {name: [seconds a step, one a round]}."""
    with contextlib.ExitStack() as stack:
        programs = {}
        for name, command in commands.items():
            programs[name] = Program(command, timeout_s)
            stack.callback(programs[name].close)
        for program in programs.values():
            program.ready()
        taken = {name: [] for name in programs}
        for _ in range(rounds):
            order = list(programs)
            chance.shuffle(order)
            for name in order:
                taken[name].append(programs[name].turn())
        for program in programs.values():
            program.end()
        return taken


def beside_plain(command, recorders, counts, rounds, seed):
    """`command` twice as it is ("plain", "control") and under each of {name: function of a fresh folder that gives the
    command}, counts[name] times; the estimates of the names and of "control", and all seconds.

    A round's block is held against each of its two plain ones (not against their mean: times are skewed, and most are
    below a mean); a pair's figure is the median of these ratios."""
    chance = random.Random(seed)
    found, raw = {name: [] for name in (*recorders, "control")}, []
    for index in range(max(counts.values())):
        with launch.folder() as path:
            commands = {"plain": command, "control": command}
            commands |= {name: recorded(path) for name, recorded in recorders.items() if index < counts[name]}
            taken = in_turn(commands, rounds, chance)
        raw.append(taken)
        for kind in found.keys() & taken.keys():
            without = ("plain",) if kind == "control" else ("plain", "control")
            found[kind].append(statistics.median(a / b for other in without for a, b in zip(taken[kind], taken[other])))
    return {name: pairs.estimate(ratios) for name, ratios in found.items()}, raw


def under_memray(command):
    python, *rest = command
    return lambda path: [python, "-m", "memray", "run", "-q", "-o", f"{path}/memray.bin", *rest]
