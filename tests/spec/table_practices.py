"""The blocks of the page on practices, one a chapter: what each is given and what is checked."""

import checks_practices as checks

# The chapter, as its heading has it, to (undefined names of the block's own code, check, module that it imports).
PRACTICES = {
    "Mixed Precision Training": ("", checks.mixed_precision, ""),
    "Gradient Checkpointing": ("", checks.checkpointing, ""),
    "Optimizer Zero Grad": ("model optimizer", checks.zero_grad, ""),
    "Skipping Gradients Entirely": ("", checks.skipping, ""),
    "Data Loading Optimization": ("", checks.loading, ""),
    "Model Quantization": ("", checks.quantization, ""),
    "Reduce Redundant Variables": ("", checks.variables, ""),
    "Dynamic Batch Size Adjustment": ("", checks.batch_size, ""),
    "Parameter Pruning": ("", checks.pruning, ""),
    "Distributed Training with Memory Splitting": ("", checks.distributed, ""),
    "Sparse Matrices": ("", checks.sparse, ""),
    "Knowledge Distillation": ("", checks.distillation, ""),
    "Dynamic Layer Offloading": ("", checks.offloading, ""),
    "Gradient Accumulation": ("wide_batches as dataloader, mean_square as criterion", checks.accumulation, ""),
    "Memory Monitoring": ("", checks.monitoring, "psutil"),
    "Profile First Approach": ("", checks.profile_first, "pandas"),
}
