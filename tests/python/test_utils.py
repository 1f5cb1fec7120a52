"""Sizes as text, and what the machine says of itself."""

import os

import pytest
import torch

from gpumemprof import utils
from gpumemprof._core.printed import format_size


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"), (1023, "1023 B"), (1024, "1.00 KB"), (1536, "1.50 KB"), (5 * 2**30, "5.00 GB"),
        (-5 * 2**30, "-5.00 GB"), (2**20 - 1, "1.00 MB"), (2**50, "1.00 PB"),
    ],
)  # fmt: skip
def test_sizes_as_text(size, text):
    assert utils.format_bytes(size) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (4_000_000, "3.81 MiB"), (532_531_828, "508 MiB"),
     (2**30 - 1, "1.00 GiB"), (1023 * 2**20, "1023 MiB"), (-5 * 2**20, "-5.00 MiB")],
)  # fmt: skip
def test_results_print_sizes_as_the_command_does(size, text):
    assert format_size(size) == text


def test_precision_is_that_of_the_caller():
    assert utils.format_bytes(1234567, precision=0) == "1 MB" and utils.format_bytes(1234567, 3) == "1.177 MB"


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [(1, "GB", "MB", 1024), (512, "KB", "MB", 0.5), (3, "b", "B", 3), (1, "TB", "B", 2**40)],
)
def test_units_convert(value, source, target, expected):
    assert utils.convert_bytes(value, source, target) == expected


def test_text_is_no_number():
    with pytest.raises(TypeError, match="value must be a number, not str"):
        utils.convert_bytes("1", "KB", "B")


def test_an_unknown_unit_is_an_error():
    with pytest.raises(ValueError, match="Unknown unit: XB"):
        utils.convert_bytes(1, "XB", "B")


def test_the_system_is_the_one_that_we_are_on():
    info = utils.get_system_info()
    assert info["cpu_count"] == os.cpu_count() and info["pytorch_version"] == torch.__version__
    assert info["memory_total_bytes"] == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert info["cuda_available"] == torch.cuda.is_available()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_its_information_is_an_error_not_a_number():
    assert utils.get_gpu_info() == {"error": "CUDA is not available"}
    assert utils.check_memory_fragmentation() == {"error": "CUDA is not available"}
    assert utils.memory_summary().startswith("Device:     cpu (CUDA is not available)\nAllocated:  ")


def test_suggestions_follow_the_figures():
    assert utils.suggest_memory_optimization({}) == []
    assert "expandable_segments" in utils.suggest_memory_optimization({"fragmentation_ratio": 0.5})[0]


def test_a_context_prints_what_it_added(capsys):
    with utils.MemoryContext("load", "cpu") as context:
        pass
    assert capsys.readouterr().err.startswith("load: ") and context.figures.peak_bytes > 0
