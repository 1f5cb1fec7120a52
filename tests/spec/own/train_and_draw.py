"""A training loop with a context an epoch, its pictures, a file of its data, and what to do about it."""

from pathlib import Path

import torch
from expect import device, exactly

from gpumemprof import GPUMemoryProfiler, MemoryAnalyzer, MemoryVisualizer

profiler = GPUMemoryProfiler()
model = torch.nn.Linear(300, 50, device=device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def one_step():
    inputs, wanted = torch.randn(16, 300, device=device), torch.randn(16, 50, device=device)
    loss = torch.nn.functional.mse_loss(model(inputs), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


for epoch in range(3):
    with profiler.profile_context(f"epoch {epoch}"):
        profiler.profile_function(one_step)
        print(f"epoch {epoch}: {one_step():.3f}")

steps = [result for result in profiler.results if result.function_name == "one_step"]
assert len(profiler.results) == 6 and len(steps) == 3
exactly(steps[0].memory_diff(), (300 + 1) * 50 * 4)  # the gradients stay
exactly(steps[1].memory_diff(), 0)  # and are replaced

visualizer = MemoryVisualizer(profiler)
visualizer.plot_memory_timeline(interactive=False)
visualizer.plot_memory_timeline(interactive=False, save_path="timeline.png")
visualizer.plot_function_comparison(interactive=False, save_path="functions.png")
visualizer.create_memory_heatmap(save_path="heatmap.png")
for name in ("timeline.png", "functions.png", "heatmap.png"):
    assert Path(name).read_bytes().startswith(b"\x89PNG")
assert visualizer.plot_memory_timeline(interactive=True).document["sections"]

analyzer = MemoryAnalyzer()
for insight in analyzer.generate_performance_insights(profiler.results)[:3]:
    assert insight.description
assert all(pattern.pattern_type for pattern in analyzer.analyze_memory_patterns(profiler.results))

report = analyzer.generate_optimization_report(profiler.results)
assert 0 <= report["optimization_score"] <= 10
assert report["recommendations"] and all(isinstance(text, str) for text in report["recommendations"])
