// nfs_like [broken] FOLDER BYTES MOUNT: a file system as a program sees NFS, over FOLDER, the server's disk of BYTES.
//
// A write goes into the client's memory and succeeds; what the server says comes with fsync() or close(), and what it refused
// is gone. A file cannot be mapped shared, the size is that of the client, attributes are kept for seconds, and what is
// removed while it is open lives on under another name. Once the disk is full, only what needs no more of it is taken;
// `broken`: nothing at all any more, with EIO, as of a server that went away.
#define FUSE_USE_VERSION 31
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { kPage = 4096 };

// What the client keeps of a file while somebody has it open.
typedef struct Node {
  struct Node* next;
  ino_t ino;
  int fd;
  int users;
  off_t size;     // as the client sees it
  char** dirty;   // pages that the server has not yet
  size_t pages;   // places in `dirty`
} Node;

static int root;
static off_t disk_bytes, used_bytes;
static bool is_breaking, is_broken;
static Node* nodes;

static off_t pages_of(off_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }
static const char* below(const char* path) { return path[1] ? path + 1 : "."; }
static int result(int done) { return done < 0 ? -errno : 0; }
static Node* node_of(const struct fuse_file_info* file) { return (Node*)(uintptr_t)file->fh; }

static Node* known(ino_t ino) {
  Node* node = nodes;
  while (node && node->ino != ino) node = node->next;
  return node;
}

static int refused(void) {
  is_broken = is_breaking;
  return is_breaking ? -EIO : -ENOSPC;
}

// The server takes a page, or says why not.
static int send_page(Node* node, size_t index) {
  struct stat have;
  if (is_broken) return -EIO;
  if (fstat(node->fd, &have) < 0) return -errno;
  off_t at = (off_t)index * kPage, end = at + kPage < node->size ? at + kPage : node->size;
  off_t more = pages_of(end) - pages_of(have.st_size);
  if (more > 0 && used_bytes + more > disk_bytes) return refused();
  if (end <= at) return 0;  // cut meanwhile
  if (pwrite(node->fd, node->dirty[index], (size_t)(end - at), at) != end - at) return -EIO;
  if (more > 0) used_bytes += more;
  return 0;
}

// All that the client has of a file. The first refusal is told, and what was refused is gone.
static int send(Node* node) {
  int error = 0;
  for (size_t i = 0; i < node->pages; ++i) {
    if (!node->dirty[i]) continue;
    int failed = send_page(node, i);
    if (failed && !error) error = failed;
    free(node->dirty[i]);
    node->dirty[i] = NULL;
  }
  struct stat have;
  if (error && fstat(node->fd, &have) == 0) node->size = have.st_size;
  return error;
}

static int open_node(int fd, struct fuse_file_info* file) {
  struct stat have;
  if (fd < 0 || fstat(fd, &have) < 0) return -errno;
  Node* node = known(have.st_ino);
  if (node) {
    close(fd);
  } else {
    node = calloc(1, sizeof(*node));
    *node = (Node){.next = nodes, .ino = have.st_ino, .fd = fd, .size = have.st_size};
    nodes = node;
  }
  ++node->users;
  file->fh = (uintptr_t)node;
  file->direct_io = 1;  // mmap(MAP_SHARED) is refused
  return 0;
}

static int nfs_truncate(const char* path, off_t size, struct fuse_file_info* file) {
  int fd = file ? dup(node_of(file)->fd) : openat(root, below(path), O_RDWR);
  struct stat have;
  if (fd < 0 || fstat(fd, &have) < 0) return -errno;
  Node* node = known(have.st_ino);
  int error = node ? send(node) : 0;
  if (fstat(fd, &have) < 0) error = -errno;
  off_t more = pages_of(size) - pages_of(have.st_size);
  if (is_broken) error = -EIO;
  if (!error && more > 0 && used_bytes + more > disk_bytes) error = refused();
  if (!error && ftruncate(fd, size) < 0) error = -errno;
  if (!error) {
    used_bytes += more;
    if (node) node->size = size;
  }
  close(fd);
  return error;
}

static int nfs_open(const char* path, struct fuse_file_info* file) {
  int fd = openat(root, below(path), O_RDWR);
  if (fd < 0 && (errno == EACCES || errno == EROFS)) fd = openat(root, below(path), O_RDONLY);
  int error = open_node(fd, file);
  if (!error && (file->flags & O_TRUNC)) error = nfs_truncate(path, 0, file);
  return error;
}

static int nfs_create(const char* path, mode_t mode, struct fuse_file_info* file) {
  if (is_broken) return -EIO;
  return open_node(openat(root, below(path), O_RDWR | O_CREAT | (file->flags & O_EXCL), mode), file);
}

static int nfs_read(const char* path, char* to, size_t size, off_t at, struct fuse_file_info* file) {
  (void)path;
  Node* node = node_of(file);
  if (at >= node->size) return 0;
  if ((off_t)size > node->size - at) size = (size_t)(node->size - at);
  memset(to, 0, size);
  if (pread(node->fd, to, size, at) < 0) return -errno;
  for (size_t done = 0; done < size;) {
    size_t index = (size_t)(at + (off_t)done) / kPage, from = (size_t)(at + (off_t)done) % kPage;
    size_t part = kPage - from < size - done ? kPage - from : size - done;
    if (index < node->pages && node->dirty[index]) memcpy(to + done, node->dirty[index] + from, part);
    done += part;
  }
  return (int)size;
}

