// How a command declares an option that takes a value. Help shows `type` for the value.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace gpumemprof {

template <class T>
CLI::Option* add_value(CLI::App* command, const std::string& names, const std::string& type,
                       T& value, const std::string& text) {
  return command->add_option(names, value, text)->type_name(type);
}

/// Help shows the default too: what `value` holds now.
template <class T>
CLI::Option* add_defaulted(CLI::App* command, const std::string& names, const std::string& type,
                           T& value, const std::string& text) {
  return add_value(command, names, type, value, text)->capture_default_str();
}

/// May be given several times, each time with one value: else a following "--" would be eaten.
template <class T>
CLI::Option* add_repeatable(CLI::App* command, const std::string& names, const std::string& type,
                            T& values, const std::string& text) {
  return add_value(command, names, type, values, text)
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
}

}  // namespace gpumemprof
