#include "probe/storage.h"

#include <errno.h>
#include <sys/mman.h>

#include "probe/sys.h"

namespace gpumemprof::probe {

using namespace format;

bool is_filtered() {
  constexpr int kGetSeccomp = 21;
  static int known = -1;  // a race writes the same value twice
  if (known < 0) known = sys(SYS_prctl, kGetSeccomp) > 0;
  return known;
}

LossKind loss_of(long error) {
  if (error == -ENOSPC || error == -EDQUOT || error == -EFBIG) return kLostNoSpace;
  if (error == -ENOMEM || error == -EMFILE || error == -ENFILE) return kLostNoBuffer;
  return kLostIo;
}

long write_all(long fd, const void* data, size_t size, uint64_t offset) {
  const char* p = static_cast<const char*>(data);
  while (size > 0) {
    long n = sys(SYS_pwrite64, fd, sys_ptr(p), static_cast<long>(size), static_cast<long>(offset));
    if (n == -EINTR) continue;
    if (n < 0) return n;
    if (n == 0) return -ENOSPC;
    p += n, offset += static_cast<uint64_t>(n), size -= static_cast<size_t>(n);
  }
  return 0;
}

long allocate(long fd, uint64_t offset, size_t size) {
  long error = is_filtered()
                   ? -EPERM
                   : sys(SYS_fallocate, fd, 0, static_cast<long>(offset), static_cast<long>(size));
  if (error != -EOPNOTSUPP && error != -ENOSYS && error != -EPERM) return error;
  static const char zeros[kPage] = {};
  for (size_t done = 0; done < size; done += kPage) {
    error = write_all(fd, zeros, kPage, offset + done);
    if (error < 0) return error;
  }
  return 0;
}

bool promises_pages(long fd) {
  // ext2, ext3 and ext4 write in place and keep blocks back for what an allocated page may need;
  // pages of tmpfs and ramfs are the memory itself.
  constexpr long kExt = 0xef53, kTmpfs = 0x01021994, kRamfs = 0x858458f6;
  if (is_filtered()) return false;  // fstatfs is unusual
  alignas(8) long facts[16] = {};
  if (sys(SYS_fstatfs, fd, sys_ptr(facts)) < 0) return false;
  const long type = facts[0] & 0xffffffff;
  return type == kExt || type == kTmpfs || type == kRamfs;
}

uint8_t* map_shared(long fd, uint64_t offset, size_t size) {
  long p = sys(SYS_mmap, 0, static_cast<long>(size), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
               static_cast<long>(offset));
  return p < 0 && p > -4096 ? nullptr : reinterpret_cast<uint8_t*>(p);
}

}  // namespace gpumemprof::probe
