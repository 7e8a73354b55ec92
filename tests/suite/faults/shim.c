/* Faults at the boundary of system calls, for a process that is started with this in LD_PRELOAD.
 *
 * The file that FAULT_CONTROL names has CONTROL_BYTES bytes of lines, each a fault and a part of the
 * paths that it is for; it is read at every call, so that a test switches faults on and off while the
 * process runs. Where its first byte is 0 there are none.
 *
 *   enospc PART     nothing that needs room: writes, new files, new folders
 *   erofs PART      nothing that changes something
 *   eio-read PART   reading fails
 *   stall-read PART reading waits until there is no such fault
 *   eio-write PART  writing fails
 *   eio-fsync PART  flushing to disk fails
 *   clock SECONDS   the time of day is so much later
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define CONTROL_BYTES 4096
#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define STALL (-1)

enum need { READS = 1, WRITES = 2, GROWS = 4, FLUSHES = 8, CHANGES = 16 };

static const char *control;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULT_CONTROL");
    if (!path) return;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) abort();
    void *map = mmap(NULL, CONTROL_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED) abort();
    control = map;
}

static int is_on(void) { return control && *(volatile const char *)control; }

static int error_of(const char *fault, size_t length, int need) {
#define IS(word) (length == sizeof(word) - 1 && !memcmp(fault, word, length))
    if (IS("enospc")) return need & GROWS ? ENOSPC : 0;
    if (IS("erofs")) return need & (GROWS | CHANGES | WRITES) ? EROFS : 0;
    if (IS("eio-read")) return need & READS ? EIO : 0;
    if (IS("stall-read")) return need & READS ? STALL : 0;
    if (IS("eio-write")) return need & WRITES ? EIO : 0;
    if (IS("eio-fsync")) return need & FLUSHES ? EIO : 0;
    return 0;
}

/* The error that a use of `path` fails with, or 0. */
static int fault(const char *path, int need) {
    const char *end = control + CONTROL_BYTES;
    for (const char *line = control; line < end && *line;) {
        const char *next = memchr(line, '\n', end - line);
        if (!next) return 0;
        const char *space = memchr(line, ' ', next - line);
        if (space) {
            int error = error_of(line, space - line, need);
            if (error && memmem(path, strlen(path), space + 1, next - space - 1)) return error;
        }
        line = next + 1;
    }
    return 0;
}

static int fails(const char *path, int need) {
    if (!is_on()) return 0;
    int error;
    while ((error = fault(path, need)) == STALL) {
        usleep(1000);
        if (!is_on()) return 0;
    }
    if (error) errno = error;
    return error;
}

/* The same for an open file; sockets and pipes have paths that no fault is for. */
static int fd_fails(int fd, int need) {
    if (!is_on()) return 0;
    char link[64], path[PATH_MAX + 1];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int before = errno;
    ssize_t length = readlink(link, path, PATH_MAX);
    errno = before;
    if (length <= 0 || path[0] != '/') return 0;
    path[length] = 0;
    return fails(path, need);
}

/* The same for a path that is relative to a folder. */
static int at_fails(int dir, const char *path, int need) {
    if (!is_on()) return 0;
    if (*path == '/' || dir == AT_FDCWD) return fails(path, need);
    char link[64], full[2 * PATH_MAX + 2];
    snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
    ssize_t length = readlink(link, full, PATH_MAX);
    if (length <= 0) return 0;
    snprintf(full + length, sizeof full - length, "/%s", path);
    return fails(full, need);
}

