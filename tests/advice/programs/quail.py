import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1024))


@torch.no_grad()
def accuracy(batches):
    model.eval()
    results, labels = [], []
    for _ in range(batches):
        result = model(torch.randn(128, 64))
        results.append(result)
        labels.append(torch.randint(0, 1024, (128,)))
    return (torch.cat(results).argmax(1) == torch.cat(labels)).float().mean().item()


print(accuracy(24))
