import time

import torch


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 640

    def __getitem__(self, index):
        return torch.full((3, 64, 64), float(index)), str(index) * 4000


torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 64 * 64, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
loader = torch.utils.data.DataLoader(Pictures(), batch_size=16, num_workers=1, prefetch_factor=24)
waiting = iter(loader)
time.sleep(2)  # the texts fill the pipe, and what else the worker makes has to wait in it
for batch, _ in waiting:
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
    time.sleep(0.02)
