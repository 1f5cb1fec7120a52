"""What single operations keep and ask for on a GPU, by arithmetic."""

from collections import Counter

import pytest
from estimate import tracing

pytest.importorskip("torch")
BATCH, HEADS, TOKENS, WIDTH = 2, 4, 48, 16  # of scripts/kernels.py
ELEMENTS = BATCH * HEADS * TOKENS * WIDTH
SCORES = BATCH * HEADS * TOKENS * TOKENS * 4


@pytest.fixture(scope="module")
def lists(tmp_path_factory):
    """Of the storages that the second step makes in its forward pass; and of what it makes in its backward pass."""
    folder = tmp_path_factory.mktemp("kernels")
    known = {}

    def made(name):
        if name not in known:
            path = tracing.trace(folder / name.replace(" ", "-"), [tracing.SCRIPTS / "kernels.py", name])
            lines = [line.split() for line in path.read_text().splitlines()]
            starts = [at for at, line in enumerate(lines) if line == ["p", "backward"]]
            ends = [at for at, line in enumerate(lines) if line == ["p", "optimizer"]]
            passes = (lines[ends[0] : starts[1]], lines[starts[1] : ends[1]])
            known[name] = [[int(line[2]) for line in one if line[0] == "a"] for one in passes]
        return known[name]

    return made


@pytest.fixture(scope="module")
def sizes(lists):
    return lambda name: [Counter(one) for one in lists(name)]


@pytest.fixture(scope="module")
def order(lists):
    return lambda name: lists(name)[0]


def test_dropout_keeps_its_output_and_a_byte_an_element(sizes):
    forward, backward = sizes("dropout")
    assert forward == {ELEMENTS * 4: 2, ELEMENTS: 1, 4: 1}  # the product, the output; the mask; the loss
    assert backward[ELEMENTS] == 0


def test_attention_in_single_precision_keeps_sums_of_rows_but_no_scores(sizes):
    forward, _ = sizes("attention")
    assert forward[SCORES] == 0 and forward[ELEMENTS * 4] == 1
    assert forward[BATCH * HEADS * 64 * 4] == 1  # rows in multiples of 32


def test_attention_in_half_precision_keeps_a_number_a_row(sizes):
    forward, _ = sizes("half")
    assert forward[SCORES] == 0 and forward[ELEMENTS * 2] == 2  # the copy of the weights, the output
    assert forward[BATCH * HEADS * TOKENS * 4] == 1


def test_attention_with_a_bias_that_lies_together_is_fused(sizes):
    forward, _ = sizes("bias")
    assert forward[SCORES] == 0 and forward[BATCH * HEADS * 64 * 4] == 1


def test_attention_with_a_bias_whose_columns_lie_apart_keeps_its_scores(sizes):
    forward, _ = sizes("strided bias")
    assert forward[SCORES] >= 2 and forward[BATCH * HEADS * 64 * 4] == 0  # before and after the softmax


def test_a_mask_of_ones_that_the_script_made_is_known_to_be_set(sizes):
    forward, _ = sizes("mask")
    assert forward[BATCH * TOKENS * TOKENS] == 0 and forward[BATCH * TOKENS * TOKENS * 4] == 0


def test_what_was_written_over_is_no_longer_known(sizes):
    forward, _ = sizes("cut mask")
    assert forward[ELEMENTS * 4] == 0


def test_a_bias_s_gradient_has_partial_sums_as_large_as_its_kernel_makes_them(sizes):
    _, backward = sizes("rows")
    # 640 outputs, 4 a thread, 32 threads side by side and 4 above one another: 5 blocks across, and 16 rows a thread
    # are left where 16,384 rows are shared by 256 blocks (an A100 has room for 108·16 / 5 = 346).
    assert backward[4 * 640 * 256 * 32 * 4] == 1 and backward[4 * 5] == 1


def test_gradients_that_meet_are_summed_into_the_first(sizes):
    _, backward = sizes("met")
    # Of sin: its cosine and the product; of exp: the product, added into; of the doubling: its product.
    assert backward[ELEMENTS * 4] == 4


def test_autocast_casts_the_bias_first_and_the_input_last(order):
    bias, weights, data, output = 640 * 2, 640 * 96 * 2, 3 * 96 * 2, 3 * 640 * 2
    made = order("lowered")
    assert [size for size in made if size in (bias, weights, data, output)] == [bias, weights, data, output]


def test_a_convolution_copies_what_lies_in_planes_and_a_1x1_is_a_product(sizes):
    forward, backward = sizes("convolution")
    data, middle, end = 8 * 16 * 32 * 32 * 4, 8 * 32 * 32 * 32 * 4, 8 * 64 * 32 * 32 * 4
    dense, pointwise = 32 * 16 * 9 * 4, 64 * 32 * 4
    assert forward[400 + data + middle + dense] == 1 and forward[400] == 1
    assert backward[400 + data + middle + dense + 16 * dense] == 1  # partial sums of the weight's gradient
    assert backward[400] == 1 and backward[400 + 8 * pointwise] == 1  # a product a sample
    assert forward[end] == 1


@pytest.mark.parametrize(
    "rows, outputs, recorded",
    [
        (18912, 768, [116391936, 24]),
        (18912, 3072, [138412032, 96]),
        (18912, 2304, [139198464, 72]),
        (96, 1000, []),
    ],
)
def test_partial_sums_are_those_that_an_h200_had(monkeypatch, rows, outputs, recorded):
    import torch
    from gpumemprof._children.estimate import reductions

    monkeypatch.setattr(reductions, "MULTIPROCESSORS", 132)
    gradient = torch.empty(rows, outputs, dtype=torch.bfloat16, device="meta")
    asked = reductions.temporaries(gradient, [0], gradient.sum(0))
    assert asked == ([recorded] if recorded else [])


def test_gradients_of_a_convolution_lie_as_its_input_does():
    import torch
    from gpumemprof._children.estimate import convolutions

    planes = torch.empty(2, 8, 4, 4, device="meta")
    last, weight = planes.to(memory_format=torch.channels_last), torch.empty(8, 8, 3, 3, device="meta")
    data, filters, bias = convolutions.gradients((planes, weight, None), last, weight)
    assert data.stride() == last.stride() and bias is None
    assert filters.is_contiguous(memory_format=torch.channels_last)
    assert convolutions.gradients((planes, weight, None), planes, weight)[0] is planes