static int nfs_write(const char* path, const char* data, size_t size, off_t at, struct fuse_file_info* file) {
  (void)path;
  Node* node = node_of(file);
  if (file->flags & O_APPEND) at = node->size;
  size_t pages = (size_t)(at + (off_t)size) / kPage + 1;
  if (pages > node->pages) {
    node->dirty = realloc(node->dirty, pages * sizeof(*node->dirty));
    memset(node->dirty + node->pages, 0, (pages - node->pages) * sizeof(*node->dirty));
    node->pages = pages;
  }
  for (size_t done = 0; done < size;) {
    size_t index = (size_t)(at + (off_t)done) / kPage, from = (size_t)(at + (off_t)done) % kPage;
    size_t part = kPage - from < size - done ? kPage - from : size - done;
    if (!node->dirty[index]) {
      node->dirty[index] = calloc(1, kPage);
      if (pread(node->fd, node->dirty[index], kPage, (off_t)index * kPage) < 0) return -errno;
    }
    memcpy(node->dirty[index] + from, data + done, part);
    done += part;
  }
  if (at + (off_t)size > node->size) node->size = at + (off_t)size;
  return (int)size;
}

static int nfs_flush(const char* path, struct fuse_file_info* file) { return (void)path, send(node_of(file)); }

static int nfs_fsync(const char* path, int data, struct fuse_file_info* file) {
  return (void)path, (void)data, send(node_of(file));
}

static int nfs_release(const char* path, struct fuse_file_info* file) {
  (void)path;
  Node* node = node_of(file);
  if (--node->users > 0) return 0;
  Node** link = &nodes;
  while (*link != node) link = &(*link)->next;
  *link = node->next;
  send(node);
  close(node->fd);
  free(node->dirty);
  free(node);
  return 0;
}

static int nfs_getattr(const char* path, struct stat* out, struct fuse_file_info* file) {
  int done = file ? fstat(node_of(file)->fd, out) : fstatat(root, below(path), out, AT_SYMLINK_NOFOLLOW);
  if (done < 0) return -errno;
  Node* node = known(out->st_ino);
  if (node && S_ISREG(out->st_mode)) out->st_size = node->size;
  return 0;
}

static int nfs_readdir(const char* path, void* to, fuse_fill_dir_t fill, off_t at, struct fuse_file_info* file,
                       enum fuse_readdir_flags flags) {
  (void)at, (void)file, (void)flags;
  int fd = openat(root, below(path), O_RDONLY | O_DIRECTORY);
  DIR* folder = fd < 0 ? NULL : fdopendir(fd);
  if (!folder) return -errno;
  for (struct dirent* entry; (entry = readdir(folder));) fill(to, entry->d_name, NULL, 0, 0);
  closedir(folder);
  return 0;
}

static int nfs_unlink(const char* path) {
  struct stat gone;
  if (is_broken) return -EIO;
  if (fstatat(root, below(path), &gone, AT_SYMLINK_NOFOLLOW) < 0) return -errno;
  if (S_ISREG(gone.st_mode) && gone.st_nlink == 1) used_bytes -= pages_of(gone.st_size);
  return result(unlinkat(root, below(path), 0));
}

static int nfs_rename(const char* from, const char* to, unsigned flags) {
  struct stat gone;
  if (is_broken) return -EIO;
  if (flags) return -EINVAL;
  bool replaces = fstatat(root, below(to), &gone, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(gone.st_mode);
  if (renameat(root, below(from), root, below(to)) < 0) return -errno;
  if (replaces) used_bytes -= pages_of(gone.st_size);
  return 0;
}

static int nfs_mkdir(const char* path, mode_t mode) {
  return is_broken ? -EIO : result(mkdirat(root, below(path), mode));
}
static int nfs_rmdir(const char* path) { return is_broken ? -EIO : result(unlinkat(root, below(path), AT_REMOVEDIR)); }
static int nfs_chmod(const char* path, mode_t mode, struct fuse_file_info* file) {
  return (void)file, result(fchmodat(root, below(path), mode, 0));
}
static int nfs_utimens(const char* path, const struct timespec times[2], struct fuse_file_info* file) {
  return (void)file, result(utimensat(root, below(path), times, AT_SYMLINK_NOFOLLOW));
}

static void* nfs_init(struct fuse_conn_info* connection, struct fuse_config* config) {
  (void)connection;
  config->use_ino = 1;
  config->attr_timeout = config->entry_timeout = 3;  // as NFS's shortest
  return NULL;
}

int main(int argc, char** argv) {
  is_breaking = argc > 1 && strcmp(argv[1], "broken") == 0;
  argv += is_breaking, argc -= is_breaking;
  if (argc != 4 || (root = open(argv[1], O_RDONLY | O_DIRECTORY)) < 0) return 2;
  disk_bytes = atoll(argv[2]);
  static const struct fuse_operations operations = {
      .getattr = nfs_getattr, .readdir = nfs_readdir, .open = nfs_open, .create = nfs_create, .read = nfs_read,
      .write = nfs_write, .flush = nfs_flush, .fsync = nfs_fsync, .release = nfs_release, .truncate = nfs_truncate,
      .unlink = nfs_unlink, .rename = nfs_rename, .mkdir = nfs_mkdir, .rmdir = nfs_rmdir, .chmod = nfs_chmod,
      .utimens = nfs_utimens, .init = nfs_init};
  char* words[] = {"nfs_like", "-s", argv[3], NULL};
  return fuse_main(3, words, &operations, NULL);
}
