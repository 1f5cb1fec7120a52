#include "native/marks/tensors.h"

#include <cstdint>

#include "native/marks/layout.h"

namespace gpumemprof::python {
namespace {

#if PY_VERSION_HEX < 0x030A0000
/// As that of 3.10: whether it was enabled. Its functions are C: no Python code runs.
int set_collects(bool collects) {
  PyObject* name = PyUnicode_FromString("gc");
  PyObject* gc = name ? PyImport_GetModule(name) : nullptr;  // PyTorch has loaded it
  PyObject* before = gc ? PyObject_CallMethod(gc, "isenabled", nullptr) : nullptr;
  PyObject* done = gc ? PyObject_CallMethod(gc, collects ? "enable" : "disable", nullptr) : nullptr;
  const bool was_enabled = before == Py_True;
  Py_XDECREF(done);
  Py_XDECREF(before);
  Py_XDECREF(gc);
  Py_XDECREF(name);
  PyErr_Clear();
  return was_enabled;
}
int PyGC_Disable() { return set_collects(false); }
int PyGC_Enable() { return set_collects(true); }
#endif

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

TensorLayout g_layout;

int64_t data_address(PyObject* tensor) {
  if (g_layout.knows_storages()) return static_cast<int64_t>(g_layout.storage(tensor));
  const int64_t address = number(g_data_address, tensor);
  if (address <= 0) return address;
  PyObject* impl = g_cdata ? get(g_cdata, tensor) : nullptr;
  const uint64_t at = impl ? PyLong_AsUnsignedLongLong(impl) : 0;
  Py_XDECREF(impl);
  const bool is_known = !PyErr_Occurred();
  PyErr_Clear();
  g_layout.learn_storage(tensor, is_known ? at : 0, static_cast<uint64_t>(address));
  return address;
}

/// Classes whose tensors have memory of their own, while nobody changes them: most are of two.
struct PlainType {
  const PyTypeObject* type;
  unsigned version;
};
constexpr size_t kMostPlainTypes = 4;
PlainType g_plain_types[kMostPlainTypes];
size_t g_next_plain_type = 0;

bool is_plain(const PyTypeObject* type) {
  unsigned version = type->tp_version_tag;  // 0 after a change
#if PY_VERSION_HEX < 0x030C0000
  if (!PyType_HasFeature(const_cast<PyTypeObject*>(type), Py_TPFLAGS_VALID_VERSION_TAG)) version = 0;
#endif
  for (const PlainType& plain : g_plain_types) {
    if (plain.type == type && plain.version == version) return version != 0;
  }
  return false;
}

bool has_own_memory(PyObject* tensor) {
  PyTypeObject* type = Py_TYPE(tensor);
  if (is_plain(type)) return true;
  PyObject* dispatch = PyObject_GetAttr(reinterpret_cast<PyObject*>(type), g_dispatch_name);
  if (!dispatch) PyErr_Clear();
  Py_XDECREF(dispatch);
  if (dispatch != g_no_dispatch) return false;
  g_plain_types[g_next_plain_type++ % kMostPlainTypes] = {type, type->tp_version_tag};
  return true;
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

bool is_tensor(PyObject* object) {
  return g_tensor && (is_plain(Py_TYPE(object)) || PyObject_TypeCheck(object, g_tensor));
}

const void* storage_of(PyObject* tensor) {
  PyObject* holder = with_memory(tensor);
  if (!holder) return nullptr;
  const int64_t address = data_address(holder);
  return address > 0 ? reinterpret_cast<const void*>(address) : nullptr;
}

const void* gradient_storage_of(PyObject* tensor) {
  if (g_layout.knows_gradients() && is_plain(Py_TYPE(tensor)))
    return reinterpret_cast<const void*>(g_layout.gradient(tensor));
  PyObject* holder = with_memory(tensor);
  if (!holder) return nullptr;
  // That of another tensor is always none, and asking for it makes PyTorch warn.
  PyObject* is_leaf = get(g_is_leaf, tensor);
  Py_XDECREF(is_leaf);
  PyObject* gradient = is_leaf == Py_True ? get(g_grad, tensor) : nullptr;
  if (!gradient) PyErr_Clear();
  const bool has_any = gradient && gradient != Py_None;
  const void* address = has_any ? storage_of(gradient) : nullptr;
  if (holder == tensor && is_leaf == Py_True)
    g_layout.learn_gradient(tensor, has_any ? gradient : nullptr);
  Py_XDECREF(gradient);  // the parameter has it
  return address;
}

Quiet::Quiet() {
  PyErr_Fetch(&type_, &value_, &trace_);
  collects_ = PyGC_Disable();
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
  if (collects_) PyGC_Enable();
  PyErr_Restore(type_, value_, trace_);
}

}  // namespace gpumemprof::python
