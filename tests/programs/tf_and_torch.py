"""One tensor of each framework, of a size of its own."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf
import torch

TORCH, TENSORFLOW = 1_234_567, 123_456
a = torch.empty(TORCH, dtype=torch.uint8)
b = tf.fill([TENSORFLOW], tf.constant(1, tf.uint8))
print(TORCH, TENSORFLOW)
