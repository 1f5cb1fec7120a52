"""With samples of what the device says of the process the sum has no unknown term: to the byte, on the fake machine."""

from test_identity import EVERYTHING, MIB, device_of

# The samples are a second apart: nothing changes meanwhile.
AND_WAIT = EVERYTHING.replace("end(used=used)", "import time\ntime.sleep(2.6)\nend(used=used)")


def test_the_device_is_others_and_this_process_and_what_nobody_can_see_is_a_number(record):
    recorded = record(AND_WAIT)
    said, device = recorded.said(), device_of(recorded)
    books, sampled, end = said["books"], device["sampled"], device["end"]
    elsewhere, reserve = 20314 * MIB, 633 * MIB
    hidden = books["arrays"] - 4_000_000 + 6 * MIB
    assert sampled["process_used_bytes"] == sum(books.values())
    # Two others are named, with 4 MiB less than the board has beside us.
    assert sampled["other_processes_bytes"] == (17822 + 2488) * MIB and sampled["reserved_bytes"] == reserve
    assert sampled["of_no_process_bytes"] == 4 * MIB
    assert sampled["device_used_bytes"] == elsewhere + sum(books.values()) + reserve == said["management"]["device"]
    assert sampled["explained_bytes"] == end["explained_bytes"]
    assert sampled["unexplained_bytes"] == hidden
    assert sampled["others_and_unexplained_bytes"] is None
    assert set(sampled["unknown"]) <= {"framework_allocated", "framework.unservable"}
    text = recorded.text()
    assert "at the highest sample" in text
    (unexplained,) = [line for line in text.splitlines() if line.strip().startswith("unexplained")]
    assert unexplained.split()[1].startswith("+6.1")
