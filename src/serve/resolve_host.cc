#include "serve/resolve_host.h"

#include <sys/socket.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace gpumemprof {
namespace {

/// Of the thread and of who waits for it; whoever is last frees it.
struct PendingLookup {
  std::mutex mutex;
  std::condition_variable done;
  bool is_done = false;
  int code = 0;
  AddressList found{nullptr, freeaddrinfo};
};

std::unexpected<Error> unknown(const std::string& why) { return fail(ErrorCode::kSystem, why); }

}  // namespace

Result<AddressList> resolve_host(const std::string& host, const std::string& port,
                                 int64_t timeout_ns, HostLookup lookup) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) == 0)
    return AddressList(found, freeaddrinfo);
  hints.ai_flags = AI_NUMERICSERV;
  const auto pending = std::make_shared<PendingLookup>();
  try {
    std::thread([pending, host, port, hints, lookup = std::move(lookup)] {
      addrinfo* list = nullptr;
      const int code = lookup(host.c_str(), port.c_str(), &hints, &list);
      std::lock_guard lock(pending->mutex);
      pending->code = code, pending->is_done = true;
      if (code == 0) pending->found.reset(list);
      pending->done.notify_all();
    }).detach();
  } catch (const std::system_error& error) {
    return unknown(error.what());
  }
  std::unique_lock lock(pending->mutex);
  const auto is_done = [&] { return pending->is_done; };
  if (!pending->done.wait_for(lock, std::chrono::nanoseconds(timeout_ns), is_done))
    return unknown("looking up its name took too long");
  if (pending->code != 0) return unknown(gai_strerror(pending->code));
  return std::move(pending->found);
}

}  // namespace gpumemprof
