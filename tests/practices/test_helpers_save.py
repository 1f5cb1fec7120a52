"""What each helper saves, counted by the recorder: exact bytes, by arithmetic on the shapes.

All of them run in one process that was attached to; each prints its figures, and the tests compare.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

PROGRAM = Path(__file__).parent / "programs" / "measure_helpers.py"
FLOAT = 4


@pytest.fixture(scope="module")
def figures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("helpers")
    env = dict(os.environ, OMP_NUM_THREADS="1", GPUMEMPROF_DIR="")
    done = subprocess.run(
        [sys.executable, PROGRAM], capture_output=True, text=True, timeout=120, env=env, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_gradients_that_are_dropped_are_free_until_the_next_backward_pass(figures):
    """set_to_none frees exactly the gradients; zeroing them frees nothing."""
    weights = 2 * (300 * 300 + 300) * FLOAT
    assert figures["set_to_none"] == weights
    assert figures["set_to_zero"] == 0


def test_a_checkpointed_model_keeps_the_input_of_each_block_alone(figures):
    """A block of three Linear, each followed by Tanh, saves three outputs and the first Linear's input, which is the
    output of the block before. Checkpointed, it keeps that, and the state of the random numbers."""
    rows, width, blocks, layers = 512, 128, 6, 3
    one = rows * width * FLOAT
    ran = figures["checkpointed"]
    states = blocks * ran["random_state"]
    assert ran["kept_without"] - ran["kept_with"] == blocks * (layers - 1) * one - states
    # At the peak one block is there again as a whole.
    assert ran["peak_without"] - ran["peak_with"] == (blocks - 1) * (layers - 1) * one - states
    assert ran["same_gradients"]


def test_accumulation_has_the_activations_of_one_piece(figures):
    """Two Tanh outputs of width 256 a sample, whole batches of 1024 in 8 pieces."""
    whole, pieces = figures["accumulated"]["whole"], figures["accumulated"]["pieces"]
    assert whole == 8 * pieces
    assert figures["accumulated"]["close"]


def test_frozen_layers_have_no_gradients(figures):
    assert figures["frozen"] == {"trained": ["1.weight", "1.bias"], "gradient_bytes": (100 * 10 + 10) * FLOAT}


def test_without_gradients_nothing_is_kept(figures):
    rows, width = 1000, 200
    assert figures["inference"] == {"kept_with_grad": 3 * rows * width * FLOAT, "kept_without": rows * width * FLOAT}


def test_pieces_are_reduced_as_they_come(figures):
    """Ten pieces of 1 MiB: the recipe has them and their stack; the helper the sum, the piece and at the first
    addition its result."""
    piece = 1 << 20
    assert figures["pieces"]["recipe"] == 20 * piece
    assert figures["pieces"]["helper"] == 3 * piece


def test_a_sparse_gradient_has_the_rows_that_were_looked_up(figures):
    vocabulary, width, looked_up = 20000, 64, 50
    assert figures["sparse"]["dense"] == vocabulary * width * FLOAT
    assert figures["sparse"]["sparse"] == looked_up * (width * FLOAT + 8)


def test_a_sparse_matrix_is_never_dense(figures):
    assert figures["sparse_matrix"]["same"]
    assert figures["sparse_matrix"]["peak"] < 64 * 1024 < 2000 * 2000 * FLOAT


def test_the_teachers_pass_is_not_kept(figures):
    """What the documented loss keeps beside the student's own graph is the teacher's output, no more."""
    rows, width = 256, 512
    assert figures["teacher"]["with_graph"] - figures["teacher"]["without"] >= rows * width * FLOAT
    assert figures["teacher"]["is_documented_loss"]
    assert not figures["teacher"]["in_training_mode"]


def test_a_layer_is_there_only_while_it_runs(figures):
    """Eight layers of 256 × 256 with biases; the peak over the weights' home is one of them, an input and an output."""
    layer, data = (256 * 256 + 256) * FLOAT, 4 * 256 * FLOAT
    assert figures["offloaded"]["peak"] == layer + 2 * data
    assert figures["offloaded"]["freed"] == 8 * layer
    assert figures["offloaded"]["same_output"] and figures["offloaded"]["same_gradients"]


def test_structured_pruning_makes_the_model_smaller_and_zeros_do_not(figures):
    before = (1000 * 500 + 500 + 500 * 100 + 100) * FLOAT
    after = (1000 * 350 + 350 + 350 * 100 + 100) * FLOAT
    assert figures["pruned"] == {"zeros": 0, "neurons": before - after, "share_of_zeros": 0.3}


def test_a_quantized_model_has_weights_of_one_byte(figures):
    """Packed weights are padded: a quarter of the float's, and at most a tenth of a quarter more."""
    weights = 512 * 512
    assert weights <= figures["quantized"]["bytes"] <= 1.1 * weights
    assert figures["quantized"]["close"] and figures["quantized"]["bare_layer"]


def test_half_precision_halves_the_activations_that_are_cast(figures):
    """Linear under autocast keeps its input in two bytes."""
    assert figures["mixed"]["activations_32"] == 2 * figures["mixed"]["activations_16"]


def test_a_loader_reads_ahead_no_more_than_it_says(figures):
    assert figures["loader"] == {"read_ahead": 2 * 2, "drops_none": True, "plain": True}


def test_the_folder_of_samples_keeps_none_of_them(figures):
    assert figures["folder"] == {"kept": 0, "order": [0, 2, 10]}


def test_the_monitor_shows_the_peak_of_its_context(figures):
    assert figures["monitor"] == {"peak": 3 << 20, "basis": "exact"}
