"""Programs that leak, or keep what they should not: at least two of every bug that memory on a CPU can show.

Fragmentation by variable shapes and a cache that is not returned between phases need a caching allocator: they are
not in this set, which runs anywhere."""

from leaks.recipe import Recipe

LOSS, ACTIVATIONS, HIDDEN = "loss_kept_with_graph", "activations_kept", "hidden_state_not_detached"
EVALUATION, CYCLE, HOOK = "outputs_kept_with_graph", "graph_cycle", "hook_stores"
ON_MODEL, OPTIMIZER, GRADIENTS = "tensors_on_model", "optimizer_recreated", "gradients_kept"
KV, TRACEBACK, CACHE, WORKER = "kv_cache_growth", "exception_traceback", "lru_cache_on_tensors", "worker_growth"

KEEPS_ON_MODEL = """
class $Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.$layer = nn.Linear($n_in, $n_out)
        self.$seen = %s

    def forward(self, $value):
        $result = self.$layer($value)%s
        %s
        return $result
"""
INNER = {"n_in": (32, 96), "n_out": (64, 256), "n_rows": (8, 32)}
CLASSIFIER = """
$net = nn.Sequential(nn.Linear($n_in, $n_out), nn.ReLU(), nn.Linear($n_out, $n_classes))
$sgd = torch.optim.SGD($net.parameters(), lr=0.1)
"""
CLASSES = {**INNER, "n_classes": (100, 1000)}

