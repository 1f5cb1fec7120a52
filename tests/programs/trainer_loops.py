"""Trains with somebody else's loop and prints its losses to the last bit: trainer_loops.py LIBRARY FOLDER

Six steps of an optimizer in each; two batches to a step with Transformers, an evaluation in the middle with Lightning.
"""

import json
import sys

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(16, 24), torch.nn.ReLU(), torch.nn.Linear(24, 1))

    def forward(self, x, labels=None):
        return {"loss": self.body(x).square().mean()}


def transformers(folder):
    from transformers import Trainer, TrainingArguments

    torch.manual_seed(0)
    trainer = Trainer(
        model=Net(),
        train_dataset=[{"x": torch.full((16,), float(i)), "labels": torch.ones(1)} for i in range(24)],
        args=TrainingArguments(
            output_dir=folder, per_device_train_batch_size=2, gradient_accumulation_steps=2, max_steps=6, logging_steps=1,
            report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True,
        ),
    )  # fmt: skip
    trainer.train()
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def lightning(folder):
    import lightning.pytorch as pl

    losses = []

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = Net()

        def training_step(self, batch, index):
            loss = self.net(batch[0])["loss"]
            losses.append(loss.item().hex())
            return loss

        def validation_step(self, batch, index):
            self.net(batch[0])

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

    torch.manual_seed(0)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(3, 16)), batch_size=1)
    trainer = pl.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=folder,
    )  # fmt: skip
    trainer.fit(Module(), data, data)
    return losses


if __name__ == "__main__":
    print(json.dumps({"losses": globals()[sys.argv[1]](sys.argv[2])}))
