#!/usr/bin/env python3
"""One Keras model on PyTorch, TensorFlow and JAX: what each of its layers needs, recorded and compared.

    python examples/frameworks_side_by_side.py                  # the backends that are installed
    python examples/frameworks_side_by_side.py --keep recordings torch jax
    gpumemprof diff recordings/torch recordings/jax             # all of a comparison, not the layers alone

Every backend runs in a process of its own under `gpumemprof run`; then `gpumemprof diff` compares each with the first.
Needs Keras 3, and of PyTorch, TensorFlow and JAX those that are to be compared.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

BACKENDS = ("torch", "tensorflow", "jax")
INPUTS, BATCH = 50, 2048  # so many that the peak is not where the weights are made
LAYERS = {"hidden_a": 257, "hidden_b": 131, "head": 11}  # name: outputs
FLOAT_BYTES = 4
COMMAND = os.environ.get("GPUMEMPROF_BIN", "gpumemprof")


def run_model(steps):
    """In the recorded process: builds the model, then predicts, or trains for some steps."""
    import keras
    import numpy as np

    if keras.backend.backend() == "jax":
        import jax

        # What JAX runs on threads of its own has neither a line of code nor a layer; this has it run in place.
        jax.config.update("jax_cpu_enable_async_dispatch", False)
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Input((INPUTS,))])
    for name, outputs in LAYERS.items():
        model.add(keras.layers.Dense(outputs, activation="relu", name=name))
    values = np.random.rand(BATCH * max(steps, 1), INPUTS).astype("float32")
    if steps:
        model.compile(optimizer="adam", loss="mse")
        wanted = np.random.rand(len(values), LAYERS["head"]).astype("float32")
        model.fit(values, wanted, batch_size=BATCH, verbose=0, shuffle=False)
    else:
        model(values)


def parameter_bytes():
    """Kernel and bias of each layer, by arithmetic on their shapes."""
    expected, inputs = {}, INPUTS
    for name, outputs in LAYERS.items():
        expected[name] = (inputs * outputs + outputs) * FLOAT_BYTES
        inputs = outputs
    return expected


def record(backend, folder, steps):
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
    quiet["TF_ENABLE_ONEDNN_OPTS"] = "0"  # else TensorFlow has its large blocks from a second allocator, a device apart
    argv = [COMMAND, "run", "-o", folder, "--", sys.executable, __file__, "--model", "--steps", str(steps)]
    environment = {**os.environ, **quiet, "KERAS_BACKEND": backend}
    done = subprocess.run(argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{backend}: {done.stderr}")


def compared(first, second):
    argv = [COMMAND, "diff", first, second, "--format", "json"]
    return json.loads(subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout)


def parameters_of(rows, side):
    """Of each layer, by the last part of its path."""
    found = dict.fromkeys(LAYERS, 0)
    for row in rows:
        name = (row["layer"] or "").rpartition("/")[2]
        if row["part"] == "parameters" and name in found:
            found[name] += row[f"{side}_bytes"]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("backends", nargs="*", metavar="BACKEND", help=f"of {', '.join(BACKENDS)}; the first is compared with")
    parser.add_argument("--keep", metavar="DIR", help="leave the recordings in DIR/BACKEND")
    parser.add_argument("--steps", type=int, default=0, help="train for so many steps; default: build and predict once")
    parser.add_argument("--model", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.model:
        return run_model(arguments.steps)
    backends = arguments.backends or [name for name in BACKENDS if importlib.util.find_spec(name)]
    if unknown := set(backends) - set(BACKENDS):
        parser.error(f"no backend of Keras: {', '.join(sorted(unknown))}")
    if len(backends) < 2:
        parser.error(f"needs two of {', '.join(BACKENDS)}; installed: {', '.join(backends) or 'none'}")
    with tempfile.TemporaryDirectory() as temporary:
        folders = {name: str(Path(arguments.keep or temporary) / name) for name in backends}
        for name, folder in folders.items():
            record(name, folder, arguments.steps)
        show(folders)


def show(folders):
    first, *others = folders
    rows = {}
    for name in others:
        diff = compared(folders[first], folders[name])
        rows[first], rows[name] = parameters_of(diff["by_layer"], "a"), parameters_of(diff["by_layer"], "b")
        at_peak = {first: diff["peak"]["a_bytes"], name: diff["peak"]["b_bytes"]}
        rows.setdefault("peak", {}).update(at_peak)
    print(f"{'parameters at the peak':24}" + "".join(f"{name:>14}" for name in (*folders, "arithmetic")))
    for layer, expected in parameter_bytes().items():
        print(f"{layer:24}" + "".join(f"{rows[name][layer]:14,}" for name in folders) + f"{expected:14,}")
    print(f"{'all at the peak':24}" + "".join(f"{rows['peak'][name]:14,}" for name in folders))
    for name in others:
        argv = [COMMAND, "diff", folders[first], folders[name], "--color", "never"]
        text = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout
        print(f"\n$ gpumemprof diff {first} {name}\n{text.splitlines()[0]}\n…")
        print("\n".join(next(part for part in text.split("\n\n") if part.startswith("By layer")).splitlines()))


if __name__ == "__main__":
    main()
