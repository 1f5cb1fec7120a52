"""What runs in the child process of `gpumemprof calibrate`: what CUDA, cuBLAS and cuDNN take of a GPU beside tensors."""
