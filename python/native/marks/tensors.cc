#include "native/marks/tensors.h"

#include <cstdint>

namespace gpumemprof::python {
namespace {

// Of torch._C, kept for the life of the process.
PyTypeObject* g_tensor = nullptr;
PyObject* g_no_dispatch = nullptr;  // the __torch_dispatch__ of classes that have none of their own
PyObject* g_data_address = nullptr;
PyObject *g_grad = nullptr, *g_is_leaf = nullptr, *g_cdata = nullptr;
PyObject* g_disable_functions = nullptr;
PyObject *g_enter_name = nullptr, *g_exit_name = nullptr, *g_dispatch_name = nullptr;
PyObject* g_local_name = nullptr;

PyObject* attribute(PyObject* object, const char* name) {
  PyObject* value = object ? PyObject_GetAttrString(object, name) : nullptr;
  if (!value) PyErr_Clear();
  return value;
}

/// What a descriptor of the tensor's own C class says, past any property of a class below it.
PyObject* get(PyObject* descriptor, PyObject* tensor) {
  return Py_TYPE(descriptor)
      ->tp_descr_get(descriptor, tensor, reinterpret_cast<PyObject*>(Py_TYPE(tensor)));
}

/// The number that `function(tensor)` returns, -1 where it fails.
int64_t number(PyObject* function, PyObject* tensor) {
  PyObject* result = PyObject_CallOneArg(function, tensor);
  const int64_t value = result ? PyLong_AsLongLong(result) : -1;
  Py_XDECREF(result);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return -1;
  }
  return value;
}

/// Where a tensor's object has its TensorImpl, and where that has its storage and the storage its
/// address: found at the first tensor, and compared with what PyTorch says at the next ones.
struct Layout {
  enum State { kNotFound, kChecking, kTrusted, kUnknown } state = kNotFound;
  uint32_t impl = 0, first_member = 0;
  int checks = 0;
} g_layout;
constexpr int kChecks = 16;

uint64_t word(uint64_t object, uint32_t offset) {
  return object ? *reinterpret_cast<const uint64_t*>(object + offset) : 0;
}

uint64_t read_address(PyObject* tensor, uint32_t impl, uint32_t first_member) {
  return word(word(word(reinterpret_cast<uint64_t>(tensor), impl), first_member), first_member);
}

/// Of a tensor whose storage begins at `address`.
void find_layout(PyObject* tensor, uint64_t address) {
  g_layout.state = Layout::kUnknown;
  PyObject* number = g_cdata ? get(g_cdata, tensor) : nullptr;
  const uint64_t impl = number ? PyLong_AsUnsignedLongLong(number) : 0;
  Py_XDECREF(number);
  if (PyErr_Occurred()) PyErr_Clear();
  const auto self = reinterpret_cast<uint64_t>(tensor);
  for (uint32_t at = 16; impl && at <= 40; at += 8) {
    if (word(self, at) != impl) continue;
    for (uint32_t member = 16; member <= 24; member += 8) {
      // Before the first member stand counts of references, which are no addresses.
      const uint64_t storage = word(impl, member);
      if (storage < 65536 || storage % 8 || storage >> 47) continue;
      if (word(storage, member) != address) continue;
      g_layout = {Layout::kChecking, at, member, 0};
      return;
    }
  }
}

/// What PyTorch says, through a call that takes as long as the rest of a look.
int64_t told_address(PyObject* tensor) { return number(g_data_address, tensor); }

int64_t data_address(PyObject* tensor) {
  if (g_layout.state == Layout::kTrusted) {
    return static_cast<int64_t>(read_address(tensor, g_layout.impl, g_layout.first_member));
  }
  const int64_t address = told_address(tensor);
  if (address <= 0) return address;
  if (g_layout.state == Layout::kNotFound) {
    find_layout(tensor, static_cast<uint64_t>(address));
  } else if (g_layout.state == Layout::kChecking) {
    const uint64_t read = read_address(tensor, g_layout.impl, g_layout.first_member);
    if (read != static_cast<uint64_t>(address)) g_layout.state = Layout::kUnknown;
    if (++g_layout.checks >= kChecks && g_layout.state == Layout::kChecking) {
      g_layout.state = Layout::kTrusted;
    }
  }
  return address;
}

bool has_own_memory(PyObject* tensor) {
  PyObject* dispatch =
      PyObject_GetAttr(reinterpret_cast<PyObject*>(Py_TYPE(tensor)), g_dispatch_name);
  if (!dispatch) PyErr_Clear();
  Py_XDECREF(dispatch);
  return dispatch == g_no_dispatch;
}

/// The tensor in whose memory this one's elements are, borrowed: itself, or this process's part of
/// one that is distributed (DTensor, which keeps it in a slot, read here without any code of the
/// class). Null: there is none.
PyObject* with_memory(PyObject* tensor) {
  if (!is_tensor(tensor)) return nullptr;
  if (has_own_memory(tensor)) return tensor;
  PyObject* slot = _PyType_Lookup(Py_TYPE(tensor), g_local_name);  // borrowed, sets no exception
  if (!slot || !Py_IS_TYPE(slot, &PyMemberDescr_Type)) return nullptr;
  PyObject* local = get(slot, tensor);
  if (!local) PyErr_Clear();
  Py_XDECREF(local);  // the slot has it
  return local && is_tensor(local) && has_own_memory(local) ? local : nullptr;
}

}  // namespace

