"""Trains a small language model on made-up text and says how well it predicts.

Nothing in here knows of gpumemprof: it is an ordinary PyTorch program.

    python examples/train_transformer.py --steps 40
"""

import argparse
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SUBJECTS = ["the model", "a gradient", "the optimizer", "one tensor", "the loader", "my batch"]
VERBS = ["holds", "frees", "copies", "shares", "loses", "finds"]
OBJECTS = ["its memory", "a buffer", "the weights", "some bytes", "every page", "the cache"]
ALPHABET = " abcdefghijklmnopqrstuvwxyz."


class Sentences(Dataset):
    """Random sentences as numbers, one for each character; item i is the same in every run."""

    def __init__(self, count: int, length: int, seed: int):
        self.count = count
        self.length = length
        self.seed = seed

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        rng = random.Random(self.seed * 1_000_003 + index)
        text = ""
        while len(text) <= self.length:
            words = rng.choice(SUBJECTS), rng.choice(VERBS), rng.choice(OBJECTS)
            text += " ".join(words) + ". "
        numbers = torch.tensor([ALPHABET.index(c) for c in text[: self.length + 1]])
        return numbers[:-1], numbers[1:]


class LanguageModel(nn.Module):
    """Predicts the next character from those before it."""

    def __init__(self, width: int, layers: int, heads: int, length: int):
        super().__init__()
        self.characters = nn.Embedding(len(ALPHABET), width)
        self.positions = nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.1, batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, len(ALPHABET))
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        length = text.shape[1]
        where = torch.arange(length, device=text.device)
        hidden = self.characters(text) + self.positions(where)
        hidden = self.blocks(hidden, mask=self.mask[:length, :length], is_causal=True)
        return self.head(self.norm(hidden))


def loss_of(model: nn.Module, text: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    prediction = model(text)
    return nn.functional.cross_entropy(prediction.flatten(0, 1), target.flatten())


def train(model, loader, optimizer, steps: int, device: torch.device) -> None:
    model.train()
    batches = iter(loader)
    for step in range(1, steps + 1):
        text, target = (part.to(device, non_blocking=True) for part in next(batches))
        loss = loss_of(model, text, target)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 10 == 0 or step == 1:
            print(f"step {step:4d}  loss {loss.item():.3f}", flush=True)


@torch.no_grad()
def evaluate(model, loader, device: torch.device) -> float:
    model.eval()
    losses = [loss_of(model, text.to(device), target.to(device)).item() for text, target in loader]
    return sum(losses) / len(losses)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=128, help="characters in a sample")
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2, help="processes that load data")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def main() -> None:
    args = parse_arguments()
    torch.manual_seed(0)
    device = torch.device(args.device)
    model = LanguageModel(args.width, args.layers, heads=4, length=args.length).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    training = Sentences(args.steps * args.batch, args.length, seed=1)
    unseen = Sentences(8 * args.batch, args.length, seed=2)
    loading = dict(batch_size=args.batch, num_workers=args.workers, pin_memory=device.type == "cuda")

    parameters = sum(p.numel() for p in model.parameters())
    print(f"{parameters / 1e6:.1f} M parameters on {device}", flush=True)
    began = time.perf_counter()
    train(model, DataLoader(training, shuffle=True, **loading), optimizer, args.steps, device)
    print(f"{args.steps} steps in {time.perf_counter() - began:.1f} s")
    print(f"loss on unseen text {evaluate(model, DataLoader(unseen, **loading), device):.3f}")


if __name__ == "__main__":
    main()
