"""A training loop on random data on the GPU: what an estimate is held against.

    gpu_train.py MODEL BATCH OPTIMIZER fp32|amp [--limit-bytes N]   MODEL: timm:NAME or hf:NAME
Weights are drawn, nothing is downloaded. One line of JSON: PyTorch's own peaks, or {"out_of_memory": true}.
"""

import argparse
import json
from contextlib import nullcontext

import torch

STEPS, TOKENS = 4, 512


def timm_model(name, batch):
    import timm

    model = timm.create_model(name, pretrained=False)
    size = model.default_cfg.get("input_size", (3, 224, 224))

    def loss_of(model):
        images = torch.randn(batch, *size, device="cuda")
        labels = torch.randint(0, 1000, (batch,), device="cuda")
        return torch.nn.functional.cross_entropy(model(images), labels)

    return model, loss_of


def transformers_model(name, batch):
    import transformers as hf

    configuration, kind = {
        "gpt2": (hf.GPT2Config, hf.AutoModelForCausalLM),
        "bert": (hf.BertConfig, hf.AutoModelForMaskedLM),
        "opt": (hf.OPTConfig, hf.AutoModelForCausalLM),
        "t5": (hf.T5Config, hf.AutoModelForSeq2SeqLM),
    }[name]
    configuration = configuration(**({"decoder_start_token_id": 0} if name == "t5" else {}))
    model = kind.from_config(configuration)

    def loss_of(model):
        tokens = torch.randint(0, configuration.vocab_size, (batch, TOKENS), device="cuda")
        return model(input_ids=tokens, labels=tokens).loss

    return model, loss_of


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("batch", type=int)
    parser.add_argument("optimizer", choices=("SGD", "AdamW", "RMSprop", "Adafactor"))
    parser.add_argument("precision", choices=("fp32", "amp"))
    parser.add_argument("--limit-bytes", type=int, default=0)
    options = parser.parse_args()
    library, _, name = options.model.partition(":")
    if options.limit_bytes:
        total_bytes = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(options.limit_bytes / total_bytes)
    torch.manual_seed(0)
    model, loss_of = (timm_model if library == "timm" else transformers_model)(name, options.batch)
    model = model.cuda().train()
    more = {"momentum": 0.9} if options.optimizer == "SGD" else {}
    optimizer = getattr(torch.optim, options.optimizer)(model.parameters(), lr=1e-4, **more)
    try:
        for _ in range(STEPS):
            with torch.autocast("cuda", torch.bfloat16) if options.precision == "amp" else nullcontext():
                loss = loss_of(model)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    except torch.OutOfMemoryError:
        print(json.dumps({"out_of_memory": True}))
        return
    torch.cuda.synchronize()
    print(
        json.dumps(
            {"allocated_bytes": torch.cuda.max_memory_allocated(), "reserved_bytes": torch.cuda.max_memory_reserved()}
        )
    )


if __name__ == "__main__":
    main()
