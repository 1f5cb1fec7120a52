#include "top/terminal.h"

#include <langinfo.h>
#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <cstring>

#define NCURSES_WIDECHAR 1
#define NCURSES_NOMACROS 1
#include <curses.h>

namespace gpumemprof {
namespace {

constexpr int kEscapeWaitMs = 25;  // for the rest of a key's sequence, over slow lines too

TerminalInput of_key(Key key) { return {.kind = TerminalInput::Kind::kKey, .key = key}; }

TerminalInput of_mouse() {
  MEVENT event;
  if (getmouse(&event) != OK) return {};
  if (event.bstate & BUTTON4_PRESSED) return of_key(Key::kUp);
  if (event.bstate & BUTTON5_PRESSED) return of_key(Key::kDown);
  if (event.bstate & (BUTTON1_PRESSED | BUTTON1_CLICKED))
    return {.kind = TerminalInput::Kind::kClick, .x = event.x, .y = event.y};
  return {};
}

/// A colour for each style: of 256 where there are as many, else of the eight.
struct Look {
  short of_many, of_few;  ///< -1: the terminal's own
  attr_t attributes;
};
constexpr Look kLooks[kStyleCount] = {
    {-1, -1, A_NORMAL},            // kNormal
    {245, -1, A_NORMAL},           // kDim
    {-1, -1, A_BOLD},              // kBold
    {250, -1, A_NORMAL},           // kTab
    {-1, -1, A_REVERSE | A_BOLD},  // kChosenTab
    {39, COLOR_CYAN, A_BOLD},      // kHeader
    {-1, -1, A_REVERSE},           // kSelected
    {71, COLOR_GREEN, A_NORMAL},   // kGood
    {214, COLOR_YELLOW, A_BOLD},   // kWarning
    {203, COLOR_RED, A_BOLD},      // kCritical
    {75, COLOR_CYAN, A_NORMAL},    // kGraph
};

}  // namespace

bool locale_has_unicode() {
  std::setlocale(LC_CTYPE, "");
  return std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

Result<std::unique_ptr<Terminal>> Terminal::open(bool with_colour) {
  if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
    return fail(ErrorCode::kUsage, "top needs a terminal; top --once prints");
  }
  std::unique_ptr<Terminal> terminal(new Terminal);
  terminal->shows_unicode_ = locale_has_unicode();
  SCREEN* screen = newterm(nullptr, stdout, stdin);
  if (!screen) {
    const char* name = std::getenv("TERM");
    return fail(ErrorCode::kUsage, "the terminal '" + std::string(name ? name : "") +
                                       "' (TERM) is unknown here; top --once prints");
  }
  terminal->screen_ = screen;
  if (tigetstr("cup") == nullptr) {
    return fail(ErrorCode::kUsage, "the terminal '" + std::string(termname()) +
                                       "' (TERM) cannot move its cursor; top --once prints");
  }
  cbreak();
  noecho();
  nonl();
  curs_set(0);
  keypad(stdscr, TRUE);
  set_escdelay(kEscapeWaitMs);
  mousemask(BUTTON1_PRESSED | BUTTON1_CLICKED | BUTTON4_PRESSED | BUTTON5_PRESSED, nullptr);
  mouseinterval(0);
  terminal->choose_styles(with_colour);
  return terminal;
}

void Terminal::choose_styles(bool with_colour) {
  const bool colours = with_colour && has_colors() && start_color() == OK;
  if (colours) use_default_colors();
  for (short i = 0; i < kStyleCount; ++i) {
    styles_[i] = kLooks[i].attributes;
    if (!colours) continue;
    const short colour = COLORS >= 256 ? kLooks[i].of_many : kLooks[i].of_few;
    if (colour < 0) continue;
    init_pair(static_cast<short>(i + 1), colour, -1);
    styles_[i] |= static_cast<unsigned long>(COLOR_PAIR(i + 1));
  }
}

Terminal::~Terminal() {
  if (!screen_) return;
  endwin();
  delscreen(static_cast<SCREEN*>(screen_));
}

int Terminal::width() const { return getmaxx(stdscr); }
int Terminal::height() const { return getmaxy(stdscr); }

TerminalInput Terminal::read(int timeout_ms) {
  wtimeout(stdscr, timeout_ms);
  const int key = wgetch(stdscr);
  switch (key) {
    case ERR:
      return {};
    case KEY_RESIZE:
      return {.kind = TerminalInput::Kind::kResize};
    case KEY_MOUSE:
      return of_mouse();
    case KEY_UP:
      return of_key(Key::kUp);
    case KEY_DOWN:
      return of_key(Key::kDown);
    case KEY_PPAGE:
      return of_key(Key::kPageUp);
    case KEY_NPAGE:
      return of_key(Key::kPageDown);
    case KEY_HOME:
      return of_key(Key::kHome);
    case KEY_END:
      return of_key(Key::kEnd);
    case KEY_ENTER:
    case '\r':
    case '\n':
      return of_key(Key::kEnter);
    case '\t':
      return of_key(Key::kTab);
    default:
      break;
  }
  if (key < 0x20 || key >= 0x7f) return {};
  return {.kind = TerminalInput::Kind::kCharacter, .character = static_cast<char>(key)};
}

void Terminal::show(const Screen& screen) {
  werase(stdscr);
  for (int y = 0; y < screen.height(); ++y) {
    for (int x = 0; x < screen.width();) {
      const Style style = screen.at(x, y).style;
      std::wstring run;
      const int begin = x;
      while (x < screen.width() && screen.at(x, y).style == style)
        run += static_cast<wchar_t>(screen.at(x++, y).text);
      wattrset(stdscr, static_cast<int>(styles_[static_cast<size_t>(style)]));
      // The cell in the last corner cannot be written without scrolling; curses says so, and it is
      // shown all the same.
      mvwaddnwstr(stdscr, y, begin, run.c_str(), static_cast<int>(run.size()));
    }
  }
  wattrset(stdscr, A_NORMAL);
  wrefresh(stdscr);
}

}  // namespace gpumemprof
