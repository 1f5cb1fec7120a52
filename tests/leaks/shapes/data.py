"""Data that is loaded, made, gathered and used: it is held once."""

from leaks.shapes.text import block, in_scope, joined, network, small

USES = (
    "pass", "print(len(data))",
    "with torch.no_grad():\n    print(sum(model(x).sum().item() for x in data))",
    "joined = torch.stack(data)\nprint(joined.mean().item())",
    "file = io.BytesIO()\ntorch.save(data, file)",
    "for x in data:\n    model(x).square().mean().backward()\n    optimizer.step()\n    optimizer.zero_grad()",
)  # fmt: skip
ITEMS = (
    "torch.randn(<b>, <i>)", "torch.rand(<b>, <i>) * 2 - 1", "torch.arange(<b> * <i>).float().view(<b>, <i>)",
    "torch.tensor([[0.5] * <i>] * <b>)", "functional.normalize(torch.randn(<b>, <i>), dim=1)",
)  # fmt: skip


def a_list(rng):
    values = {**small(rng), "n": rng.randrange(40, 400)}
    form = rng.choice((
        "data = [<item> for _ in range(<n>)]",
        "data = []\nfor _ in range(<n>):\n    data.append(<item>)",
        "data = []\nfor _ in range(<n>):\n    item = <item>\n    item = (item - item.mean()) / item.std()\n    data.append(item)",
        "table = {}\nfor k in range(<n>):\n    table[k] = <item>\ndata = list(table.values())",
        "data = list({f'w{k}': <item> for k in range(<n>)}.values())",
    ))  # fmt: skip
    return in_scope(rng, block(joined(network(rng, values), form, rng.choice(USES)), item=rng.choice(ITEMS), **values))


def pairs_and_labels(rng):
    values = {**small(rng), "n": rng.randrange(40, 300)}
    return in_scope(rng, block(joined(network(rng, values), """
data, labels = [], []
for k in range(<n>):
    data.append(torch.randn(<b>, <i>))
    labels.append(torch.randint(0, <o>, (<b>,)))
""", rng.choice(USES)), **values))  # fmt: skip


def shards_from_files(rng):
    values = {**small(rng), "n": rng.randrange(15, 100)}
    return in_scope(rng, block("""
        file = io.BytesIO()
        torch.save({"weight": torch.randn(<h>, <i>), "bias": torch.randn(<h>)}, file)
        shards = []
        for _ in range(<n>):
            file.seek(0)
            shards.append(torch.load(file, weights_only=True))
        <use>
    """, use=rng.choice(("pass", "print(sum(s['weight'].sum().item() for s in shards))",
                         "whole = torch.cat([s['weight'] for s in shards])")), **values))  # fmt: skip


def features_gathered_and_joined(rng):
    values = {**small(rng), "n": rng.randrange(30, 300), "mode": rng.choice(("no_grad", "inference_mode"))}
    return in_scope(rng, joined(network(rng, values), block("""
        rows = []
        with torch.<mode>():
            for _ in range(<n>):
                rows.append(model(torch.randn(<b>, <i>)))
        <use>
    """, use=rng.choice(("whole = torch.cat(rows)\nprint(whole.shape)",
                         "whole = torch.stack(rows)\ndel rows\nprint(whole.mean(0).norm().item())",
                         "print(torch.cat(rows).argmax(1).bincount())")), **values)))  # fmt: skip


def training_on_a_list(rng):
    values = {**small(rng), "n": rng.randrange(20, 120), "e": rng.randrange(1, 4)}
    return joined(network(rng, values), block("""
        data = [(torch.randn(<b>, <i>), torch.randn(<b>, <o>)) for _ in range(<n>)]
        for epoch in range(<e>):
            for x, y in data:
                optimizer.zero_grad()
                functional.mse_loss(model(x), y).backward()
                optimizer.step()
        with torch.no_grad():
            print(sum(functional.mse_loss(model(x), y).item() for x, y in data))
    """, **values))  # fmt: skip


def a_loader(rng):
    values = {**small(rng), "n": rng.randrange(100, 500), "w": rng.choice((0, 0, 1)), "e": rng.randrange(1, 4),
              "f": rng.randrange(2, 5)}  # fmt: skip
    workers = "num_workers=<w>" + (", prefetch_factor=<f>" if values["w"] else "")
    return joined(network(rng, values), block("""
        data = torch.utils.data.TensorDataset(torch.randn(<n>, <i>), torch.randn(<n>, <o>))
        loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True, <workers>)
        for epoch in range(<e>):
            for x, y in loader:
                optimizer.zero_grad()
                functional.mse_loss(model(x), y).backward()
                optimizer.step()
    """, workers=workers, **values))  # fmt: skip


def figures_of_a_data_set(rng):
    values = {**small(rng), "n": rng.randrange(40, 300)}
    return in_scope(rng, block("""
        total, squares, largest = torch.zeros(<i>), torch.zeros(<i>, <i>), None
        for k in range(<n>):
            batch = torch.randn(<b>, <i>)
            total += batch.sum(0)
            squares += batch.T @ batch
            largest = batch.amax(0) if largest is None else torch.maximum(largest, batch.amax(0))
        print(total.norm().item(), squares.trace().item(), largest.max().item())
    """, **values))  # fmt: skip


SHAPES = [a_list, a_list, a_list, pairs_and_labels, shards_from_files, features_gathered_and_joined,
          training_on_a_list, a_loader, figures_of_a_data_set]  # fmt: skip