static int needs_of(int dir, const char *path, int flags) {
    int need = 0;
    int is_new = (flags & O_CREAT) && faccessat(dir, path, F_OK, 0) != 0;
    if (is_new) need |= GROWS | CHANGES | WRITES;
    if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC)) need |= CHANGES;
    return need;
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(name); \
        va_list rest; va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        if (is_on() && fails(path, needs_of(AT_FDCWD, path, flags))) return -1; \
        return real(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
    int name(int dir, const char *path, int flags, ...) { \
        REAL(name); \
        va_list rest; va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        if (is_on() && at_fails(dir, path, needs_of(dir, path, flags))) return -1; \
        return real(dir, path, flags, mode); \
    }
OPENAT(openat)
OPENAT(openat64)

#define WRITING (WRITES | GROWS)
#define CALL(type, name, parameters, arguments, need) \
    type name parameters { \
        REAL(name); \
        if (fd_fails(fd, need)) return -1; \
        return real arguments; \
    }
CALL(ssize_t, write, (int fd, const void *b, size_t n), (fd, b, n), WRITING)
CALL(ssize_t, pwrite, (int fd, const void *b, size_t n, off_t at), (fd, b, n, at), WRITING)
CALL(ssize_t, pwrite64, (int fd, const void *b, size_t n, off64_t at), (fd, b, n, at), WRITING)
CALL(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n), WRITING)
CALL(ssize_t, pwritev, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at), WRITING)
CALL(ssize_t, pwritev64, (int fd, const struct iovec *v, int n, off64_t at), (fd, v, n, at),
     WRITING)
CALL(ssize_t, read, (int fd, void *b, size_t n), (fd, b, n), READS)
CALL(ssize_t, pread, (int fd, void *b, size_t n, off_t at), (fd, b, n, at), READS)
CALL(ssize_t, pread64, (int fd, void *b, size_t n, off64_t at), (fd, b, n, at), READS)
CALL(ssize_t, readv, (int fd, const struct iovec *v, int n), (fd, v, n), READS)
CALL(int, fsync, (int fd), (fd), FLUSHES)
CALL(int, fdatasync, (int fd), (fd), FLUSHES)
/* Cutting a file needs no room. */
CALL(int, ftruncate, (int fd, off_t n), (fd, n), CHANGES)
CALL(int, ftruncate64, (int fd, off64_t n), (fd, n), CHANGES)
CALL(int, fallocate, (int fd, int m, off_t a, off_t n), (fd, m, a, n), WRITING)
CALL(int, fallocate64, (int fd, int m, off64_t a, off64_t n), (fd, m, a, n), WRITING)

int rename(const char *from, const char *to) {
    REAL(rename);
    if (fails(to, CHANGES)) return -1;
    return real(from, to);
}

int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    if (is_on() && access(path, F_OK) != 0 && fails(path, GROWS | CHANGES)) return -1;
    return real(path, mode);
}

int unlink(const char *path) {
    REAL(unlink);
    if (is_on() && access(path, F_OK) == 0 && fails(path, CHANGES)) return -1;
    return real(path);
}

/* These bypass `read` and `write`. They fail, so that callers fall back to those. */
ssize_t copy_file_range(int in, off64_t *at, int out, off64_t *to, size_t n, unsigned flags) {
    (void)in, (void)at, (void)out, (void)to, (void)n, (void)flags;
    errno = ENOSYS;
    return -1;
}
ssize_t sendfile(int out, int in, off_t *at, size_t n) {
    (void)out, (void)in, (void)at, (void)n;
    errno = ENOSYS;
    return -1;
}
ssize_t sendfile64(int out, int in, off64_t *at, size_t n) {
    return sendfile(out, in, at, n);
}

static long long later(void) {
    if (!is_on()) return 0;
    const char *found = memmem(control, CONTROL_BYTES, "clock ", 6);
    return found ? atoll(found + 6) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    REAL(clock_gettime);
    int outcome = real(clock, now);
    if (!outcome && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += later();
    return outcome;
}

int gettimeofday(struct timeval *now, void *zone) {
    REAL(gettimeofday);
    int outcome = real(now, zone);
    if (!outcome) now->tv_sec += later();
    return outcome;
}

time_t time(time_t *into) {
    REAL(time);
    time_t now = real(NULL) + later();
    if (into) *into = now;
    return now;
}
