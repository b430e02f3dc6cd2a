/* Stands between the gateway and libc (LD_PRELOAD) and lets calls on files below its state directory fail, as the test says in a file that
 * both have mapped. It also notes how long each file was when it was last synced: what a power cut would leave of it at least. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OFF, WRITE, SYNC, RENAME, OPEN, TRUNCATE };
enum { SLOTS = 4, SUFFIX = 64 };

/* As crates/testkit/src/faulty_disk.rs lays it out. */
struct slot {
    uint32_t kind;    /* which calls are counted; set last */
    uint32_t first;   /* the first that fails, from 1 on */
    uint32_t times;   /* how many fail, one after the other */
    uint32_t error;   /* with this errno; 0 writes half, or does not sync and says that it did */
    uint32_t counted; /* how many came so far */
    uint32_t failed;  /* how many of them failed */
    char suffix[SUFFIX]; /* of the names of the files that are meant */
    char last[512];   /* the last one that failed */
};

static struct slot *slots;
static char root[PATH_MAX];
static int syncs = -1;

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name)) dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin(void) {
    const char *control = getenv("FAULTY_DISK_CONTROL"), *log = getenv("FAULTY_DISK_SYNCS");
    const char *state = getenv("OPENCLAW_STATE_DIR");
    /* What the gateway starts is left alone. */
    unsetenv("LD_PRELOAD");
    if (!control || !log || !state || !realpath(state, root)) return;
    int fd = open(control, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    syncs = open(log, O_WRONLY | O_APPEND | O_CLOEXEC);
    void *mapped = mmap(NULL, SLOTS * sizeof(struct slot), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped != MAP_FAILED) slots = mapped;
}

static int is_below_root(const char *path) {
    size_t length = strlen(root);
    return length && strncmp(path, root, length) == 0 && path[length] == '/';
}

static int ends_with(const char *path, const char *suffix) {
    size_t length = strlen(path), wanted = strlen(suffix);
    return length >= wanted && strcmp(path + length - wanted, suffix) == 0;
}

/* The slot by which a call on this file fails, if one does. */
static struct slot *failing(uint32_t kind, const char *path) {
    if (!is_below_root(path)) return NULL;
    for (int i = 0; i < SLOTS; i++) {
        struct slot *slot = &slots[i];
        if (__atomic_load_n(&slot->kind, __ATOMIC_ACQUIRE) != kind || !ends_with(path, slot->suffix)) continue;
        uint32_t number = __atomic_add_fetch(&slot->counted, 1, __ATOMIC_ACQ_REL);
        if (number < slot->first || number - slot->first >= slot->times) continue;
        snprintf(slot->last, sizeof slot->last, "%s", path);
        __atomic_add_fetch(&slot->failed, 1, __ATOMIC_ACQ_REL);
        return slot;
    }
    return NULL;
}

static int is_watched(uint32_t kind) {
    for (int i = 0; slots && i < SLOTS; i++)
        if (__atomic_load_n(&slots[i].kind, __ATOMIC_ACQUIRE) == kind) return 1;
    return 0;
}

static int path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
    return length > 0;
}

/* -1: the call fails. 0: it is made. 1: half of it is made, or it lies. */
static int refused(uint32_t kind, int fd) {
    char path[PATH_MAX];
    int before = errno;
    if (!is_watched(kind) || !path_of(fd, path)) { errno = before; return 0; }
    struct slot *slot = failing(kind, path);
    errno = slot && slot->error ? (int) slot->error : before;
    return !slot ? 0 : slot->error ? -1 : 1;
}

static int refused_name(uint32_t kind, int dir, const char *name) {
    char path[2 * PATH_MAX];
    int before = errno;
    if (!is_watched(kind)) return 0;
    path[0] = 0;
    if (name[0] != '/' && dir != AT_FDCWD && path_of(dir, path)) strcat(path, "/");
    strncat(path, name, PATH_MAX - 1);
    struct slot *slot = failing(kind, path);
    errno = slot ? (int) slot->error : before;
    return slot && slot->error ? -1 : 0;
}