bool find_tensors(PyObject* torch_c) {
  PyObject* base = attribute(torch_c, "TensorBase");
  if (!base) base = attribute(torch_c, "_TensorBase");  // until 2.1
  g_no_dispatch = attribute(torch_c, "_disabled_torch_dispatch_impl");
  g_data_address = attribute(torch_c, "_data_address");  // since 2.1; of a view, too, the storage's
  g_disable_functions = attribute(torch_c, "DisableTorchFunction");
  g_grad = attribute(base, "grad");
  g_cdata = attribute(base, "_cdata");
  g_is_leaf = attribute(base, "is_leaf");
  g_enter_name = PyUnicode_InternFromString("__enter__");
  g_exit_name = PyUnicode_InternFromString("__exit__");
  g_dispatch_name = PyUnicode_InternFromString("__torch_dispatch__");
  g_local_name = PyUnicode_InternFromString("_local_tensor");
  const bool all = base && PyType_Check(base) && g_no_dispatch && g_data_address &&
                   g_disable_functions && g_grad && Py_TYPE(g_grad)->tp_descr_get && g_is_leaf &&
                   Py_TYPE(g_is_leaf)->tp_descr_get && g_enter_name && g_exit_name &&
                   g_dispatch_name && g_local_name;
  if (!all) {
    PyErr_Clear();
    return false;
  }
  g_tensor = reinterpret_cast<PyTypeObject*>(base);
  return true;
}

bool is_tensor(PyObject* object) { return g_tensor && PyObject_TypeCheck(object, g_tensor); }

const void* storage_of(PyObject* tensor) {
  PyObject* holder = with_memory(tensor);
  if (!holder) return nullptr;
  const int64_t address = data_address(holder);
  return address > 0 ? reinterpret_cast<const void*>(address) : nullptr;
}

PyObject* gradient_of(PyObject* tensor) {
  if (!with_memory(tensor)) return nullptr;
  // That of another tensor is always none, and asking for it makes PyTorch warn.
  PyObject* is_leaf = get(g_is_leaf, tensor);
  Py_XDECREF(is_leaf);
  PyObject* gradient = is_leaf == Py_True ? get(g_grad, tensor) : nullptr;
  if (!gradient) {
    PyErr_Clear();
  } else if (gradient == Py_None) {
    Py_CLEAR(gradient);
  }
  return gradient;
}

Quiet::Quiet() : collects_(PyGC_Disable()) {
  PyErr_Fetch(&type_, &value_, &trace_);
  if (g_tensor) {
    disabled_ = PyObject_CallNoArgs(g_disable_functions);
    PyObject* entered = disabled_ ? PyObject_CallMethodNoArgs(disabled_, g_enter_name) : nullptr;
    if (!entered) Py_CLEAR(disabled_);
    Py_XDECREF(entered);
  }
}

Quiet::~Quiet() {
  if (disabled_) {
    PyObject* none[] = {disabled_, Py_None, Py_None, Py_None};
    Py_XDECREF(PyObject_VectorcallMethod(g_exit_name, none, 4, nullptr));
    Py_DECREF(disabled_);
  }
  PyErr_Restore(type_, value_, trace_);
  if (collects_) PyGC_Enable();
}

}  // namespace gpumemprof::python
