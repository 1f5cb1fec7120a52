"""What advise says of real snapshots, which have no steps, no modules and no roles of tensors."""

import json

import harness
from commands import snapshots


def advise(name, *options):
    return harness.execute([harness.COMMAND, "advise", snapshots.real(name), *options]).ok().stdout.decode()


def test_gradients_that_zero_grad_frees_after_the_next_forward_pass_are_told_with_their_saving():
    first = json.loads(advise("training_torch26.pickle", "--format", "json"))["advice"][0]
    # Without the 327 blocks that zero_grad frees the peak is 19,018,190,856 bytes, at event 6,439.
    assert (first["kind"], first["basis"]) == ("gradients_kept", "simulated")
    assert (first["bytes"], first["peak_bytes"]) == (22_827_925_508 - 19_018_190_856, 22_827_925_508)
    assert first["evidence"] == {"gradient_bytes": 3_877_647_360}
    assert "until benchmarking_script.py:105 frees them" in first["title"]


def test_the_setting_that_lowers_what_is_reserved_is_told():
    first = json.loads(advise("fullstep_ctx256_torch26.pickle", "--format", "json"))["advice"][0]
    assert (first["kind"], first["basis"]) == ("allocator", "simulated")
    assert first["fix"].startswith("set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: in the simulation, ")


def test_empty_cache_in_a_loop_is_told_with_its_segments_and_bytes():
    (only,) = json.loads(advise("empty_cache_loop_torch26.pickle", "--format", "json"))["advice"]
    assert (only["kind"], only["basis"], only["bytes"], only["peak_bytes"]) == ("allocator", "time", 0, None)
    told = {name: only["evidence"][name] for name in ("segments_freed", "freed_bytes", "empty_cache_calls")}
    assert told == {"segments_freed": 420, "freed_bytes": 156_019_720_192, "empty_cache_calls": 28}
    assert any("entrance.py:104" in line for line in only["stack"])
    text = advise("empty_cache_loop_torch26.pickle")
    assert text.startswith(
        "1 suggestion\n  allocator             time  torch.cuda.empty_cache() gave memory back 28 times: 420 segments (145 GiB) "
        "were freed and 420 allocated in 1 min 09 s;")
    assert "Unless others need the memory, do not call empty_cache() in the loop.\n" in text
    assert "Saves time, not memory; not simulated.\n" in text


def test_what_a_snapshot_cannot_tell_is_listed():
    text = advise("expandable_oom_4gpu.pickle")
    assert text.startswith("No suggestion has a computed saving.\nNext: a smaller batch or checkpointing; ")
    assert "\nNot checked: checkpointing, fused_attention, gradients_unused, sparse_gradient (a snapshot has no modules)\n" in text
    assert text.endswith("\nNot checked: distributed (what sharding saves is not simulated)\n")
    unknown = json.loads(advise("expandable_oom_4gpu.pickle", "--format", "json"))["unknown"]
    assert unknown["checkpointing"] == "a snapshot has no modules" and unknown["quantization"] == "dtypes are not recorded"
