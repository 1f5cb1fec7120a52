"""The small transformer's training step, timed."""
import blocks
import models

if __name__ == "__main__":
    blocks.main("transformer", models.transformer_step(),
                {"pairs": 600, "block_steps": 3, "warm_steps": 1, "first_steps": 10})
