"""What `gpumemprof estimate -- CMD` must never do: write over the user's files, or run his program in earnest."""

import harness
import pytest
from estimate.estimate_test import MLP, estimate

pytest.importorskip("torch")
KEPT = b"weights of a week"


@pytest.mark.parametrize(
    ("imported", "save"),
    [
        ("", "torch.save(model.state_dict(), path)"),
        ("", "torch.save(obj=model.state_dict(), f=path)"),
        ("from torch import save", "save(model.state_dict(), path)"),
        ("import torch.distributed.checkpoint as shards", "shards.save(model.state_dict(), checkpoint_id=path)"),
        ("from safetensors.torch import save_file", "save_file(model.state_dict(), path)"),
    ],
)
def test_a_checkpoint_that_is_there_keeps_its_bytes(tmp_path, imported, save):
    if "safetensors" in imported:
        pytest.importorskip("safetensors")
    kept, script = tmp_path / "kept.pt", tmp_path / "train.py"
    kept.write_bytes(KEPT)
    script.write_text(f"path = {str(kept)!r}\n" + MLP.replace("    print(", f"    {save}\n    print(", 1))
    script.write_text(script.read_text().replace("from torch import nn", f"from torch import nn\n{imported}"))
    found = estimate("--", harness.PYTHON, script)
    assert kept.read_bytes() == KEPT
    assert "checkpoints were not written" in [one["what"] for one in found["assumptions"]]


def test_a_checkpoint_made_in_memory_ends_the_trace(tmp_path):
    kept, script = tmp_path / "kept.pt", tmp_path / "train.py"
    kept.write_bytes(KEPT)
    save = "import io; b = io.BytesIO(); torch.save(model, b); open(path, 'wb').write(b.getvalue())"
    script.write_text(f"path = {str(kept)!r}\n" + MLP.replace("    print(", f"    {save}\n    print(", 1))
    assert "saves a checkpoint into memory" in estimate("--", harness.PYTHON, script, rc=2)
    assert kept.read_bytes() == KEPT


def test_a_script_that_looks_for_torch_first_is_followed(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import importlib.util\nassert importlib.util.find_spec('torch')\n" + MLP)
    assert estimate("--", harness.PYTHON, script)["method"] == "trace_of_script"
