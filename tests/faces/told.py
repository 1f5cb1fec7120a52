"""What each face of gpumemprof says of one input, and what the stand-in program of steps.cc really did."""

import collections
import csv
import io
import json
import re

import harness

Peak = collections.namedtuple("Peak", "bytes event time_ns", defaults=(None, None))
SENTENCE = re.compile(
    r"(?:Peak|Live) [0-9.]+ (?:[KMGT]i)?B on [^,;<]+(?:, (?:before the first event|"
    r"at the one moment that the file covers))?(?:, [^,;<]+ after the first event)?(?: \(event [0-9,]+ of [0-9,]+\))?")
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
SEGMENT = 2 << 20


def command(*argv):
    return harness.execute([harness.COMMAND, *argv], timeout=120).ok().stdout


def sentence(text):
    """The first words that tell of the peak, up to who it was."""
    found = SENTENCE.search(re.sub(r"</?b>", "", text))
    return found and found[0]


def told_bytes(words):
    """The bytes of a sentence, and by how much they may differ: half of the last digit."""
    number, unit = re.match(r"\S+ ([0-9.]+) (\S+)", words).groups()
    digits = len(number.partition(".")[2])
    return float(number) * UNITS[unit], UNITS[unit] * 0.5 * 10**-digits + 0.5


def told_seconds(words):
    """Seconds after the first event, and by how much they may differ: half of the last digit. None: not told."""
    found = re.search(r", ([0-9.]+) (ns|µs|ms|s) after the first event", words)
    if not found:
        return None
    unit = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1}[found[2]]
    return float(found[1]) * unit, 0.51 * unit * 10 ** -len(found[1].partition(".")[2])


def told_event(words):
    found = re.search(r"\(event ([0-9,]+) of", words)
    return int(found[1].replace(",", "")) - 1 if found else None


def added_up(rows, is_requested):
    """{device: Peak} of exported events. Where the second halves of frees are told a block lives until then."""
    out, live, count = {}, collections.defaultdict(dict), collections.Counter()
    in_two_steps = {r["device"] for r in rows if r["action"] == "free_completed"}
    for row in rows:
        device, action = row["device"], row["action"]
        index = count[device]
        count[device] += 1
        blocks = live[device]
        if action == "alloc":
            blocks[row["address"]] = int(row["requested_bytes"] if is_requested else row["size_bytes"])
            now = sum(blocks.values())
            if now > out.get(device, Peak(0)).bytes:
                out[device] = Peak(now, index, int(row["time_ns"]) if row.get("time_ns") else None)
        elif action == "free_completed" or (action == "free_requested" and device not in in_two_steps):
            blocks.pop(row["address"], None)
    return out


def of_jsonl(path):
    return [json.loads(line) for line in command("export", path, "--to", "jsonl").splitlines()]


def of_csv(path):
    return list(csv.DictReader(io.StringIO(command("export", path, "--to", "csv").decode())))


def of_folded(path, *options):
    """Bytes by the first frame of a path, and in all."""
    text = command("export", path, "--to", "folded", *options).decode()
    sums = collections.Counter()
    for line in text.splitlines():
        names, _, size = line.rpartition(" ")
        sums[names.split(";")[0]] += int(size)
    return sums


def of_speedscope(path):
    profile = json.loads(command("export", path, "--to", "speedscope"))
    return sentence(profile["name"]), sum(profile["profiles"][0]["weights"])


def of_perfetto(path, pb):
    """{device: Peak} by the counters of live bytes, and the same by the instants that name the peaks."""
    trace = pb.Trace()
    trace.ParseFromString(command("export", path, "--to", "perfetto"))
    names = {p.track_descriptor.uuid: p.track_descriptor.name for p in trace.packet if p.HasField("track_descriptor")}
    counted, told = {}, {}
    for packet in trace.packet:
        event = packet.track_event
        name = names.get(event.track_uuid, "")
        if event.type == pb.TrackEvent.TYPE_COUNTER and name.endswith(" live"):
            best = counted.get(name[:-5], Peak(0))
            if event.counter_value > best.bytes:
                counted[name[:-5]] = Peak(event.counter_value, None, packet.timestamp)
        elif event.name.startswith("peak of "):
            (size,) = [a.uint_value or a.int_value for a in event.debug_annotations if a.name == "live_bytes"]
            told[event.name[8:]] = Peak(size, None, packet.timestamp)
    return counted, told


class Step:
    """The events of steps.cc: (action, address, asked, taken, role)."""

    def __init__(self, kind):
        self.kind, self.rows, self.live = kind, [], {}
        if kind == "followed":
            self.rows.append(("segment_alloc", 0, SEGMENT, SEGMENT, None))
        self.make("weight", 4000, "parameter")
        self.make("bias", 100, "parameter")
        for step in range(3):
            for i in range(7):
                self.make(f"small {i}", 1)
            for i in range(7):
                self.drop(f"small {i}")
            self.make("work", 1500)
            self.make("gradient", 1100 + step, "gradient")
            self.drop("work", is_delayed=step == 1)
            if step == 1:
                self.make("late", 300, "gradient")
                self.complete("work")
                self.drop("late")
            self.drop("gradient")

    def make(self, name, asked, role="temporary"):
        taken = asked if self.kind == "cpu" else -(-asked // 512) * 512
        self.live[name] = asked, taken, role
        self.rows.append(("alloc", name, *self.live[name]))

    def drop(self, name, is_delayed=False):
        if self.kind != "cpu":
            self.rows.append(("free_requested", name, *self.live[name]))
        if self.kind == "cpu" or (self.kind == "followed" and not is_delayed):
            self.rows.append(("free_completed", name, *self.live[name]))

    def complete(self, name):
        if self.kind == "followed":
            self.rows.append(("free_completed", name, *self.live[name]))

    def peak(self):
        """Peak, the bytes by role at it, and the events in all. Of what was asked for, where that is known."""
        which = 1 if self.kind == "late" else 0
        ends = "free_requested" if self.kind == "late" else "free_completed"
        live, best, roles = {}, Peak(0), {}
        for index, (action, name, *block) in enumerate(self.rows):
            if action == "alloc":
                live[name] = block
            elif action == ends:
                del live[name]
            now = sum(b[which] for b in live.values())
            if now > best.bytes:
                best, roles = Peak(now, index), collections.Counter()
                for b in live.values():
                    roles[b[2]] += b[which]
        return best, dict(roles), len(self.rows)
