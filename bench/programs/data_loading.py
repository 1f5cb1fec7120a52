"""A step that is mostly loading: eight pictures made with NumPy, cropped, normalized and collated by a DataLoader, then a
small model. Each picture is several blocks of 150 KiB to 1 MiB from malloc."""
import numpy
import torch

import blocks


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        chance = numpy.random.default_rng(index)
        picture = chance.integers(0, 255, (256, 256, 3), dtype=numpy.uint8)
        at = chance.integers(0, 32, 2)
        cut = picture[at[0]:at[0] + 224, at[1]:at[1] + 224].astype(numpy.float32) / 255
        normal = (cut - numpy.float32(0.45)) / numpy.float32(0.22)
        return torch.from_numpy(numpy.ascontiguousarray(normal.transpose(2, 0, 1))), index % 10


def make_step():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = iter(torch.utils.data.DataLoader(Pictures(), batch_size=8))
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 7, stride=4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4),
                                torch.nn.Flatten(), torch.nn.Linear(128, 10))

    def step():
        pictures, classes = next(loader)
        torch.nn.functional.cross_entropy(model(pictures), classes).backward()
        model.zero_grad()

    return step


if __name__ == "__main__":
    blocks.main("data_loading", make_step(), {"pairs": 20, "block_steps": 3, "warm_steps": 1, "first_steps": 5})
