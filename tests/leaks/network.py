"""The small network that most programs train: what a leak hides in."""

NUMBERS = {"n_inputs": (24, 96), "n_hidden": (64, 192), "n_outputs": (4, 16), "n_batch": (16, 64)}

STATE = """
$model = nn.Sequential(nn.Linear($n_inputs, $n_hidden), nn.ReLU(), nn.Linear($n_hidden, $n_outputs))
$optimizer = torch.optim.Adam($model.parameters(), lr=1e-3)
"""

STEP = """
$x = torch.randn($n_batch, $n_inputs)
$y = torch.randn($n_batch, $n_outputs)
$optimizer.zero_grad()
$out = $model($x)
$loss = functional.mse_loss($out, $y)
$loss.backward()
$optimizer.step()
"""
