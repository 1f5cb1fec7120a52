// The names of the models that have been seen, and telling them to the probe.
//
// A model is a root: a module that is below no other one that we know. Its modules are told once,
// and again only where a module turns up below it that was not there before. All of it under the
// GIL.
#pragma once

#include <Python.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "native/marks/roles.h"

namespace gpumemprof::python {

/// Begins: modules are instances of `type` from now on. False without memory.
bool begin_names(PyTypeObject* type);

/// Names what runs on the calling thread and has no name yet, and the storages that it holds. Where
/// nothing does, the models that its variables lead to. Whether there was anything to name.
bool name_running_modules();

/// The names of the parameters of all models that live, by object. Only as long as no Python code
/// runs.
std::unordered_map<PyObject*, std::string> parameter_names();

/// Of all models that live: appends their parameters, each with its gradient, and buffers. While a
/// `Quiet` lives.
void see_models(std::vector<Sight>* sights);
void see_with_gradient(PyObject* parameter, std::vector<Sight>* sights);

/// The same where something has changed: tells what has not been told. Between
/// roles().begin_look() and end_look().
void look_at_models();

/// Tells the blocks of the parameters' gradients. One that is of several is named by the module above
/// them, or by `model`: a bucket of DistributedDataParallel, of which they are views.
void tell_gradients(const std::vector<PyObject*>& parameters, std::string_view model,
                    bool only_what_is_new);

/// Forgets all names, in a forked child: its recording is a new one.
void forget_names();

}  // namespace gpumemprof::python
