"""A program whose environment lacks the package, as where the command was installed into another: it has the names that it
would have had. Expected: arithmetic on the tensors of PROGRAM."""

import pytest

pytest.importorskip("torch")

import harness  # noqa: E402

PROGRAM = """
import sys, torch
net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
optimizer = torch.optim.Adam(net.parameters())
for _ in range(20):
    net(torch.ones(32, 64)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print(sum(p.nbytes for p in net.parameters()), [n for n in sys.modules if n.startswith("gpumemprof")], flush=True)
"""
PARAMETER_BYTES = 4 * (64 * 128 + 128 + 128 * 10 + 10)


def record(folder, program, *more):
    options, env = harness.without_package()
    return harness.record(folder, [harness.PYTHON, *options, "-c", program, *more], ["-q"], env=env)


def test_parameters_modules_and_steps_have_their_names(tmp_path):
    done = record(tmp_path / "r", PROGRAM).ok()
    assert done.stdout.decode() == f"{PARAMETER_BYTES} []\n"
    analysis = harness.analysis(tmp_path / "r")
    (cpu,) = analysis["devices"]
    assert cpu["categories_at_peak"]["parameter"] == PARAMETER_BYTES
    assert {"Sequential.0", "Sequential.2"} <= {one["module"] for one in cpu["by_module_at_peak"]}
    assert sum(one["kind"] == "step_end" for one in analysis["moments"]) == 20


@pytest.mark.parametrize("end", ["raise KeyboardInterrupt", "import os, signal; os.kill(os.getpid(), signal.SIGINT)", "raise SystemExit(7)"])
def test_it_ends_as_it_would(end, tmp_path):
    options, env = harness.without_package()
    program = f"import torch\nx = torch.ones(99)\n{end}\n"
    alone = harness.execute([harness.PYTHON, *options, "-c", program], env=env)
    done = record(tmp_path / "r", program)
    assert (done.rc, done.stdout, done.stderr) == (alone.rc, alone.stdout, alone.stderr)


@pytest.mark.parametrize("delay_ms", [1, 4, 12])
def test_an_interrupt_while_it_is_loaded_is_the_programs(delay_ms, tmp_path):
    """The package is loaded after the first allocation, and its code takes some ten milliseconds."""
    program = """
import signal, sys, torch
class Told(Exception): pass
def handler(number, frame): raise Told
signal.signal(signal.SIGALRM, handler)
try:
    signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]))
    while True: torch.ones(9).exp()
except Told:
    print("told", flush=True)
"""
    done = record(tmp_path / "r", program, delay_ms / 1000).ok()
    assert (done.stdout, done.stderr) == (b"told\n", b"")
