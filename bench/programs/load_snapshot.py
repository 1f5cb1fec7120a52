"""What a script does today: pickle.load, then the peak and who held it. Prints one line of JSON.

The same answer as `gpumemprof analyze`: events of each kind, the highest sum of requested bytes with what was live
before the trace, and the bytes of every stack at that moment.
"""
import collections
import json
import pickle
import sys
import time


def stack_of(event):
    return tuple((f["filename"], f["line"], f["name"]) for f in event.get("frames", ()))


def analyze(trace, segments):
    counts = collections.Counter(event["action"] for event in trace)
    live, before = set(), 0
    for event in trace:
        if event["action"] == "alloc":
            live.add(event["addr"])
        elif event["action"] == "free_completed":
            if event["addr"] in live:
                live.remove(event["addr"])
            else:
                before += event["size"]
    for segment in segments:
        for block in segment["blocks"]:
            if block["state"] != "inactive" and block["address"] not in live:
                before += block["requested_size"]
    now = peak = before
    peak_at = 0
    for index, event in enumerate(trace):
        if event["action"] == "alloc":
            now += event["size"]
            if now > peak:
                peak, peak_at = now, index
        elif event["action"] == "free_completed":
            now -= event["size"]
    held = {}
    for event in trace[:peak_at + 1]:
        if event["action"] == "alloc":
            held[event["addr"]] = event
        elif event["action"] == "free_completed":
            held.pop(event["addr"], None)
    holders = collections.Counter()
    for event in held.values():
        holders[stack_of(event)] += event["size"]
    return {"events": counts, "peak": peak, "peak_event": peak_at, "stacks": len(holders)}


def main():
    begin = time.perf_counter()
    with open(sys.argv[1], "rb") as file:
        snapshot = pickle.load(file)
    loaded = time.perf_counter()
    answer = analyze(snapshot["device_traces"][0], snapshot["segments"])
    print(json.dumps({"load_seconds": loaded - begin, "seconds": time.perf_counter() - begin, **answer}))


if __name__ == "__main__":
    main()
