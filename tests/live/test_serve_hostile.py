"""Whatever comes over the wire, the next one is answered."""
import random
import re
import socket
import time

import pytest
from live_helpers import serving

GOOD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n"
STATUS = re.compile(rb"HTTP/1\.1 (200|400|401|404|405|413|414|421|431|503|505) [A-Z][A-Za-z ]+\r\n")


@pytest.fixture(scope="module")
def server():
    with serving() as started:
        yield started


def resident_bytes(pid):
    return int(open(f"/proc/{pid}/statm").read().split()[1]) * 4096


def send(port, data, timeout=30):
    """Everything that is answered to `data`, until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as client:
        try:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it has heard enough
        answer = b""
        try:
            while more := client.recv(65536):
                answer += more
                if b"text/event-stream" in answer:
                    break
        except ConnectionResetError:
            pass
        return answer


def healthy(server):
    return send(server.port, GOOD).endswith(b"\r\n\r\nok\n")


def test_mutated_requests_end_in_a_status_or_in_silence(server):
    rng = random.Random(20250101)
    seeds = [GOOD, b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer x\r\n\r\n",
             b"GET /?token=%41%zz HTTP/1.0\r\n\r\n", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"]
    pieces = [b"\r\n", b"\n", b"\0", b" ", b":", b"%", b"\xff", b"HTTP/1.1", b"Host: a\r\n", b"A" * 3000, b"\r\n\r\n", b"/"]
    for _ in range(600):
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(data) + 1)
            kind = rng.randrange(4)
            if kind == 0 and at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            elif kind == 1:
                data[at:at] = rng.choice(pieces)
            elif kind == 2:
                del data[at:at + rng.randint(1, 20)]
            else:
                data = data[:at] or bytearray(b"G")
        answer = send(server.port, bytes(data))
        assert answer == b"" or STATUS.match(answer), (bytes(data), answer[:200])
    assert healthy(server)


def test_random_bytes_are_no_request(server):
    rng = random.Random(7)
    for size in (1, 10, 100, 8191, 8192, 8193, 100_000):
        answer = send(server.port, rng.randbytes(size))
        assert answer == b"" or STATUS.match(answer)
    assert healthy(server)


def test_a_flood_takes_no_memory(server):
    healthy(server)
    before = resident_bytes(server.process.pid)
    for _ in range(20):
        answer = send(server.port, b"GET / HTTP/1.1\r\nX: " + b"a" * 4_000_000)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 431 ")
    for _ in range(20):
        send(server.port, b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 500_000)
    assert resident_bytes(server.process.pid) - before < 16 * 2**20
    assert healthy(server)


def test_silent_and_trickling_clients_do_not_hold_the_place_of_others(server):
    clients = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(120)]
    for client in clients[::2]:
        client.sendall(b"GET / HT")
    assert healthy(server), "they lose their places, then this one is heard"
    closed = 0
    for client in clients:
        try:
            closed += client.recv(1) == b""
        except OSError:
            closed += 1
        client.close()
    assert closed == len(clients)


def test_streams_are_counted(server):
    streams = []
    for _ in range(16):
        client = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        client.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.recv(12) == b"HTTP/1.1 200"
        streams.append(client)
    assert send(server.port, b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 503 ")
    assert healthy(server)
    for client in streams:
        client.close()
    for _ in range(100):  # their end is noticed
        if send(server.port, b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 200"):
            break
        time.sleep(0.1)
    else:
        raise AssertionError("streams that were closed still count")


def test_what_follows_a_request_is_not_listened_to(server):
    answer = send(server.port, GOOD + b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.count(b"HTTP/1.1 ") == 1 and answer.endswith(b"ok\n")
