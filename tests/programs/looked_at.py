"""Objects that say so whenever anything of them is called, in the way of whoever looks through the program. Prints the calls."""

import sys
import types

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def says(what):
    print("called", what, flush=True)


class Kind(type):
    def __eq__(self, other):
        says("metaclass __eq__")
        return NotImplemented

    __hash__ = type.__hash__

    def __getattribute__(self, name):
        says(f"metaclass {name}")
        return super().__getattribute__(name)

    @property
    def __name__(self):
        says("metaclass __name__")
        return "made up"

    @property
    def __module__(self):
        says("metaclass __module__")
        return "made up"

    def __instancecheck__(self, instance):
        says("metaclass __instancecheck__")
        return False


class Odd(metaclass=Kind):
    def __getattribute__(self, name):
        says(f"Odd {name}")
        return super().__getattribute__(name)

    @property
    def __class__(self):
        says("Odd.__class__")
        return torch.Tensor

    @property
    def __dict__(self):
        says("Odd.__dict__")
        return {}


class Function(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, kinds, arguments=(), keywords=None):
        says(f"__torch_function__ {getattr(function, '__name__', function)}")
        return super().__torch_function__(function, kinds, arguments, keywords or {})


class Own(torch.nn.Parameter):
    def untyped_storage(self):
        says("untyped_storage")

    def data_ptr(self):
        says("data_ptr")

    def numel(self):
        says("numel")

    @property
    def grad(self):
        says("grad")

    def __getattribute__(self, name):
        says(f"Own {name}")
        return super().__getattribute__(name)


class Dispatch(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dispatch_sizes_strides_policy="sizes")

    @classmethod
    def __torch_dispatch__(cls, function, kinds, arguments=(), keywords=None):
        says(f"__torch_dispatch__ {function}")
        return NotImplemented


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_parameter("own", Own(torch.zeros(3)))
        self.odd = Odd()

    def __getattribute__(self, name):
        says(f"Model {name}")
        return super().__getattribute__(name)


class Module(types.ModuleType):
    def __getattribute__(self, name):
        if not name.startswith("__"):  # the import system's own
            says(f"module {name}")
        return super().__getattribute__(name)


class Space(dict):
    def __getitem__(self, key):
        says("dict __getitem__")
        return super().__getitem__(key)

    def items(self):
        says("dict items")
        return super().items()


class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, function, kinds, arguments=(), keywords=None):
        if function is not torch.ops.aten.empty.memory_format:  # what the program calls itself
            says(f"mode {function}")
        return function(*arguments, **(keywords or {}))


def traced(frame, event, argument):
    # The finder of imports is on the list of what a program can see.
    if "gpumemprof" in frame.f_code.co_filename and "when_imported" not in frame.f_code.co_filename:
        says(f"{event} in {frame.f_code.co_name}")
    return traced


sys.modules["odd"] = Module("odd")
inner = torch.ones(3)
sparse = torch.eye(3, requires_grad=True).to_sparse()
kept = [Function([1.0, 2.0]), Own(torch.zeros(3)), Odd(), Dispatch(inner), Model(), Space(a=inner), Kind("Made", (), {})]
kept += [sparse, torch.eye(3).to_sparse_csr()]
print("begin", flush=True)
sys.settrace(traced)
sys.setprofile(traced)
with Mode():
    many = [torch.empty(10) for _ in range(400)]
more = [torch.empty(10) for _ in range(800)]  # nothing hears of operators, so that sparse tensors are asked for their parts
sys.setprofile(None)
sys.settrace(None)
print("end", flush=True)