RECIPES = [
    Recipe("metric summed with its graph", bug=LOSS, holder="$total", state="$total = 0.0", periodic=True,
           step="$total = $total + ($out - $y).abs().mean()  #@"),
    Recipe("losses of a validation set in a list", bug=LOSS, holder="$losses", state="$losses = []", periodic=True,
           step="$losses.append($model(torch.randn($n_batch, $n_inputs)).pow(2).mean())  #@"),
    Recipe("loss in a record of the step", bug=LOSS, holder="$log", state="$log = []", periodic=True,
           step="""
$penalty = ($model[0].weight * $model[0].weight.sigmoid()).sum()  #@
$log.append({"step": $i, "penalty": $penalty})
"""),
    Recipe("the training loss itself in a list", bug=LOSS, holder="$losses", train=False,
           state=CLASSIFIER + "$losses = []", step="""
$value = functional.cross_entropy($net(torch.randn($n_rows, $n_in)), torch.randint(0, $n_classes, ($n_rows,)))  #@
$sgd.zero_grad()
$value.backward()
$sgd.step()
$losses.append($value)
""", numbers=CLASSES),
    Recipe("the training loss itself in records", bug=LOSS, holder="$log", train=False,
           state=CLASSIFIER + "$log = {}", step="""
$scores = $net(torch.randn($n_rows, $n_in)).log_softmax(-1)
$value = functional.nll_loss($scores, torch.randint(0, $n_classes, ($n_rows,)))  #@
$value.backward()
$sgd.step()
$sgd.zero_grad()
$log[$i] = {"loss": $value, "step": $i}
""", numbers=CLASSES, churn_bytes=1_000_000),
    Recipe("slow: the loss alone under much churn", bug=LOSS, holder="$history", state="$history = []",
           step="""
$distance = ($out - $y).pow(2)  #@
$history.append($distance.mean())
""", churn_bytes=100_000_000),

    Recipe("features for a plot", bug=ACTIVATIONS, holder="$features", state="$features = []", periodic=True,
           step="""
$hidden = $model[0]($x)  #@
$features.append($hidden.detach())
"""),
    Recipe("activations by step in a dictionary", bug=ACTIVATIONS, holder="$by_step", state="$by_step = {}",
           step="""
with torch.no_grad():
    $by_step[$i] = $model[1]($model[0]($x))  #@
"""),
    Recipe("outputs of the training with their graph", bug=ACTIVATIONS, holder="$outputs", train=False,
           state=CLASSIFIER + "$outputs = []", step="""
$answer = $net(torch.randn($n_rows, $n_in))  #@
$sgd.zero_grad()
functional.cross_entropy($answer, torch.randint(0, $n_classes, ($n_rows,))).backward()
$sgd.step()
$outputs.append($answer)
""", numbers=CLASSES),
    Recipe("outputs of the training in records", bug=ACTIVATIONS, holder="$epoch", train=False,
           state=CLASSIFIER + "$epoch = {}", step="""
$target = torch.randint(0, $n_classes, ($n_rows,))
$answer = $net(torch.randn($n_rows, $n_in))  #@
$value = functional.cross_entropy($answer, $target)
$value.backward()
$sgd.step()
$sgd.zero_grad()
$epoch[$i] = {"answer": $answer, "loss": $value.item()}
""", numbers=CLASSES),
    Recipe("feature maps of the training with their graph", bug=ACTIVATIONS, holder="$maps", train=False,
           state=CLASSIFIER + "$maps = {}", step="""
$middle = $net[0](torch.randn($n_rows, $n_in))  #@
$value = $net[2]($middle.relu()).pow(2).mean()
$sgd.zero_grad()
$value.backward()
$sgd.step()
$maps[$i] = $middle
""", numbers=CLASSES),
    Recipe("pairs of feature maps of the training", bug=ACTIVATIONS, holder="$maps", train=False,
           state=CLASSIFIER + "$maps = []", step="""
$first = $net[0](torch.randn($n_rows, $n_in))  #@
$second = $first.sigmoid()  #@
$net[2]($second).log_softmax(-1).amax(-1).sum().backward()
$sgd.step()
$sgd.zero_grad()
$maps.append([$first, $second])
""", numbers=CLASSES),
    Recipe("slow: one row of activations under much churn", bug=ACTIVATIONS, holder="$rows", state="$rows = []",
           step="""
with torch.no_grad():
    $rows.append($model[0]($x[:2]).clone())  #@
""", churn_bytes=100_000_000),

    Recipe("recurrent state runs on", bug=HIDDEN, holder="$h", train=False,
           state="$cell = nn.GRUCell($n_in, $n_out)\n$h = torch.zeros($n_rows, $n_out)",
           step="$h = $cell(torch.randn($n_rows, $n_in), $h)  #@", numbers=INNER),
    Recipe("recurrent state with retain_graph", bug=HIDDEN, holder="$h", train=False,
           state="$cell = nn.RNNCell($n_in, $n_out)\n$h = torch.zeros($n_rows, $n_out)",
           step="""
$h = $cell(torch.randn($n_rows, $n_in), $h)  #@
$h.mean().backward(retain_graph=True)
""", numbers={"n_in": (8, 24), "n_out": (32, 64), "n_rows": (16, 48)}),
    Recipe("state of an LSTM runs on", bug=HIDDEN, holder="$carry", train=False,
           state="$lstm = nn.LSTM($n_in, $n_out, batch_first=True)\n$carry = None",
           step="""
$answer, $carry = $lstm(torch.randn($n_rows, 4, $n_in), $carry)  #@
del $answer
""", numbers={"n_in": (8, 24), "n_out": (16, 48), "n_rows": (4, 16)}),
    Recipe("state of an LSTM with retain_graph", bug=HIDDEN, holder="$carry", train=False, definitions="""
class $Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.$lstm = nn.LSTM($n_in, $n_out)
        self.$head = nn.Linear($n_out, 4)

    def forward(self, $value, $before):
        $all, $after = self.$lstm($value, $before)  #@
        return self.$head($all[-1]), $after
""", state="""
$net = $Model()
$sgd = torch.optim.SGD($net.parameters(), lr=1e-3)
$carry = (torch.zeros(1, $n_rows, $n_out), torch.zeros(1, $n_rows, $n_out))
""", step="""
$sgd.zero_grad()
$answer, $carry = $net(torch.randn(5, $n_rows, $n_in), $carry)  #@
$value = $answer.pow(2).mean()
$value.backward(retain_graph=True)
del $answer, $value
""", numbers={"n_in": (8, 24), "n_out": (16, 48), "n_rows": (4, 16)}),
    Recipe("running state of a layer", bug=HIDDEN, holder="$state",
           state="$layer = nn.Linear($n_in, $n_out)\n$state = torch.zeros($n_rows, $n_out)",
           step="$state = 0.9 * $state + $layer(torch.randn($n_rows, $n_in)).tanh()  #@", numbers=INNER),

    Recipe("predictions of an evaluation in a list", bug=EVALUATION, holder="$predictions", state="$predictions = []",
           step="""
$model.eval()
$predictions.append($model(torch.randn($n_batch, $n_inputs)))  #@
$model.train()
""", periodic=True),
    Recipe("scores of an evaluation are summed", bug=EVALUATION, holder="$score", state="$score = torch.zeros(())",
           step="""
$model.eval()
$score = $score + $model(torch.randn($n_batch, $n_inputs)).softmax(-1).amax()  #@
$model.train()
""", periodic=True),

    Recipe("gradients with their graph", bug=CYCLE, holder="$weight", train=False, definitions="""
def $fit($batch):
    $weight = nn.Parameter(torch.randn($n_in, $n_out))  #@
    $value = ($batch @ $weight).sigmoid().mean()  #@
    $value.backward(create_graph=True)  #@
    return $weight.grad.norm().item()
""", step="$fit(torch.randn($n_rows, $n_in))", numbers=INNER),
    Recipe("an inner model of every step", bug=CYCLE, holder="$inner", train=False,
           step="""
$inner = nn.Linear($n_in, $n_out)  #@
$value = $inner(torch.randn($n_rows, $n_in)).pow(2).mean()  #@
$value.backward(create_graph=True)  #@
""", numbers=INNER),

    Recipe("forward hook appends", bug=HOOK, holder="$kept",
           train=False, state="""
$kept = []
$net = nn.Sequential(nn.Linear($n_in, $n_out), nn.Tanh())
$net[0].register_forward_hook(lambda m, a, $result: $kept.append($result.detach()))
""", step="$net(torch.randn($n_rows, $n_in)).mean().backward()  #@", numbers=INNER),
    Recipe("tensor hook appends", bug=HOOK, holder="$grads", state="$grads = []", train=False,
           definitions="""
def $double($value):
    return $value.mul(2.0)
""", step="""
$leaf = torch.ones($n_rows, $n_in, requires_grad=True)
$twice = $double($leaf)
$twice.register_hook($grads.append)
$twice.sigmoid().sum().backward()  #@
""", numbers=INNER),

    Recipe("inputs in a list on the model", bug=ON_MODEL, holder="$Model.$seen",
           definitions=KEEPS_ON_MODEL % ("[]", "", "self.$seen.append($value)"), state="$net = $Model()",
           step="$net(torch.randn($n_rows, $n_in)).mean().backward()  #@", numbers=INNER, periodic=True),
    Recipe("outputs in a dictionary on the model", bug=ON_MODEL, holder="$Model.$seen",
           definitions=KEEPS_ON_MODEL % ("{}", "  #@", "self.$seen[len(self.$seen)] = $result.detach()"),
           state="$net = $Model()",
           step="$net(torch.randn($n_rows, $n_in)).mean().backward()", numbers=INNER, periodic=True),
    Recipe("slow: statistics on the model under much churn", bug=ON_MODEL, holder="$Model.$seen",
           definitions=KEEPS_ON_MODEL % ("[]", "", "self.$seen.append($result.detach().amax(0))  #@"),
           state="$net = $Model()", step="$net(torch.randn($n_rows, $n_in))",
           numbers={**INNER, "n_out": (256, 257)}, churn_bytes=100_000_000),

    Recipe("a new optimizer for every round", bug=OPTIMIZER, holder="$rounds", state="$rounds = []",
           step="""
$fresh = torch.optim.Adam($model.parameters(), lr=1e-4)
$rounds.append($fresh)
$fresh.step()  #@
"""),
    Recipe("the scheduler of every round is kept", bug=OPTIMIZER, holder="$plans", state="$plans = {}",
           step="""
$fresh = torch.optim.SGD($model.parameters(), lr=1e-4, momentum=0.9)
$plans[$i] = torch.optim.lr_scheduler.StepLR($fresh, 10)
$fresh.step()  #@
""", periodic=True),

    Recipe("gradients are zeroed, not freed", bug=GRADIENTS, holder="$wide", grows=False, train=False,
           state="$wide = nn.Linear($n_in, $n_out)\n$sgd = torch.optim.SGD($wide.parameters(), lr=0.1)",
           step="""
$wide(torch.randn($n_rows, $n_in)).mean().backward()  #@
$sgd.step()
$sgd.zero_grad(set_to_none=False)
""", after="""
with torch.no_grad():
    $answer = $wide(torch.randn($n_rows, $n_in)).sum().item()
""", numbers={"n_in": (256, 512), "n_out": (256, 512), "n_rows": (8, 16)}),
    Recipe("the model's gradients are zeroed, not freed", bug=GRADIENTS, holder="$wide", grows=False, train=False,
           state="$wide = nn.Sequential(nn.Linear($n_in, $n_out), nn.Tanh())",
           step="""
$wide.zero_grad(set_to_none=False)
$wide(torch.randn($n_rows, $n_in)).mean().backward()  #@
with torch.no_grad():
    for $weight in $wide.parameters():
        $weight -= 0.1 * $weight.grad
""", after="""
$wide.zero_grad(set_to_none=False)
with torch.no_grad():
    $answer = $wide(torch.randn($n_rows, $n_in)).sum().item()
""", numbers={"n_in": (256, 512), "n_out": (256, 512), "n_rows": (8, 16)}),

    Recipe("keys are joined over all requests", bug=KV, holder="$keys", train=False,
           state="$project = nn.Linear($n_in, $n_out)\n$keys = torch.zeros(1, 0, $n_out)",
           step="""
with torch.inference_mode():
    $key = $project(torch.randn(1, $n_rows, $n_in))
    $keys = torch.cat([$keys, $key], dim=1)  #@
    $answer = $keys[:, -1].sum().item()
""", numbers=INNER),
    Recipe("requests stay in the table", bug=KV, holder="$table", train=False,
           state="$project = nn.Linear($n_in, 2 * $n_out)\n$table = {}",
           step="""
with torch.no_grad():
    $pairs = $project(torch.randn($n_rows, $n_in))  #@
    $table[$i] = $pairs.chunk(2, dim=-1)
""", numbers=INNER),

    Recipe("caught exceptions in a list", bug=TRACEBACK, holder="$failures", state="$failures = []",
           definitions="""
def $check($step):
    $work = torch.full(($n_rows, $n_in), float($step))  #@
    if $work.sum() >= 0:
        raise ValueError($step)
""", step="""
try:
    $check($i)
except ValueError as $error:
    $failures.append($error)
""", numbers=INNER, periodic=True),
    Recipe("what sys.exc_info gave", bug=TRACEBACK, holder="$reports", state="$reports = {}",
           definitions="""
def $attempt($step):
    $scratch = torch.zeros($n_rows, $n_in)  #@
    return $scratch[$n_rows + $step]
""", step="""
try:
    $attempt($i)
except IndexError:
    $reports[$i] = sys.exc_info()
""", numbers=INNER),

    Recipe("a cache without a limit", bug=CACHE, holder="$table_of", definitions="""
@functools.lru_cache(maxsize=None)
def $table_of($step):
    return torch.arange($n_rows * $n_in, dtype=torch.float32).add($step)  #@
""", step="$table_of($i)", numbers=INNER, periodic=True),
    Recipe("tensors as the keys of a cache", bug=CACHE, holder="$norm", definitions="""
@functools.cache
def $norm($value):
    return float($value.norm())
""", step="""
$query = torch.randn($n_rows, $n_in)  #@
$norm($query)
""", numbers=INNER),
    Recipe("slow: a small cache under much churn", bug=CACHE, holder="$mask", definitions="""
@functools.lru_cache(None)
def $mask($step):
    return torch.ones(256).mul_($step)  #@
""", step="$mask($i)", churn_bytes=100_000_000),

    Recipe("a data set that remembers in its workers", bug=WORKER, holder="$Items.$known", train=False,
           definitions="""
multiprocessing.set_start_method("fork")


class $Items(torch.utils.data.Dataset):
    def __init__(self, $count):
        self.$count = $count
        self.$known = {}

    def __len__(self):
        return self.$count

    def __getitem__(self, $index):
        self.$known[$index] = torch.full(($n_rows, $n_in), float($index))  #@
        return self.$known[$index].sum()
""", state="$source = iter(torch.utils.data.DataLoader($Items(steps), num_workers=1))",
           step="next($source).item()", numbers=INNER),
    Recipe("a child process that collects", bug=WORKER, holder="$store", train=False,
           definitions="""
multiprocessing.set_start_method("fork")


def $serve($tasks, $answers):
    $store = []
    while ($task := $tasks.get()) is not None:
        $store.append(torch.full(($n_rows, $n_in), float($task)))  #@
        $answers.put(len($store))
""", state="""
$tasks, $answers = multiprocessing.SimpleQueue(), multiprocessing.SimpleQueue()
$child = multiprocessing.Process(target=$serve, args=($tasks, $answers))
$child.start()
""", step="$tasks.put($i)\n$answers.get()", after="$tasks.put(None)\n$child.join()", numbers=INNER),
]
