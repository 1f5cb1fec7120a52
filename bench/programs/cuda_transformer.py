"""The small transformer's training step on a GPU, timed. A step ends when the GPU has done it."""
import blocks
import models
import torch

if __name__ == "__main__":
    work = models.transformer_step(batch=32, length=128, device="cuda")

    def step():
        work()
        torch.cuda.synchronize()

    blocks.main("cuda_transformer", step, {"pairs": 200, "block_steps": 20, "warm_steps": 3, "first_steps": 20})
