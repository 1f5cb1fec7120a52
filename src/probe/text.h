#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace gpumemprof::probe {

/// Appends to a fixed buffer; what does not fit makes it !ok.
class Text {
 public:
  Text(char* buffer, size_t size) : buffer_(buffer), left_(size) {}
  void add(const char* text, size_t length) {
    if (length + 1 > left_) return ok_ = false, void();
    memcpy(buffer_, text, length);
    buffer_ += length, left_ -= length;
    *buffer_ = 0;
  }
  void add(const char* text) { add(text, strlen(text)); }
  void add(uint64_t number) {
    char digits[20];
    int n = 0;
    do digits[n++] = static_cast<char>('0' + number % 10);
    while (number /= 10);
    while (n--) add(&digits[n], 1);
  }
  bool ok() const { return ok_; }

 private:
  char* buffer_;
  size_t left_;
  bool ok_ = true;
};

}  // namespace gpumemprof::probe
