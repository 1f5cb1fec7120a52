#include "run/keeper.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "base/descriptor.h"
#include "recording/arena_mirror.h"
#include "recording/writer_state.h"
#include "run/meta.h"

namespace gpumemprof {
namespace {

constexpr char kName[] = "gmp-keeper";
constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 100'000'000};
constexpr int kTriesAtTheEnd = 50;  // a disk that is full for five seconds stays full

/// What `run` says: the program's PID, or that it has done everything itself.
struct Message {
  enum What : int32_t { kProgram, kRelease } what;
  int32_t pid;
};

/// ps shows what it is, and whoever kills `run` by its name does not kill it too.
void name_itself() {
  prctl(PR_SET_NAME, kName);
  std::ifstream file("/proc/self/stat");
  std::string stat((std::istreambuf_iterator<char>(file)), {});
  const size_t name_end = stat.rfind(')');
  if (name_end == stat.npos) return;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string word;
  for (int field = 3; field < 48; ++field) fields >> word;
  uintptr_t begin = 0, end = 0;  // fields 48 and 49 of proc(5): where our arguments lie
  if (!(fields >> begin >> end) || begin == 0 || end <= begin + sizeof(kName)) return;
  memset(reinterpret_cast<void*>(begin), 0, end - begin);
  memcpy(reinterpret_cast<void*>(begin), kName, sizeof(kName));
}

/// Closes [begin, end).
void close_between(unsigned begin, unsigned end) {
  if (begin >= end || syscall(SYS_close_range, begin, end - 1, 0) == 0) return;
  rlimit limit{};  // Linux before 5.9 has no such call
  getrlimit(RLIMIT_NOFILE, &limit);
  for (unsigned fd = begin; fd < end && fd < limit.rlim_cur; ++fd) close(static_cast<int>(fd));
}

/// Nothing of the caller's: no descriptor but these two, no terminal, no folder, no signal.
void let_go_of_everything(int socket, int arena) {
  setsid();
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  [[maybe_unused]] int moved = chdir("/");
  const int null = open("/dev/null", O_RDWR);
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, fd);
  const auto low = static_cast<unsigned>(std::min(socket, arena));
  const auto high = static_cast<unsigned>(std::max(socket, arena));
  close_between(3, low);
  close_between(low + 1, high);
  close_between(high + 1, ~0U);
  prctl(PR_SET_DUMPABLE, 1);  // else nobody but root finds the arena through it
}

/// Until no recorded process lives. What `run` would have said at its end goes into meta.json.
void keep(const std::shared_ptr<Arena>& arena, const std::string& folder,
          const std::string& meta_path, pid_t program) {
  const uint64_t start_ticks = program ? start_ticks_of(static_cast<uint32_t>(program)) : 0;
  ArenaMirror mirror(arena, folder);
  for (int tries = 0; tries < kTriesAtTheEnd;) {
    // Asked before the round: what it began to record before it ended is then in there.
    const bool may_begin =
        start_ticks != 0 && is_running(static_cast<uint32_t>(program), start_ticks);
    mirror.round();
    if (!may_begin && mirror.alive() == 0) {
      if (mirror.waiting() == 0 && mirror.leave()) break;
      tries += mirror.waiting() > mirror.being_sealed();
    }
    nanosleep(&kPause, nullptr);
  }
  mirror.round(true);
  std::vector<NotRecorded> lost = not_recorded(mirror.unrecorded().take());
  if (!lost.empty()) (void)add_not_recorded(meta_path, lost);
}

[[noreturn]] void be_keeper(int socket, const std::shared_ptr<Arena>& arena,
                            const std::string& folder, const std::string& meta_path) {
  let_go_of_everything(socket, arena->fd());
  name_itself();
  pid_t program = 0;
  for (;;) {
    Message message{};
    const ssize_t n = read(socket, &message, sizeof(message));
    if (n < 0 && errno == EINTR) continue;
    if (n == sizeof(message) && message.what == Message::kRelease) _exit(0);
    if (n != sizeof(message)) break;  // `run` is gone, or leaves the rest to us
    program = message.pid;
  }
  keep(arena, folder, meta_path, program);
  _exit(0);
}

void say(int socket, Message message) {
  [[maybe_unused]] ssize_t n = send(socket, &message, sizeof(message), MSG_NOSIGNAL);
}

}  // namespace

Result<Keeper> Keeper::start(std::shared_ptr<Arena> arena, const std::string& folder,
                             const std::string& meta_path) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(ErrorCode::kSystem, std::string("socketpair: ") + strerror(errno));
  for (int& end : ends) end = above_standard_streams(end);
  const pid_t pid = fork();
  if (pid == 0) be_keeper(ends[1], arena, folder, meta_path);
  const int error = errno;
  close(ends[1]);
  if (pid > 0) return Keeper(pid, ends[0]);
  close(ends[0]);
  return fail(ErrorCode::kSystem, std::string("cannot start a process: ") + strerror(error));
}

Keeper::Keeper(Keeper&& other) noexcept
    : pid_(other.pid_), socket_(std::exchange(other.socket_, -1)) {}

Keeper::~Keeper() {
  if (socket_ >= 0) close(socket_);
}

void Keeper::watch(pid_t program) { say(socket_, {Message::kProgram, program}); }

void Keeper::release(bool is_needed) {
  if (is_needed) {
    close(std::exchange(socket_, -1));
    return;
  }
  say(socket_, {Message::kRelease, 0});
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace gpumemprof
