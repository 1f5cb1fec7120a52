"""A language model trained on sequences whose lengths differ from step to step: what allocator settings change.

    gpu_lengths.py STEPS [LIMIT_MIB]   One line of JSON: PyTorch's peaks, or {"out_of_memory": true}.
LIMIT_MIB: what PyTorch may reserve in all.
"""

import json
import random
import sys

import torch
from torch import nn

WIDTH, LAYERS, VOCABULARY, ROWS = 768, 6, 16_000, 16


def main():
    steps, limit_mib = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    if limit_mib:
        total_bytes = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(limit_mib * 2**20 / total_bytes)
    torch.manual_seed(0)
    lengths = random.Random(7)
    layer = nn.TransformerEncoderLayer(WIDTH, 12, 4 * WIDTH, dropout=0.0, batch_first=True)
    model = nn.Sequential(
        nn.Embedding(VOCABULARY, WIDTH),
        nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False),
        nn.Linear(WIDTH, VOCABULARY),
    ).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    try:
        for _ in range(steps):
            tokens = torch.randint(0, VOCABULARY, (ROWS, lengths.randrange(64, 1024)), device="cuda")
            loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    except torch.OutOfMemoryError:
        print(json.dumps({"out_of_memory": True}), flush=True)
        raise
    print(
        json.dumps(
            {
                "allocated_bytes": torch.cuda.max_memory_allocated(),
                "reserved_bytes": torch.cuda.max_memory_reserved(),
                "retries": torch.cuda.memory_stats()["num_alloc_retries"],
            }
        )
    )


if __name__ == "__main__":
    main()
