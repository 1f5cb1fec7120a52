"""Programs that do not leak but look like it for a while: memory grows and stops, or goes up and down."""

from leaks.recipe import Recipe

INNER = {"n_in": (32, 96), "n_out": (64, 256), "n_rows": (8, 32)}
EVERY = {"n_every": (4, 9)}
FITTED = """
$net = nn.Sequential(nn.Linear($n_in, $n_out), nn.Tanh(), nn.Linear($n_out, $n_in))
$adam = torch.optim.Adam($net.parameters())
"""

RECIPES = [
    Recipe("plain training", step="$loss.item()"),
    Recipe("work spaces made in the first steps", state="$spaces = []",
           step="""
if len($spaces) < $n_few:
    $spaces.append(torch.zeros($n_rows, $n_in))
$spaces[$i % len($spaces)].normal_()
""", numbers={**INNER, "n_few": (4, 12)}),
    Recipe("a vocabulary that grows twice", train=False, state="$table = nn.Embedding($n_rows, $n_out)",
           step="""
if $i in ($n_first, $n_second):
    $wider = nn.Embedding(2 * $table.num_embeddings, $n_out)
    with torch.no_grad():
        $wider.weight[: $table.num_embeddings].copy_($table.weight)
    $table = $wider
$table(torch.randint(0, $table.num_embeddings, ($n_rows,))).sum().backward()
$table.zero_grad()
""", numbers={**INNER, "n_first": (5, 9), "n_second": (12, 18)}),
    Recipe("optimizer state made late",
           state="$late = nn.Linear($n_in, $n_out)\n$adam = torch.optim.Adam($late.parameters())",
           step="""
$late(torch.randn($n_rows, $n_in)).mean().backward()
if $i >= $n_every:
    $adam.step()
$adam.zero_grad()
""", numbers={**INNER, **EVERY}),
    Recipe("an evaluation every few steps",
           step="""
if $i % $n_every == 0:
    $model.eval()
    with torch.no_grad():
        $scores = torch.cat([$model(torch.randn($n_batch, $n_inputs)) for _ in range(5)])
    $model.train()
    $scores.mean().item()
    del $scores
""", numbers=EVERY),
    Recipe("predictions gathered and given back every few steps", state="$predictions = []",
           step="""
with torch.no_grad():
    $predictions.append($model($x))
if $i % $n_every == 0:
    torch.cat($predictions).mean().item()
    $predictions.clear()
""", numbers=EVERY),
    Recipe("gradients of several steps are summed",
           state="$wide = nn.Linear($n_in, $n_out)\n$sgd = torch.optim.SGD($wide.parameters(), lr=0.1)",
           step="""
($wide(torch.randn($n_rows, $n_in)).mean() / $n_every).backward()
if ($i + 1) % $n_every == 0:
    $sgd.step()
    $sgd.zero_grad()
""", numbers={**INNER, **EVERY}),
    Recipe("a loader with workers", train=False, definitions="""
multiprocessing.set_start_method("fork")


class $Items(torch.utils.data.Dataset):
    def __init__(self, $count):
        self.$count = $count

    def __len__(self):
        return self.$count

    def __getitem__(self, $index):
        return torch.full(($n_rows, $n_in), float($index))
""", state="$source = iter(torch.utils.data.DataLoader($Items(steps), num_workers=1, prefetch_factor=4))",
           step="next($source).mean().item()", numbers=INNER),
    Recipe("a data set whose cache is full after a while", train=False, definitions="""
multiprocessing.set_start_method("fork")


class $Items(torch.utils.data.Dataset):
    def __init__(self, $count):
        self.$count = $count
        self.$known = {}

    def __len__(self):
        return self.$count

    def __getitem__(self, $index):
        $slot = $index % $n_few
        if $slot not in self.$known:
            self.$known[$slot] = torch.full(($n_rows, $n_in), float($slot))
        return self.$known[$slot].sum()
""", state="$source = iter(torch.utils.data.DataLoader($Items(steps), num_workers=1))",
           step="next($source).item()", numbers={**INNER, "n_few": (5, 16)}),
    Recipe("sequences get longer up to a limit", train=False,
           state="$mixer = nn.Linear($n_in, $n_in)",
           step="""
$length = min(4 + $i, $n_rows)
$mixer(torch.randn($length, $n_in)).pow(2).sum().backward()
$mixer.zero_grad()
""", numbers=INNER),
    Recipe("sequences get longer to the end", train=False, rises=True, state=FITTED, step="""
$x = torch.randn(8 + $n_every * $i, $n_in)
$out = $net($x)
$loss = $out.pow(2).mean()
$adam.zero_grad()
$loss.backward()
$adam.step()
""", numbers={**INNER, **EVERY}),
    Recipe("batches sorted by length", train=False, rises=True, state=FITTED + """
$lengths = sorted(torch.randint(8, 8 + $n_every * steps, (steps,)).tolist())
""", step="""
$x = torch.randn($lengths[$i], $n_in)
$y = torch.randn_like($x)
$out = $net($x)
$loss = functional.mse_loss($out, $y)
$loss.backward()
$adam.step()
$adam.zero_grad()
""", numbers={**INNER, **EVERY}),
    Recipe("images get larger every few steps", train=False, rises=True, state="""
$net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
$adam = torch.optim.Adam($net.parameters())
""", step="""
$side = 12 + 4 * int(1.5 * $i**0.5)
$x = torch.randn(2, 3, $side, $side)
$y = torch.randint(0, 4, (2,))
$out = $net($x)
$loss = functional.cross_entropy($out, $y)
$adam.zero_grad()
$loss.backward()
$adam.step()
"""),
    Recipe("the last output of a module as inputs get longer", train=False, rises=True, definitions="""
class $Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.$layers = nn.ModuleList([nn.Linear($n_in, $n_in) for _ in range(3)])
        self.$last = None

    def forward(self, $value):
        for $layer in self.$layers:
            $value = $layer($value).tanh()
        self.$last = $value.detach()
        return $value
""", state="$net = $Model()", step="""
$parts = [torch.randn(4 + $i, $n_in) for _ in range(4)]
$net(torch.cat($parts)).pow(2).mean().backward()
$net.zero_grad()
""", numbers=INNER),
    Recipe("batches of random length", train=False, state="$mixer = nn.Linear($n_in, $n_in)",
           step="""
$length = int(torch.randint(1, $n_rows, ()).item())
$mixer(torch.randn($length, $n_in)).pow(2).sum().backward()
$mixer.zero_grad()
""", numbers=INNER),
    Recipe("a cache with a limit", definitions="""
@functools.lru_cache(maxsize=$n_few)
def $table_of($step):
    return torch.arange($n_rows * $n_in, dtype=torch.float32).add($step)
""", step="$table_of($i)", numbers={**INNER, "n_few": (4, 16)}),
    Recipe("a table with few keys", state="$table = {}",
           step="$table[$i % $n_few] = torch.randn($n_rows, $n_in)", numbers={**INNER, "n_few": (5, 16)}),
    Recipe("the last few in a queue", state="$recent = collections.deque(maxlen=$n_few)",
           step="$recent.append($out.detach())", numbers={"n_few": (5, 16)}),
    Recipe("numbers of every step", state="$history = []", step="$history.append($loss.item())"),
    Recipe("a mean kept in place", state="$mean = torch.zeros($n_batch, $n_outputs)",
           step="$mean.mul_(0.9).add_($out.detach(), alpha=0.1)"),
    Recipe("a mean without its graph", state="$total = 0.0", step="$total = $total + ($out - $y).abs().mean().detach()"),
    Recipe("recurrent state cut at every step", train=False,
           state="$cell = nn.GRUCell($n_in, $n_out)\n$h = torch.zeros($n_rows, $n_out)",
           step="""
$h = $cell(torch.randn($n_rows, $n_in), $h.detach())
$h.mean().backward()
$cell.zero_grad()
""", numbers=INNER),
    Recipe("recurrent state cut every few steps", train=False,
           state="$cell = nn.RNNCell($n_in, $n_out)\n$h = torch.zeros($n_rows, $n_out)",
           step="""
$h = $cell(torch.randn($n_rows, $n_in), $h)
if $i % $n_every == 0:
    $h.mean().backward()
    $h = $h.detach()
    $cell.zero_grad()
""", numbers={**INNER, **EVERY}),
    Recipe("a replay buffer that fills", state="$buffer = []",
           step="""
if len($buffer) == $n_few:
    $buffer.pop(0)
$buffer.append(torch.randn($n_rows, $n_in))
""", numbers={**INNER, "n_few": (10, 24)}),
    Recipe("a ring made at the start", state="$ring = torch.zeros($n_few, $n_rows, $n_in)",
           step="$ring[$i % $n_few] = torch.randn($n_rows, $n_in)", numbers={**INNER, "n_few": (10, 24)}),
    Recipe("a hook that keeps the last", state="""
$kept = {}
$model[0].register_forward_hook(lambda m, a, $result: $kept.__setitem__("last", $result.detach()))
""", step="$model(torch.randn($n_batch, $n_inputs))"),
    Recipe("keys of one request at a time", train=False, state="""
$project = nn.Linear($n_in, $n_out)
$keys = torch.zeros(1, 0, $n_out)
""", step="""
with torch.inference_mode():
    if $i % $n_every == 0:
        $keys = torch.zeros(1, 0, $n_out)
    $keys = torch.cat([$keys, $project(torch.randn(1, $n_rows, $n_in))], dim=1)
""", numbers={**INNER, **EVERY}),
    Recipe("keys up to the window", train=False, state="""
$project = nn.Linear($n_in, $n_out)
$keys = torch.zeros(1, 0, $n_out)
""", step="""
with torch.no_grad():
    $keys = torch.cat([$keys, $project(torch.randn(1, 4, $n_in))], dim=1)[:, -4 * $n_few :].clone()
""", numbers={**INNER, "n_few": (6, 16)}),
    Recipe("a mean of the weights", state="$mean = [p.detach().clone() for p in $model.parameters()]",
           step="""
with torch.no_grad():
    for $old, $new in zip($mean, $model.parameters()):
        $old.lerp_($new, 0.01)
"""),
    Recipe("exceptions that are dropped", definitions="""
def $check($step):
    $work = torch.full(($n_rows, $n_in), float($step))
    if $work.sum() >= 0:
        raise ValueError($step)
""", step="""
try:
    $check($i)
except ValueError as $error:
    $text = str($error)
""", numbers=INNER),
    Recipe("the last three states of the model", state="$saved = []",
           step="""
if $i % $n_every == 0:
    $saved.append({k: v.clone() for k, v in $model.state_dict().items()})
    del $saved[:-3]
""", numbers=EVERY),
    Recipe("second derivatives whose gradients are reset", train=False, definitions="""
def $fit($weight, $batch):
    $value = ($batch @ $weight).sigmoid().mean()
    ($slope,) = torch.autograd.grad($value, [$weight], create_graph=True)
    $slope.pow(2).sum().backward()
    $weight.grad = None
""", state="$weight = nn.Parameter(torch.randn($n_in, $n_out))",
           step="$fit($weight, torch.randn($n_rows, $n_in))", numbers=INNER),
    Recipe("one optimizer after the other",
           step="""
if $i % $n_every == 0:
    $optimizer = torch.optim.Adam($model.parameters(), lr=1e-3)
""", numbers=EVERY),
    Recipe("one model after the other", train=False, state="$net = None",
           step="""
if $i % $n_every == 0:
    $net = nn.Linear($n_in, $n_out)
$net(torch.randn($n_rows, $n_in)).mean().backward()
""", numbers={**INNER, **EVERY}),
    Recipe("layers are unfrozen one by one", train=False, state="""
$layers = nn.ModuleList([nn.Linear($n_in, $n_in) for _ in range(6)]).requires_grad_(False)
$adam = torch.optim.Adam([{"params": $layers[0].requires_grad_(True).parameters()}])
""", step="""
if 0 < $i < len($layers):
    $adam.add_param_group({"params": $layers[$i].requires_grad_(True).parameters()})
$value = torch.randn($n_rows, $n_in)
for $layer in $layers:
    $value = $layer($value)
$value.mean().backward()
$adam.step()
$adam.zero_grad()
""", numbers=INNER),
    Recipe("the best few are kept", state="$best = []",
           step="""
$best.append(($loss.item(), $i, $out.detach()))
$best = sorted($best)[:$n_few]
""", numbers={"n_few": (3, 9)}),
    # Python looks for cycles every 700 objects or so, every few steps here.
    Recipe("cycles that Python collects", definitions="""
class $Node:
    def __init__(self, $value):
        self.$value = $value
        self.$me = self
""", step="""
for _ in range(100):
    $Node(torch.randn($n_rows, $n_in))
""", numbers={**INNER, "n_rows": (2, 5)}),
]
