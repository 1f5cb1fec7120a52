"""What pools have reserved: asked only of pools that nobody can destroy meanwhile."""

MIB = 1 << 20


def end_of(recorded, index=0):
    devices = recorded.analysis()["driver"]["devices"]
    return devices[index]["end"]


CREATE = """
runtime = library("libcudart.so.12")
runtime.begin()
def pool(allocation=1, place=1):
    return runtime.make("cuMemPoolCreate", (ctypes.c_int * 22)(allocation, 0, place, 0))
"""


def test_a_created_pool_counts_while_it_is_there(record):
    recorded = record(
        CREATE
        + """
one, other = pool(), pool()
runtime.make("cuMemAllocFromPoolAsync", 5 * MIB, one, 0)
runtime.make("cuMemAllocFromPoolAsync", 40 * MIB, other, 0)
runtime.call("cuMemPoolDestroy", one)
end()
"""
    )
    end = end_of(recorded)
    assert end["by_kind"]["pools"] == recorded.said()["books"]["pools"] == 64 * MIB
    assert recorded.analysis()["lost"]["events"] == 0


def test_only_the_devices_own_pool_is_asked_at_a_synchronisation(record):
    recorded = record(
        CREATE
        + """
created = pool()
runtime.call("cuMemFreeAsync", runtime.make("cuMemAllocFromPoolAsync", 5 * MIB, created, 0), 0)
runtime.call("cuMemFreeAsync", runtime.make("cuMemAllocAsync", 5 * MIB, 0), 0)
runtime.call("cuEventSynchronize", 0)   # both shrink to nothing
end()
"""
    )
    # What the created one gave back is seen when a call names it next.
    assert recorded.said()["books"]["pools"] == 0 and end_of(recorded)["by_kind"]["pools"] == 32 * MIB


def test_a_pool_that_another_thread_destroys_is_never_asked(record):
    recorded = record(
        CREATE
        + """
import threading
context = ctypes.c_long()
runtime.call("cuCtxGetCurrent", context)
def come_and_go():
    runtime.call("cuCtxSetCurrent", context.value)
    for i in range(300):
        one = pool()
        runtime.make("cuMemAllocFromPoolAsync", MIB, one, 0)
        runtime.call("cuMemPoolDestroy", one)
def synchronise():
    runtime.call("cuCtxSetCurrent", context.value)
    for i in range(600): runtime.call("cuCtxSynchronize")
threads = [threading.Thread(target=work) for work in (come_and_go, come_and_go, synchronise, synchronise)]
for thread in threads: thread.start()
for thread in threads: thread.join()
end()
"""
    )
    assert end_of(recorded)["by_kind"]["pools"] == recorded.said()["books"]["pools"] == 0


def test_a_created_pool_that_the_device_allocates_from_is_a_loss_that_is_counted(record):
    recorded = record(
        CREATE
        + """
runtime.call("cuDeviceSetMemPool", 0, pool())
runtime.make("cuMemAllocAsync", 5 * MIB, 0)
end()
"""
    )
    assert end_of(recorded)["by_kind"]["pools"] == 0
    assert recorded.lost_in_driver() == 1


def test_pools_of_the_host_and_of_managed_memory_are_not_the_devices(record):
    recorded = record(
        CREATE
        + """
runtime.make("cuMemAllocFromPoolAsync", 5 * MIB, pool(1, 2), 0)
runtime.make("cuMemAllocFromPoolAsync", 7 * MIB, pool(2, 1), 0)
gone = runtime.make("cuMemAllocFromPoolAsync", 9 * MIB, pool(1, 3), 0)
runtime.call("cuMemFreeAsync", gone, 0)
end()
"""
    )
    end = end_of(recorded)
    assert end["by_kind"]["pools"] == 0 and end["beside"]["managed_bytes"] == 7 * MIB
    (host,) = recorded.analysis()["driver"]["hosts"]
    assert (host["pinned_bytes"], host["pinned_peak_bytes"]) == (5 * MIB, 14 * MIB)


def test_more_pools_than_are_followed_are_counted_as_lost(record):
    recorded = record(CREATE + "pools = [pool() for _ in range(66)]\nend()\n")
    assert recorded.lost_in_driver() == 2


def test_memory_comes_from_the_streams_device(record, machine):
    recorded = record(
        """
        runtime = library("libcudart.so.12")
        runtime.begin(1)
        stream = library("libmine.so", 0).make("cuStreamCreate", 0)
        runtime.begin(0)
        runtime.make("cuMemAllocAsync", 5 * MIB, stream)
        end(other=books(device=1))
        """,
        env=machine("h100-pair"),
    )
    said = recorded.said()
    assert said["books"]["pools"] == 0 and said["other"]["pools"] == 32 * MIB
    by_index = {one["device"]: one["end"] for one in recorded.analysis()["driver"]["devices"]}
    assert by_index["cuda:1"]["by_kind"]["pools"] == 32 * MIB and by_index["cuda:0"]["by_kind"]["pools"] == 0


def test_graph_memory_by_the_general_function(record):
    recorded = record(
        """
        runtime = library("libcudart.so.12")
        runtime.begin()
        for function in ("cuGraphAddNode", "cuGraphAddNode_v2"):
            graph, node, executable = runtime.make("cuGraphCreate", 0), (ctypes.c_long * 17)(10), ctypes.c_long()
            node[2] = node[3] = 1
            node[15] = 10 * MIB
            arguments = (graph, 0, 0, node) if function == "cuGraphAddNode" else (graph, 0, 0, 0, node)
            runtime.make(function, *arguments)
            runtime.call("cuGraphInstantiateWithFlags", executable, graph, 0)
            runtime.call("cuGraphLaunch", executable.value, 0)
            if function == "cuGraphAddNode": runtime.call("cuDeviceGraphMemTrim", 0)
        end()
        """
    )
    assert end_of(recorded)["by_kind"]["graphs"] == recorded.said()["books"]["graphs"] == 10 * MIB
