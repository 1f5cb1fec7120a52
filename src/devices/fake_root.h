// A root folder in which a test makes its own /proc and /sys.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace gpumemprof {

class FakeRoot : public ::testing::Test {
 protected:
  FakeRoot() {
    char folder[] = "/tmp/devices-test-XXXXXX";
    root_ = mkdtemp(folder);
    put("/proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    400 kB\n");
  }
  ~FakeRoot() override { std::filesystem::remove_all(root_); }
  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void put_process(int pid, const std::string& status, int pages) {
    const std::string folder = "/proc/" + std::to_string(pid);
    put(folder + "/status", status);
    put(folder + "/statm", "9999 " + std::to_string(pages) + " 1 1 0 1 0\n");
    std::string stat = std::to_string(pid) + " (py thon) S 1";
    for (int field = 5; field <= 52; ++field) stat += field == 22 ? " 777" : " 0";
    put(folder + "/stat", stat + "\n");
    put(folder + "/cmdline", std::string("python\0train.py", 15));
  }
  std::string root_;
};

}  // namespace gpumemprof
