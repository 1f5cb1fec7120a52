"""A training loop on a caching allocator, without either: the events that PyTorch would have recorded.

The allocator is PyTorch's with its default settings on one stream: sizes rounded to 512 bytes, small and large
pools, best fit with the lowest address on a tie, blocks split and merged (c10/cuda/CUDACachingAllocator.cpp).
"""
import bisect
import random

MIB = 1 << 20
BASE = 0x7F3A00000000


class Allocator:
    """events: (action, address, bytes, stack); only `alloc` and `free` are called from outside."""

    def __init__(self):
        self.free_blocks = {True: [], False: []}  # small?: sorted (size, address)
        self.blocks = {}  # address: [size, small, segment, next address, previous address]
        self.segments = {}  # address: (size, small, stack)
        self.live = {}  # address: (requested, stack)
        self.next_segment = BASE
        self.events = []

    def alloc(self, requested, stack):
        size = max(512, -(-requested // 512) * 512)
        small = size <= MIB
        free = self.free_blocks[small]
        at = bisect.bisect_left(free, (size, 0))
        address = free.pop(at)[1] if at < len(free) else self._new_segment(size, small, stack)
        self._split(address, size, small)
        self.live[address] = (requested, stack)
        self.events.append(("alloc", address, requested, stack))
        return address

    def free(self, address, stack):
        requested, _ = self.live.pop(address)
        self.events.append(("free_requested", address, requested, stack))
        self.events.append(("free_completed", address, requested, stack))
        size, small, segment, after, before = self.blocks[address]
        free = self.free_blocks[small]
        for neighbour in (before, after):
            if neighbour is None or neighbour in self.live:
                continue
            other = self.blocks.pop(neighbour)
            del free[bisect.bisect_left(free, (other[0], neighbour))]
            size += other[0]
            if neighbour == before:
                del self.blocks[address]
                address, before = neighbour, other[4]
            else:
                after = other[3]
        self._place(address, size, small, segment, after, before)
        bisect.insort(free, (size, address))

    def _new_segment(self, size, small, stack):
        bytes_ = 2 * MIB if small else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
        address = self.next_segment
        self.next_segment += bytes_ + 2 * MIB  # with a gap: segments never touch
        self.segments[address] = (bytes_, small, stack)
        self.blocks[address] = [bytes_, small, address, None, None]
        self.events.append(("segment_alloc", address, bytes_, stack))
        return address

    def _split(self, address, size, small):
        whole, _, segment, after, before = self.blocks[address]
        rest = whole - size
        if rest < 512 if small else rest <= MIB:
            return
        self._place(address + size, rest, small, segment, after, address)
        self._place(address, size, small, segment, address + size, before)
        bisect.insort(self.free_blocks[small], (rest, address + size))

    def _place(self, address, size, small, segment, after, before):
        self.blocks[address] = [size, small, segment, after, before]
        if after is not None:
            self.blocks[after][4] = address
        if before is not None:
            self.blocks[before][3] = address

    def state(self):
        return {small: tuple(free) for small, free in self.free_blocks.items()}, dict(self.live)


def make_stacks(native, count=240):
    """Lists of frames, innermost first, as trees of a training program have them: long shared outer parts."""
    chance = random.Random(7)
    outer = [("train.py", "main", 210), ("train.py", "train_step", 148), ("trainer.py", "run", 77)]
    modules = [("/site-packages/torch/nn/modules/module.py", "_wrapped_call_impl", 1751),
               ("/site-packages/torch/nn/modules/module.py", "_call_impl", 1762)]
    stacks = []
    for i in range(count):
        layer = i % 12
        python = list(outer)
        for depth in range(3 if native else 2):
            python += modules
            python.append((f"model_{layer}.py", f"forward_{depth}", 30 + i // 12))
        if i % 3 == 0:
            python.append(("/site-packages/torch/nn/functional.py", "linear", 125))
        frames = python[::-1]
        if native:
            op = i % 40
            inner = [("??", f"c10::cuda::CUDACachingAllocator::{name}", 0)
                     for name in ("gather", "malloc", "allocate", "alloc_block")]
            middle = [("??", f"at::native::operation_{op}::level_{k}(at::Tensor const&)", 0)
                      for k in range(12 + op % 9)]
            tail = [("??", f"PyEval_level_{k}", 0) for k in range(3 + chance.randrange(4))]
            frames = inner + middle + tail + frames
        stacks.append(tuple(frames))
    return stacks


def training_step(allocator, stacks, tensors, chance):
    """`tensors` allocations and their frees: forward, backward in reverse, temporaries in between."""
    kept = []
    for i in range(tensors // 2):
        stack = stacks[i % len(stacks)]
        size = chance.choice([4096, 65_536, 262_144, 2_097_152, 8_388_608, 12_582_912]) + 512 * chance.randrange(64)
        kept.append(allocator.alloc(size, stack))
        if i % 4 == 0:
            allocator.free(kept.pop(chance.randrange(len(kept))), stack)
    done = len(kept) + (tensors // 2 - len(kept))
    while done < tensors:
        stack = stacks[(done * 7) % len(stacks)]
        gradient = allocator.alloc(1000 + 4096 * chance.randrange(256), stack)
        if kept:
            allocator.free(kept.pop(), stack)
        allocator.free(gradient, stack)
        done += 1
    while kept:
        allocator.free(kept.pop(), stacks[0])


def make_loop(native, tensors=2000):
    """(allocator in its final state, events before the loop, events of one turn): the turn ends in the state in
    which it begins, so it may be repeated any number of times."""
    stacks = make_stacks(native)
    allocator = Allocator()
    for i in range(300):  # parameters: live to the end
        allocator.alloc(1_000_000 + 4096 * (i % 50), stacks[i % len(stacks)])
    for _ in range(20):
        before = allocator.state()
        training_step(allocator, stacks, tensors, random.Random(1))
        if allocator.state() == before:
            break
    else:
        raise SystemExit("the loop does not become periodic")
    # Lists of events end every thousand: short-lived blocks until the loop begins with a list.
    while len(allocator.events) % 1000 != 0:
        allocator.free(allocator.alloc(512, stacks[1]), stacks[1])
    if allocator.state() != before:
        raise SystemExit("the blocks before the loop change it")
    first = len(allocator.events)
    training_step(allocator, stacks, tensors, random.Random(1))
    assert allocator.state() == before and (len(allocator.events) - first) % 1000 == 0
    return allocator, allocator.events[:first], allocator.events[first:]
