"""What holds a sparse tensor holds its indices and values."""

import harness
import nested
import pytest

pytest.importorskip("torch")

ROWS = 1000
# The columns are one of the two rows of the COO tensor's indices, which they keep.
COMPRESSED = (ROWS + 1) * 8 + ROWS * (2 * 8 + 4)
PROGRAM = """
import torch, gpumemprof
at = torch.stack([torch.arange(1000), torch.arange(1000)])
cache = {}
for step in range(40):
    made = torch.sparse_coo_tensor(at.clone(), torch.ones(1000), (1000, 1000)).coalesce()AS_LAYOUT
    cache[step] = (torch.ones(2000), made)
    del made
    gpumemprof.step()
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("as_layout", "part_bytes"), [
    ("", ROWS * (2 * 8 + 4)),
    (".to_sparse_csr()", COMPRESSED),
    (".to_sparse_csc()", COMPRESSED),
])  # fmt: skip
def test_it_is_one_leak_with_what_is_kept_beside_it(tmp_path, as_layout, part_bytes):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("AS_LAYOUT", as_layout))
    folder = nested.record(tmp_path / "r", [harness.PYTHON, program], ["--explain-leaks"]).ok().folder
    (leak,) = [one for one in harness.analysis(folder)["findings"] if one["kind"] == "leak"]
    assert leak["evidence"]["holder_name"] == "cache"
    assert leak["evidence"]["bytes_a_step"] == part_bytes + 4 * 2000
    assert len(leak["lines"]) == 2
