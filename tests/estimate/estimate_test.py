"""`gpumemprof estimate -- CMD`: whole scripts, against what can be computed by hand."""

import json

import harness
import pytest
from estimate import tracing

pytest.importorskip("torch")

MLP = """
import sys, torch
from torch import nn
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 64
model = nn.Sequential(nn.Linear(1000, 500), nn.ReLU(), nn.Linear(500, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(1000):
    x, y = torch.randn(batch, 1000).cuda(), torch.randint(0, 10, (batch,)).to("cuda")
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, flush=True)
print("the end")
"""
PARAMETERS = 4 * (1000 * 500 + 500 + 500 * 10 + 10)
PRODUCT_WORKSPACE = 8_519_680  # cuBLAS on Ampere: 2 of 4 MiB and 8 of 16 KiB


def estimate(*options, rc=0):
    done = harness.execute([harness.COMMAND, "estimate", "--format", "json", *options], timeout=120)
    assert done.rc == rc, repr(done)
    return json.loads(done.stdout) if rc == 0 else done.stderr.decode()


@pytest.fixture(scope="module")
def mlp(tmp_path_factory):
    path = tmp_path_factory.mktemp("scripts") / "mlp.py"
    path.write_text(MLP)
    return path


@pytest.fixture(scope="module")
def answer(mlp):
    done = harness.execute(
        [harness.COMMAND, "estimate", "--format", "json", "--", harness.PYTHON, mlp], timeout=120
    ).ok()
    return json.loads(done.stdout), done.stderr.decode()


def test_the_script_is_stopped_after_two_steps(answer):
    assert [line for line in answer[1].splitlines() if line.startswith(("step", "the"))] == ["step 0"]


def test_live_bytes_of_an_mlp_are_those_computed_by_hand(answer):
    # In Adam's step: weights, gradients, two moments, and the square roots that it makes of one; the batch and the
    # loss.
    batch = 64 * 1000 * 4 + 64 * 8
    peaks, categories = answer[0]["peaks"], answer[0]["by_category"]
    assert peaks["live"] == dict.fromkeys(("expected_bytes", "low_bytes", "high_bytes"), 5 * PARAMETERS + batch + 4)
    assert categories == {
        "parameter": PARAMETERS,
        "gradient": PARAMETERS,
        "optimizer state": 2 * PARAMETERS,
        "temporary": PARAMETERS,
        "input": batch,
        "activation": 4,
    }


def test_allocated_and_reserved_bytes_are_those_of_the_allocators_rules(answer):
    # Blocks are multiples of 512 bytes: 2,000,000 become 2,000,384.
    rounded = 2_000_384 + 2_048 + 20_480 + 512
    allocated = 5 * rounded + 256_000 + 512 + 512 + 2 * PRODUCT_WORKSPACE
    assert answer[0]["peaks"]["allocated"]["expected_bytes"] == allocated
    # Blocks of more than 1 MiB: a weight and the two workspaces leave no room for a fifth in 20 MiB, so there are two
    # such segments; all others go into one of 2 MiB.
    assert answer[0]["peaks"]["reserved"]["expected_bytes"] == 42 << 20


def test_modules_own_what_is_theirs(answer):
    owned = {(part["name"], part["category"]): part["bytes"] for part in answer[0]["at_peak"]}
    assert owned["0", "parameter"] == 4 * (1000 * 500 + 500)
    assert owned["2", "gradient"] == 4 * (500 * 10 + 10)
    assert owned["0", "optimizer state"] == 2 * owned["0", "parameter"]


def test_the_largest_batch_is_the_last_that_fits(mlp):
    found = estimate(
        "--batch", "auto", "--capacity", "2GiB", "--device-constant", "1GiB", "--", harness.PYTHON, mlp, "{batch}"
    )
    batch = found["largest_batch"]["batch"]
    assert batch > 1000 and found["batch"] == batch
    assert found["peaks"]["device"]["high_bytes"] <= 2 << 30
    one_more = ["--batch", str(batch + 1), "--capacity", "2GiB", "--device-constant", "1GiB"]
    more = estimate(*one_more, "--", harness.PYTHON, mlp, "{batch}")
    assert more["peaks"]["device"]["high_bytes"] > 2 << 30


def test_allocator_settings_are_lines_of_the_table(mlp):
    found = estimate(
        "--settings", "expandable_segments:True", "--settings", "max_split_size_mb:64", "--", harness.PYTHON, mlp
    )
    assert [row["settings"] for row in found["table"]] == ["expandable_segments:True", "max_split_size_mb:64"]
    wrong = estimate("--settings", "nothing:1", "--", harness.PYTHON, mlp, rc=2)
    assert "nothing" in wrong


