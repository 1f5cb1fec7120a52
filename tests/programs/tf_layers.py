"""A Keras model within another, with layers whose names are words and beginnings of other names, trained for some
steps; what each layer's parameters take, as JSON. The last allocation says where the training ends.

An argument: a layer more, of the shapes of another one."""
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np
import tensorflow as tf

FLOAT, END = 4, 7_654_321
IN, OUT = 30, 3
has_twin = len(sys.argv) > 1

inner = [keras.layers.Dense(71, name="dense_kernel"), keras.layers.Dense(53, name="dense")]
if has_twin:
    inner.append(keras.layers.Dense(53, name="twin"))
    inner.append(keras.layers.Dense(53, name="twin_a"))
model = keras.Sequential([keras.layers.Input((IN,)), keras.layers.Dense(61, name="kernel"),
                          keras.Sequential(inner, name="inner_a"), keras.layers.Dense(OUT, name="dense_kernel_momentum")],
                         name="outer")
model.compile(optimizer="adam", loss="mse")
model.fit(np.ones((32, IN), "float32"), np.ones((32, OUT), "float32"), batch_size=8, epochs=2, verbose=0)
end = tf.fill([END], tf.constant(1, tf.uint8))
sizes = {}
for variable in model.trainable_variables:
    layer = variable.path.rpartition("/")[0]
    sizes[layer] = sizes.get(layer, 0) + int(np.prod(variable.shape)) * FLOAT
print(json.dumps({"layers": sizes, "end": END}))
