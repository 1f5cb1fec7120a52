"""One copy between two tensors that are there, timed: nothing is allocated, so what is on top is the look at the copy."""
import blocks
import torch

if __name__ == "__main__":
    torch.set_num_threads(1)
    source, target = torch.ones(64), torch.zeros(64)
    blocks.main("copies", lambda: target.copy_(source),
                {"pairs": 60, "block_steps": 20_000, "warm_steps": 1000, "first_steps": 1000})