def test_what_needs_values_runs_on_the_host_and_says_so(tmp_path):
    script = tmp_path / "choose.py"
    script.write_text(MLP.replace("model(x), y)", "model(x[(x.sum(1) > -1e9).nonzero().squeeze(1)]), y)"))
    done = harness.execute(
        [harness.COMMAND, "estimate", "--format", "json", "--on-host", "--", harness.PYTHON, script], timeout=120
    ).ok()
    assert b"cannot trace without memory" in done.stderr and b"choose.py:9" in done.stderr
    found = json.loads(done.stdout)
    assert found["method"] == "trace_on_host"
    assert found["by_category"]["parameter"] == PARAMETERS


SPARSE = """
import torch
device = "cuda" if torch.cuda.is_available() else "cpu"
table = torch.nn.Embedding(1000, 16, sparse=True).to(device)
optimizer = torch.optim.SparseAdam(table.parameters())
for step in range(3):
    rows = torch.arange(7).to(device)
    optimizer.zero_grad()
    (table(rows) * 2).sum().backward()
    optimizer.step()
"""


def test_sparse_gradients_have_as_many_rows_as_the_step_has_touched(tmp_path):
    script = tmp_path / "sparse.py"
    script.write_text(SPARSE)
    said = estimate("--", harness.PYTHON, script, rc=2)
    assert "how many rows a sparse gradient has is known only from values (sparse.py:9); --on-host would run" in said
    found = estimate("--on-host", "--", harness.PYTHON, script)
    table_bytes = 1000 * 16 * 4
    assert found["by_category"]["parameter"] == table_bytes
    assert found["by_category"]["optimizer state"] == 2 * table_bytes
    assert found["by_category"]["gradient"] == 7 * (8 + 16 * 4)  # the number of each row, and its values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "import torch\nraise ValueError('no such file: data.csv')\n",
            "ValueError: no such file: data.csv (script.py:2)",
        ),
        ("import torch\ntorch.ones(3)\n", "the script put nothing on a GPU: nothing to estimate. Let it use torch.device("),
        ("print('no torch here')\n", "exit code 0 before it finished two steps"),
        ("import sys\nsys.exit(3)\n", "exit code 3 before it finished two steps"),
    ],
)
def test_what_cannot_be_traced_is_one_line(tmp_path, text, message):
    script = tmp_path / "script.py"
    script.write_text(text)
    said = estimate("--", harness.PYTHON, script, rc=2)
    assert said.splitlines()[-1].startswith(f"gpumemprof: {script}: ") and message in said.splitlines()[-1], said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give what to estimate"),
        (["--batch", "0", "--model", "timm:resnet18"], "--batch takes a number from 1 to 999999999, or auto"),
        (["--batch", "auto", "--model", "timm:resnet18"], "--capacity"),
        (["--batch", "8", "--", "python", "train.py"], "{batch}"),
        (["--", "python", "train.py", "{batch}"], "--batch"),
        (["--optimizer", "sgd", "--", "python", "train.py"], "a script decides these itself"),
        (["--", "no-such-program"], "no-such-program"),
        (["--on-host", "--model", "timm:resnet18"], "--on-host goes with a command"),
        (["--tp", "2", "--model", "timm:resnet18"], "estimate: --tp goes with --config"),
        (["--set", "dp=2", "--model", "timm:resnet18"], "estimate: --set goes with --config"),
    ],
)
def test_requests_that_make_no_sense(options, message):
    said = estimate(*options, rc=2)
    assert message in said and said.count("\n") == 1


def test_a_damaged_trace_is_refused_with_the_byte(tmp_path, mlp):
    path = tracing.trace(tmp_path / "trace", [mlp])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    said = estimate("--trace", path, rc=2)
    assert "at byte" in said and said.count("\n") == 1
    path.write_bytes(whole)
    assert estimate("--trace", path)["by_category"]["parameter"] == PARAMETERS


def test_a_rank_of_data_parallel_training_has_buckets_for_its_gradients(tmp_path):
    script = tmp_path / "ranks.py"
    script.write_text(
        "import torch\n"
        "torch.distributed.init_process_group('nccl')\n"
        "torch.cuda.set_device(0)\n"
        + MLP.replace("import sys, torch", "import sys, torch, os").replace(
            "nn.Linear(500, 10)).cuda()",
            "nn.Linear(500, 10)).cuda()\nmodel = nn.parallel.DistributedDataParallel(model, device_ids=[0])",
        ).replace('print("step", step', 'print(f"{loss:.3f}"')
    )
    found = estimate("--", harness.PYTHON, script)
    assert found["by_category"]["parameter"] == found["by_category"]["gradient"] == PARAMETERS
    batch = 64 * 1000 * 4 + 64 * 8
    assert found["peaks"]["live"]["expected_bytes"] == 6 * PARAMETERS + batch + 4
    assert any("NCCL" in sentence for sentence in found["unknown"])
