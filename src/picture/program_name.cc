#include <sstream>

#include "picture/picture.h"

namespace gpumemprof {
namespace {

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::string program_name(const std::string& command) {
  std::istringstream words(command);
  std::string word;
  if (!(words >> word)) return "";
  const std::string program = base_name(word);
  if (!program.starts_with("python")) return program;
  while (words >> word) {
    // What follows these is code or a module's name, not a file's.
    if (word == "-c") return program + " -c";
    if (word == "-m") return words >> word ? program + " -m " + word : program;
    if (word == "-W" || word == "-X") {
      words >> word;
    } else if (!word.starts_with('-')) {
      return base_name(word);
    }
  }
  return program;
}

std::string subject_name(const PictureRecording& recording) {
  return recording.rank ? "rank " + std::to_string(*recording.rank)
                        : "pid " + std::to_string(recording.pid);
}

}  // namespace gpumemprof
