"""A Keras model, trained for some steps; a last allocation says where the training ends."""
import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np
import tensorflow as tf

BATCH, STEPS, EPOCHS = 32, 5, 2
LAYERS = {"hidden_a": (50, 257), "hidden_b": (257, 131), "head": (131, 11)}  # inputs, outputs
END = 7_654_321

keras.utils.set_random_seed(1)
layers = [keras.layers.Input((50,))]
for name, (_, outputs) in LAYERS.items():
    layers.append(keras.layers.Dense(outputs, activation=None if name == "head" else "relu", name=name))
model = keras.Sequential(layers)
model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
count = BATCH * STEPS
x = np.random.rand(count, 50).astype("float32")
y = np.random.randint(0, 11, count)
history = model.fit(x, y, batch_size=BATCH, epochs=EPOCHS, verbose=0, shuffle=False)
end = tf.fill([END], tf.constant(1, tf.uint8))
print(json.dumps({"batch": BATCH, "steps": STEPS * EPOCHS, "layers": LAYERS, "end": END,
                  "loss": history.history["loss"]}))
