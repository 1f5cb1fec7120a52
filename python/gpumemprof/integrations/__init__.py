"""Memory in experiment trackers and training loops: mlflow, wandb, tensorboard, lightning, transformers.

One module each, which imports its library only when it is used:

    from gpumemprof.integrations.mlflow import log_memory
    from gpumemprof.integrations.lightning import GPUMemoryCallback
"""
