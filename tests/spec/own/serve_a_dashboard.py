"""The page in a browser, on a port that is free."""

import urllib.request

from expect import touched

from gpumemprof import GPUMemoryProfiler, MemoryVisualizer

profiler = GPUMemoryProfiler()
for _ in range(5):
    profiler.profile_function(lambda: touched(2))
page = MemoryVisualizer(profiler).create_interactive_dashboard(profiler.get_summary(), port=0)
with urllib.request.urlopen(page.url, timeout=20) as answer:
    assert b"gpumemprof" in answer.read()
page.stop()
