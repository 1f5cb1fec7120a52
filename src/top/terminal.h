// The terminal itself, by ncursesw.
#pragma once

#include <memory>

#include "base/error.h"
#include "top/screen.h"
#include "top/view.h"

namespace gpumemprof {

/// Something that somebody did.
struct TerminalInput {
  enum class Kind { kNone, kCharacter, kKey, kClick, kResize } kind = Kind::kNone;
  char character = 0;
  Key key = Key::kNone;
  int x = 0, y = 0;  ///< of a click
};

/// Whether the locale of the environment has the characters of bars and charts.
bool locale_has_unicode();

/// One at a time in a process. The terminal is as it was once the object is gone.
class Terminal {
 public:
  /// Errors: kUsage where standard input and output are no terminal, or TERM names none that is
  /// known.
  static Result<std::unique_ptr<Terminal>> open(bool with_colour);
  ~Terminal();

  int width() const;
  int height() const;
  bool shows_unicode() const { return shows_unicode_; }
  /// What comes within `timeout_ms`; kNone where nothing does.
  TerminalInput read(int timeout_ms);
  /// Sends what differs from what is shown.
  void show(const Screen& screen);

 private:
  Terminal() = default;
  void choose_styles(bool with_colour);

  void* screen_ = nullptr;  // SCREEN of ncurses
  bool shows_unicode_ = false;
  unsigned long styles_[kStyleCount] = {};
};

}  // namespace gpumemprof
