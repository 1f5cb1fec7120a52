"""Modules and training loops under the profiler. Imports PyTorch."""

from ._profiling.modules import ProfiledModule as ProfiledModule
from ._profiling.modules import profile_model as profile_model
from ._profiling.modules import profile_model_training as profile_model_training
from ._profiling.modules import torch as torch
