"""Two hosts that are namespaces of this one: names, networks and monotonic clocks of their own. The kernel sets the clocks apart by what
`unshare` is told, which is what aligning them by collectives must find, to a millisecond."""
import subprocess
import uuid

import pytest

import rank_jobs as jobs

AHEAD_S = 100_000
OTHER = ["unshare", "--uts", "--time", "--monotonic", str(AHEAD_S), "--fork", "sh", "-c", 'hostname otherhost && exec "$@"', "sh"]


def can(argv):
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def network():
    """Two network namespaces that see each other, if the machine lets us have them; else one for both."""
    name = f"g{uuid.uuid4().hex[:6]}"
    ends = [f"{name}a", f"{name}b"]
    made = all(can(["ip", "netns", "add", end]) for end in ends) and can(
        ["ip", "link", "add", ends[0], "netns", ends[0], "type", "veth", "peer", "name", ends[1], "netns", ends[1]])
    for i, end in enumerate(ends if made else []):
        made = made and all(can(["ip", "-n", end, *words.split()]) for words in (
            f"addr add 10.77.0.{i + 1}/24 dev {end}", f"link set {end} up", "link set lo up"))
    yield [(["ip", "netns", "exec", end], end) for end in ends] if made else [([], "lo")] * 2
    for end in ends:
        can(["ip", "netns", "del", end])


@pytest.fixture(scope="module")
def hosts(tmp_path_factory, network):
    if not can([*OTHER, "true"]):
        pytest.skip("needs time namespaces (unshare --time)")
    above = tmp_path_factory.mktemp("hosts")
    address, port = ("10.77.0.1" if network[0][0] else "127.0.0.1"), jobs.free_port()
    running = []
    for node, (enter, interface) in enumerate(network):
        options = ("--nnodes", 2, "--node-rank", node, "--master-addr", address, "--master-port", port)
        argv = jobs.run_argv(above / f"host{node}", *options, kind="plain", steps=60, ranks=2)
        argv = [*enter, *(OTHER if node else []), *map(str, argv)]
        running.append(subprocess.Popen(argv, env={**jobs.ENVIRONMENT, "GLOO_SOCKET_IFNAME": interface},
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    for one in running:
        out, error = one.communicate(timeout=240)
        assert one.returncode == 0, (out, error)
    return above


def test_the_clocks_are_aligned_by_collectives(hosts):
    ranks = jobs.ranks_of(hosts / "host0", hosts / "host1")
    assert [one["rank"] for one in ranks["ranks"]] == [0, 1, 2, 3] and ranks["hosts"] == 2 and ranks["missing"] == []
    assert [one["host"] for one in ranks["ranks"]][2:] == ["otherhost"] * 2
    assert [one["clock"] for one in ranks["ranks"]] in ([0, 0, 1, 1], [1, 1, 0, 0])
    here, there = (ranks["clocks"][ranks["ranks"][i]["clock"]] for i in (0, 2))
    apart = here["shift_ns"] - there["shift_ns"]
    error = max(one["error_ns"] for one in (here, there))
    assert {here["aligned_by"], there["aligned_by"]} == {"reference", "collectives"}
    assert abs(apart - AHEAD_S * 10**9) <= error <= 1_000_000
    assert max(one["collectives"] for one in (here, there)) >= 60


def test_the_folder_above_is_the_same_job(hosts):
    above, both = jobs.ranks_of(hosts), jobs.ranks_of(hosts / "host0", hosts / "host1")
    assert above == both


def test_the_error_is_printed(hosts):
    text = jobs.analyze(hosts, output="text")
    assert "2, aligned by " in text and "error at most" in text