static size_t shorter(int refusal, size_t length) { return refusal == 1 && length > 1 ? length / 2 : length; }

ssize_t write(int fd, const void *bytes, size_t length) {
    REAL(write);
    int refusal = refused(WRITE, fd);
    return refusal < 0 ? -1 : real(fd, bytes, shorter(refusal, length));
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) {
    REAL(pwrite);
    int refusal = refused(WRITE, fd);
    return refusal < 0 ? -1 : real(fd, bytes, shorter(refusal, length), at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) {
    REAL(pwrite64);
    int refusal = refused(WRITE, fd);
    return refusal < 0 ? -1 : real(fd, bytes, shorter(refusal, length), at);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(writev);
    int refusal = refused(WRITE, fd);
    return refusal < 0 ? -1 : real(fd, parts, refusal == 1 ? 1 : count);
}

int ftruncate(int fd, off_t length) {
    REAL(ftruncate);
    return refused(TRUNCATE, fd) < 0 ? -1 : real(fd, length);
}

int ftruncate64(int fd, off64_t length) {
    REAL(ftruncate64);
    return refused(TRUNCATE, fd) < 0 ? -1 : real(fd, length);
}

static void note_sync(int fd) {
    char path[PATH_MAX], line[PATH_MAX + 32];
    struct stat stat;
    int before = errno;
    if (syncs >= 0 && fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && path_of(fd, path) && is_below_root(path)) {
        int length = snprintf(line, sizeof line, "%lld %s\n", (long long) stat.st_size, path);
        ssize_t ignored = write(syncs, line, (size_t) length);
        (void) ignored;
    }
    errno = before;
}

int fsync(int fd) {
    REAL(fsync);
    int refusal = refused(SYNC, fd);
    if (refusal) return refusal < 0 ? -1 : 0;
    int done = real(fd);
    if (done == 0) note_sync(fd);
    return done;
}

int fdatasync(int fd) {
    REAL(fdatasync);
    int refusal = refused(SYNC, fd);
    if (refusal) return refusal < 0 ? -1 : 0;
    int done = real(fd);
    if (done == 0) note_sync(fd);
    return done;
}

/* A file took the place of another: its length, and both names. */
static void note_rename(const char *from, const char *to) {
    char line[2 * PATH_MAX + 32];
    struct stat stat_of_it;
    int before = errno;
    if (syncs >= 0 && is_below_root(to) && stat(to, &stat_of_it) == 0 && S_ISREG(stat_of_it.st_mode)) {
        int length = snprintf(line, sizeof line, "> %lld %s\t%s\n", (long long) stat_of_it.st_size, from, to);
        ssize_t ignored = write(syncs, line, (size_t) length);
        (void) ignored;
    }
    errno = before;
}

int rename(const char *from, const char *to) {
    REAL(rename);
    if (refused_name(RENAME, AT_FDCWD, to)) return -1;
    int done = real(from, to);
    if (done == 0) note_rename(from, to);
    return done;
}

int renameat(int from_dir, const char *from, int to_dir, const char *to) {
    REAL(renameat);
    return refused_name(RENAME, to_dir, to) ? -1 : real(from_dir, from, to_dir, to);
}

#define OPENING(name, call, dir)                                \
    mode_t mode = 0;                                            \
    if (flags & (O_CREAT | __O_TMPFILE)) {                      \
        va_list rest;                                           \
        va_start(rest, flags);                                  \
        mode = va_arg(rest, mode_t);                            \
        va_end(rest);                                           \
    }                                                           \
    REAL(name);                                                 \
    return refused_name(OPEN, dir, path) ? -1 : call

int open(const char *path, int flags, ...) { OPENING(open, real(path, flags, mode), AT_FDCWD); }
int open64(const char *path, int flags, ...) { OPENING(open64, real(path, flags, mode), AT_FDCWD); }
int openat(int dir, const char *path, int flags, ...) { OPENING(openat, real(dir, path, flags, mode), dir); }
int openat64(int dir, const char *path, int flags, ...) { OPENING(openat64, real(dir, path, flags, mode), dir); }
