"""What a detector said of a program, against what is expected of it."""

import dataclasses
import re

LINE = re.compile(r"^(?P<file>.*):(?P<line>\d+) ")


@dataclasses.dataclass
class Verdict:
    """Of one program. The first finding counts for the line, the name and the holder."""

    program: str
    recipe: str
    leaks: bool
    found: bool = False
    line: bool = False
    name: bool = False
    holder: bool = False
    other_lines: int = 0
    """Lines of findings on a leaking program that are not expected."""
    said: str = ""

    @property
    def is_false_alarm(self):
        return not self.leaks and self.found


def number_of(frame, program):
    """The line's number; None where it is another file's."""
    match = LINE.match(frame)
    return int(match["line"]) if match and match["file"].endswith(program) else None


def line_of(finding, program):
    """The line of the program that a finding is about first."""
    return number_of(finding["stack"][0], program) if finding["stack"] else None


def lines_of(finding, program):
    """All lines that it is about."""
    frames = [line["frame"] for line in finding.get("lines", [])]
    return [number_of(frame, program) for frame in frames] or [line_of(finding, program)]


def grows(finding):
    """Whether it is of something that grows, however little: severity says only whether that matters."""
    return finding["kind"] == "leak" and finding["name"] != "gradients_kept"


def judge(program, expected, findings):
    """`findings`: those of `analyze --format json`; only leaks are looked at."""
    leaks = [f for f in findings if f["kind"] == "leak"]
    verdict = Verdict(program, expected["recipe"], expected["leaks"])
    # What stays without growing is told, and is expected of some; in a program that grows it is not the bug.
    if not expected["leaks"]:
        verdict.found = bool(leaks)
    elif expected["grows"]:
        leaks = [f for f in leaks if grows(f)]
    else:
        verdict.found = False
    verdict.said = "; ".join(f"{f['name']} at {line_of(f, program)}, {f['evidence'].get('holder_name')}" for f in leaks)
    if not leaks or not expected["leaks"]:
        return verdict
    first = leaks[0]
    verdict.found = True
    verdict.line = line_of(first, program) in expected["lines"]
    verdict.name = first["name"] == expected["bug"]
    verdict.holder = first["evidence"].get("holder_name") == expected["holder"]
    verdict.other_lines = sum(line not in expected["lines"] for f in leaks for line in lines_of(f, program))
    return verdict
