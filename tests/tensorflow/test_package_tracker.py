"""MemoryTracker and MemoryWatchdog on TensorFlow, and what analyses and files make of them."""

import json

import harness
import with_tensorflow
from programs_of_package import BEGIN, printed

MIB = 1 << 20


def test_a_peak_between_two_samples_is_in_the_results_and_an_alert_comes_once(tmp_path):
    figures = printed(with_tensorflow.run(BEGIN + """
import time
tracker, told = tfmemprof.MemoryTracker(sampling_interval=0.2, alert_threshold_mb=48, enable_logging=False), []
tracker.add_alert_callback(told.append)
tracker.start_tracking()
held = ones(64)
time.sleep(0.3)
ones(128)  # a sample hardly meets it; made later, as the pool would give its block to the other
time.sleep(0.3)
del held
time.sleep(0.1)
r = tracker.stop_tracking()
crossed = [a for a in told if a["threshold_mb"] == 48]
print(json.dumps([r.peak_memory, len(crossed), crossed[0]["type"], r.basis, r.peak_basis,
                  len(r.timestamps) == len(r.memory_usage), tracker.check_alerts(), len(r.alerts_triggered) >= 1]))
""", tmp_path / "recording"))
    peak, crossings, kind, *rest = figures
    assert 192 <= peak < 193  # small blocks of TensorFlow's own are beside them
    assert (crossings, kind, rest) == (1, "warning", ["exact", "exact", True, True, True])


def test_a_tracker_of_the_process_says_so_and_its_file_is_read_by_the_command(tmp_path):
    file = tmp_path / "track.json"
    basis, events = printed(with_tensorflow.run(BEGIN + """
import time
with tfmemprof.MemoryTracker(sampling_interval=0.02, output=sys.argv[1], enable_logging=False) as tracker:
    kept = []
    for _ in range(20):
        kept.append(ones(4) + 1)
        time.sleep(0.03)
r = tracker.get_tracking_results()
print(json.dumps([r.basis, len(r.events)]))
""", None, str(file)))
    assert basis == "host" and events > 10
    records = json.loads(file.read_text())
    assert {record["collector"] for record in records} == {"tfmemprof.memory_tracker"}
    done = harness.execute([harness.COMMAND, "analyze", file, "--format", "json"]).ok()
    (series,) = json.loads(done.stdout)["series"]
    assert series["samples"] >= 10


def test_the_watchdog_runs_the_programs_callbacks_and_never_clears_the_session():
    cleaned, count, same = printed(with_tensorflow.run(BEGIN + """
import time, keras
watchdog, cleaned = tfmemprof.MemoryWatchdog(max_memory_mb=2, cleanup_threshold_mb=1, check_interval=0.02), []
watchdog.add_cleanup_callback(lambda: cleaned.append(1))
layer = keras.layers.Dense(1)
name = keras.layers.Dense(1).name
watchdog.start()
time.sleep(0.5)
watchdog.stop()
# A cleared session would begin to count names anew.
print(json.dumps([len(cleaned), watchdog.get_cleanup_stats()["cleanup_count"], keras.layers.Dense(1).name]))
"""))
    assert cleaned == count == 1  # at least 30 seconds lie between two of them
    assert same == "dense_2"


def test_pictures_are_drawn_of_results_and_of_tracking(tmp_path):
    with_tensorflow.python("matplotlib")
    with_tensorflow.run(BEGIN + """
import time
p = TFMemoryProfiler()
@p.profile_function
def small(): ones(1)
@p.profile_function
def large(): ones(4)
for _ in range(3):
    small(); large()
tracker = tfmemprof.MemoryTracker(sampling_interval=0.02, enable_logging=False)
tracker.start_tracking(); time.sleep(0.2); tracked = tracker.stop_tracking()
v, r = tfmemprof.MemoryVisualizer(), p.get_results()
v.plot_memory_timeline(r, save_path="timeline.png")
v.plot_memory_timeline(tracked, save_path="tracked.png")
figure = v.plot_function_comparison(r.function_profiles, save_path="functions.png")
v.create_memory_heatmap(r, save_path="heatmap.png")
from matplotlib.text import Text
words = " ".join(t.get_text() for t in figure.findobj(Text))
assert "small" in words and "large" in words, words
v.save_plots(r, "plots")
""", None, cwd=tmp_path)
    for name in ("timeline", "tracked", "functions", "heatmap", "plots/memory_timeline"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
