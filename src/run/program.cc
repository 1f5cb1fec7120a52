#include "run/program.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "run/elf.h"

namespace gpumemprof {
namespace {

constexpr int kMaxScriptLevels = 4;       // the kernel's own limit
constexpr size_t kScriptLineBytes = 256;  // BINPRM_BUF_SIZE

bool is_executable_file(const std::string& path) {
  struct stat st;
  return stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode) &&
         faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0;
}

Result<std::string> search(const std::string& command, const std::string& search_path) {
  if (command.empty()) return fail(ErrorCode::kNotFound, "the command is empty");
  if (command.find('/') != std::string::npos) {
    struct stat st;
    if (stat(command.c_str(), &st) != 0) {
      return fail(ErrorCode::kNotFound, command + ": " + strerror(errno));
    }
    if (S_ISDIR(st.st_mode)) return fail(ErrorCode::kNotFound, command + ": is a folder");
    if (!is_executable_file(command)) {
      return fail(ErrorCode::kNotFound, command + ": may not be executed (chmod +x?)");
    }
    return command;
  }
  for (size_t begin = 0; begin <= search_path.size();) {
    size_t end = std::min(search_path.find(':', begin), search_path.size());
    std::string folder = search_path.substr(begin, end - begin);
    std::string path = folder.empty() ? "./" + command : folder + '/' + command;
    if (is_executable_file(path)) return path;
    begin = end + 1;
  }
  return fail(ErrorCode::kNotFound, command + ": command not found in PATH");
}

/// The kernel's rule (cap_bprm_creds_from_file): secure where ids change, or where a caller that is
/// not root gains capabilities. Setuid bits on a root-owned file mean nothing to root.
bool starts_in_secure_mode(int fd, const std::string& path, const Caller& caller) {
  if (caller.uid != caller.euid || caller.gid != caller.egid) return true;
  struct stat st;
  struct statvfs fs;
  if (fstat(fd, &st) != 0) return false;
  if (caller.no_new_privileges || (statvfs(path.c_str(), &fs) == 0 && (fs.f_flag & ST_NOSUID))) {
    return false;
  }
  if ((st.st_mode & S_ISUID) && st.st_uid != caller.uid) return true;
  if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != caller.gid) return true;
  return caller.uid != 0 && fgetxattr(fd, "security.capability", nullptr, 0) > 0;
}

std::string sanitizer_of(const ElfFacts& elf) {
  static constexpr std::array<std::pair<const char*, const char*>, 6> kRuntimes = {
      {{"asan", "AddressSanitizer"},
       {"tsan", "ThreadSanitizer"},
       {"msan", "MemorySanitizer"},
       {"ubsan", "UndefinedBehaviorSanitizer"},
       {"lsan", "LeakSanitizer"},
       {"hwasan", "HWAddressSanitizer"}}};
  for (auto [key, name] : kRuntimes) {
    std::string gcc_library = std::string("lib") + key + ".so";
    std::string clang_library = std::string("libclang_rt.") + key;
    std::string symbol = std::string("__") + key + "_init";
    for (const std::string& library : elf.needed) {
      if (library.starts_with(gcc_library) || library.starts_with(clang_library)) return name;
    }
    if (std::ranges::find(elf.sanitizer_symbols, symbol) != elf.sanitizer_symbols.end())
      return name;
  }
  return {};
}

/// Fills `program` where this ELF file cannot hold the probe.
void judge_elf(const ElfFacts& elf, Program* program) {
  if (!elf.is_64_bit) {
    program->unrecordable = "a 32-bit program";
  } else if (elf.machine != own_elf_machine()) {
    program->unrecordable = "a program for another processor";
  } else if (elf.damaged) {
    program->unrecordable = "a damaged ELF file";
  } else if (std::string name = sanitizer_of(elf); !name.empty()) {
    program->unrecordable = "built with " + name;
  } else if (elf.interpreter.find("ld-musl") != std::string::npos) {
    program->unrecordable = "a musl program (the probe needs glibc)";
  } else if (elf.interpreter.empty() && !elf.soname.starts_with("ld-linux")) {
    // The loader run as a command ("ld-linux.so.2 prog") has no interpreter and does preload.
    program->unrecordable = "a static program";
    program->children_recordable = true;
  }
}

Status inspect_file(const std::string& path, const std::string& search_path, const Caller& caller,
                    int level, Program* program) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return {};  // execute permission alone: nothing to see, so nothing to say
  std::string first(kScriptLineBytes, '\0');
  ssize_t size = pread(fd, first.data(), first.size(), 0);
  first.resize(size > 0 ? static_cast<size_t>(size) : 0);
  auto elf = read_elf_facts(fd);
  if (elf) {
    judge_elf(*elf, program);
    if (program->unrecordable.empty() && starts_in_secure_mode(fd, path, caller)) {
      program->unrecordable =
          "a program that runs with other rights (setuid, setgid or file capabilities)";
    }
  }
  close(fd);
  if (elf || level >= kMaxScriptLevels) return {};
  std::vector<std::string> interpreters = script_interpreters(first);
  if (interpreters.empty()) interpreters = {"/bin/sh"};  // as execvp does after ENOEXEC
  for (size_t i = 0; i < interpreters.size(); ++i) {
    auto found = search(interpreters[i], search_path);
    // What follows `env` may be an option's value that looks like a program: env itself will tell.
    if (!found && i > 0) break;
    if (!found) {
      return fail(ErrorCode::kNotFound,
                  path + ": its interpreter cannot be run: " + found.error().message);
    }
    if (auto status = inspect_file(*found, search_path, caller, level + 1, program); !status) {
      return status;
    }
    if (!program->unrecordable.empty()) return {};
  }
  return {};
}

}  // namespace

Caller current_caller() {
  return {getuid(), geteuid(), getgid(), getegid(), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1};
}

std::vector<std::string> script_interpreters(std::string_view first_bytes) {
  if (!first_bytes.starts_with("#!")) return {};
  std::string_view line =
      first_bytes.substr(2, std::min(first_bytes.find('\n'), first_bytes.size()) - 2);
  line = line.substr(0, line.find('\0'));
  std::vector<std::string> words;
  for (size_t i = 0; i < line.size();) {
    size_t end = std::min(line.find_first_of(" \t\r", i), line.size());
    if (end > i) words.emplace_back(line.substr(i, end - i));
    i = end + 1;
  }
  if (words.empty()) return {};
  std::vector<std::string> result = {words[0]};
  if (words[0].substr(words[0].rfind('/') + 1) != "env") return result;
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i][0] == '-' || words[i].find('=') != std::string::npos) continue;
    result.push_back(words[i]);
    break;
  }
  return result;
}

Result<Program> inspect_program(const std::string& command, const std::string& search_path,
                                const Caller& caller) {
  auto path = search(command, search_path);
  if (!path) return std::unexpected(path.error());
  Program program{.path = *path};
  auto status = inspect_file(*path, search_path, caller, 0, &program);
  if (!status) return std::unexpected(status.error());
  return program;
}

}  // namespace gpumemprof
