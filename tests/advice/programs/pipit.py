import torch


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Tanh(), torch.nn.Linear(256, 8))

    def forward(self, x):
        return self.layers(x)


class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 256), torch.nn.Tanh(), torch.nn.Linear(256, 8))

    def forward(self, x):
        return self.layers(x)


def main():
    torch.manual_seed(0)
    encoder, head = Encoder(), Head()
    latents = [encoder(torch.randn(512, 64)) for _ in range(24)]
    optimizer = torch.optim.SGD(head.parameters(), lr=0.01)
    for latent in latents:
        optimizer.zero_grad()
        z = latent.detach()
        torch.nn.functional.mse_loss(head(z), z).backward()
        optimizer.step()


main()
