#include "cli/trace_child.h"

#include <cstdlib>
#include <fstream>

#include "run/program.h"

namespace gpumemprof {
namespace {

constexpr size_t kFirstLineBytes = 256;  // as the kernel reads

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// The words of a "#!" line; empty where the file has none.
std::vector<std::string> first_line_words(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line(kFirstLineBytes, '\0');
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<size_t>(file.gcount()));
  if (!line.starts_with("#!")) return {};
  line = line.substr(2, line.find('\n') - 2);
  std::vector<std::string> words;
  for (size_t at = 0; at < line.size();) {
    const size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    if (end > at) words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  // `env NAME` finds a program and no more; with -S it takes several words. What else it does (-i
  // empties the environment) may keep the tracer out.
  if (!words.empty() && file_name(words[0]) == "env") {
    words.erase(words.begin());
    if (!words.empty() && words[0] == "-S") words.erase(words.begin());
    if (words.empty() || words[0].starts_with('-') || words[0].find('=') != std::string::npos)
      words.insert(words.begin(), "env");
  }
  return words;
}

/// Python's own options that stand before the script, or before what replaces one (-c, -m).
std::vector<std::string> options_before_script(const std::vector<std::string>& words) {
  std::vector<std::string> options;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() < 2 || word[0] != '-' || word == "--") break;
    options.push_back(word);
    if (word == "--check-hash-based-pycs" && i + 1 < words.size()) options.push_back(words[++i]);
    if (word[1] == '-') continue;
    const size_t special = word.find_first_of("cmWX", 1);
    if (special == word.npos) continue;
    if (word[special] == 'c' || word[special] == 'm') {  // "-um" is "-u" and the last one
      options.back() = word.substr(0, special);
      if (special == 1) options.pop_back();
      break;
    }
    if (special + 1 == word.size() && i + 1 < words.size()) options.push_back(words[++i]);
  }
  return options;
}

}  // namespace

Result<std::vector<std::string>> python_of(const std::vector<std::string>& words,
                                           const std::string& search_path) {
  auto program = inspect_program(words[0], search_path, current_caller());
  if (!program) return std::unexpected(program.error());
  std::string path = program->path;
  std::vector<std::string> started = words;
  if (const auto line = first_line_words(path); !line.empty()) {
    auto interpreter = inspect_program(line[0], search_path, current_caller());
    if (!interpreter) return std::unexpected(interpreter.error());
    path = interpreter->path;
    started = line;
  }
  if (!file_name(path).starts_with("python") || !first_line_words(path).empty()) {
    return fail(ErrorCode::kUsage,
                "cannot verify that its Python has gpumemprof, without which the program would run "
                "for real: name the Python (-- python train.py)");
  }
  std::vector<std::string> python = options_before_script(started);
  python.insert(python.begin(), path);
  return python;
}

Status check_that_python_has_tracer(const std::vector<std::string>& words) {
  const char* search_path = std::getenv("PATH");
  auto python = python_of(words, search_path ? search_path : "/usr/bin:/bin");
  if (!python) return std::unexpected(python.error());
  const std::string path = python->front();
  auto folder = TraceFolder::make();
  if (!folder) return std::unexpected(folder.error());
  python->insert(python->end(), {"-c", "pass"});
  auto status = run_traced(*python, {{"GPUMEMPROF_ESTIMATE", folder->path()}}, TraceStreams::kNone);
  if (!status) return std::unexpected(status.error());
  if (!folder->ending_in(".armed").empty()) return {};
  return fail(ErrorCode::kUsage,
              "that Python does not have gpumemprof, without which the program would run for real: "
              "install the package gpumemprof " +
                  (path == words[0] ? "there" : "in " + path));
}

}  // namespace gpumemprof
