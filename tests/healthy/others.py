"""Keras, JAX, notebooks and servers: name → text."""

from healthy.training import HEAD, MLP, STEP

FIT = """
import numpy
import tensorflow
import keras
from keras import layers

keras.utils.set_random_seed(0)
x, y = numpy.random.rand(128, 16).astype("float32"), numpy.random.rand(128, 4).astype("float32")
m = keras.Sequential([layers.Input((16,)), layers.Dense(64, activation="relu"), layers.Dense(4)])
m.compile("adam", "mse")
"""
KERAS = {
    "a fit": FIT + "m.fit(x, y, epochs=3, batch_size=16, verbose=0)\n",
    "a fit with a validation and callbacks": FIT + """
stop = keras.callbacks.EarlyStopping(patience=5, restore_best_weights=True)
m.fit(x, y, epochs=4, batch_size=16, verbose=0, validation_split=0.25, callbacks=[stop])
""",
    "a fit of a data set": FIT + """
data = tensorflow.data.Dataset.from_tensor_slices((x, y)).shuffle(64).batch(16).prefetch(2)
m.fit(data, epochs=3, verbose=0)
""",
    "predictions": FIT + "for _ in range(4):\n    m.predict(x, verbose=0)\n",
    "convolutions, saved and loaded": FIT + """
import os
import tempfile

c = keras.Sequential([layers.Input((8, 8, 1)), layers.Conv2D(8, 3), layers.BatchNormalization(), layers.Flatten(), layers.Dense(4)])
c.compile("sgd", "mse")
c.fit(numpy.random.rand(64, 8, 8, 1), y[:64], epochs=2, verbose=0)
with tempfile.TemporaryDirectory() as folder:
    c.save(os.path.join(folder, "m.keras"))
    keras.models.load_model(os.path.join(folder, "m.keras")).predict(numpy.random.rand(8, 8, 8, 1), verbose=0)
""",
    "a training loop of one's own": """
import tensorflow as tf

w = tf.Variable(tf.random.normal((16, 4)))


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ w - y) ** 2)
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss


for _ in range(30):
    loss = step(tf.random.normal((32, 16)), tf.random.normal((32, 4)))
print(float(loss))
""",
}
JAX = {
    "a step of jit": """
import jax
import jax.numpy as jnp

w = jnp.zeros((16, 4))


@jax.jit
def step(w, key):
    x = jax.random.normal(key, (32, 16))
    return w - 0.1 * jax.grad(lambda w: jnp.mean((x @ w - 1) ** 2))(w)


for i in range(30):
    w = step(w, jax.random.key(i))
print(float(w.sum()))
""",
    "a scan and a vmap": """
import jax
import jax.numpy as jnp

total, all_of_them = jax.lax.scan(lambda c, x: (c + x, c), jnp.zeros(100), jnp.ones((50, 100)))
print(float(total.sum()), float(jax.vmap(jnp.dot)(all_of_them, all_of_them).sum()))
""",
    "a dictionary of parameters": """
import jax
import jax.numpy as jnp

p = {f"layer{i}": jax.random.normal(jax.random.key(i), (64, 64)) * 0.1 for i in range(4)}


def loss(p, x):
    for w in p.values():
        x = jnp.tanh(x @ w)
    return jnp.mean(x**2)


gradient = jax.jit(jax.value_and_grad(loss))
for i in range(20):
    value, g = gradient(p, jnp.ones((8, 64)))
    p = jax.tree.map(lambda a, b: a - 0.1 * b, p, g)
print(float(value))
""",
}
NOTEBOOK = """
import code

console = code.InteractiveInterpreter({"__name__": "__main__"})
for number, cell in enumerate(%r):
    exec(compile(cell, f"<cell {number}>", "exec"), console.locals)
"""
SERVER = MLP + """
import http.server
import threading
import urllib.request

m.eval()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        size = int(self.headers["Content-Length"])
        with torch.no_grad():
            answer = m(torch.frombuffer(bytearray(self.rfile.read(size)), dtype=torch.float32).view(-1, 64)).argmax(1)
        body = bytes(answer.tolist())
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.%s(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
for i in range(60):
    body = torch.randn(1 + i %% 7, 64).numpy().tobytes()
    urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}", body).read()
server.shutdown()
"""
PROGRAMS = {
    "a notebook": NOTEBOOK % ([MLP, "o = torch.optim.Adam(m.parameters())\nfor _ in range(10):\n" + STEP, "y = m(torch.randn(4, 64))\ny"],),
    "a notebook that looks at its data": NOTEBOOK % (
        [HEAD, "data = [torch.randn(3, 32, 32) for _ in range(100)]", "torch.stack(data).mean((0, 2, 3))",
         "[x.std().item() for x in data][:5]"],),
    "a server": SERVER % "HTTPServer",
    "a server with a thread a request": SERVER % "ThreadingHTTPServer",
    "requests that wait for each other": MLP + """
import asyncio

m.eval()


async def answer(queue):
    while (item := await queue.get()) is not None:
        x, done = item
        with torch.no_grad():
            done.set_result(m(x).sum().item())


async def main():
    queue = asyncio.Queue()
    worker = asyncio.create_task(answer(queue))
    for _ in range(20):
        waits = [asyncio.get_running_loop().create_future() for _ in range(4)]
        for done in waits:
            queue.put_nowait((torch.randn(8, 64), done))
        await asyncio.gather(*waits)
    queue.put_nowait(None)
    await worker


asyncio.run(main())
""",
    "texts with a cache of keys and values": HEAD + """
q, k, v = nn.Linear(32, 32), nn.Linear(32, 32), nn.Linear(32, 32)
with torch.no_grad():
    for request in range(12):
        keys, values = torch.zeros(0, 32), torch.zeros(0, 32)
        x = torch.randn(1, 32)
        for _ in range(10 + request % 5):
            keys, values = torch.cat([keys, k(x)]), torch.cat([values, v(x)])
            x = torch.softmax(q(x) @ keys.T, -1) @ values
""",
}  # fmt: skip
