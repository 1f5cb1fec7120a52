"""The tiny MLP's training step, timed. A block holds 10,400 events, so that what a recorder does
every few thousand events falls into each of them."""
import blocks
import models

if __name__ == "__main__":
    blocks.main("mlp", models.mlp_step(),
                {"pairs": 120, "block_steps": 400, "warm_steps": 50, "first_steps": 500})
