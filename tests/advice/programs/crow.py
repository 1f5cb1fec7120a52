import torch


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 320

    def __getitem__(self, index):
        return torch.full((512,), float(index % 7))


torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.Dropout(0.1), torch.nn.Linear(512, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
loader = torch.utils.data.DataLoader(Samples(), batch_size=32, num_workers=1, prefetch_factor=2)
for batch in loader:
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
