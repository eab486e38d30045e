"""A library that gives a process another wall clock, and another boot id: preloaded, it answers in
the place of the C library.

Both are environment variables of the process; without them nothing is different.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

VARIABLE = "TEST_CLOCK_SKEW_SECONDS"
BOOT_VARIABLE = "TEST_BOOT_ID"
BOOT_ID = "00000000-1111-2222-3333-444444444444"
"""Boot id that a process reads when that variable is set, as in a sandbox with its own kernel."""
# The monotonic clock stays unchanged. System calls, because these very functions are replaced.
SOURCE = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *now) {
  int failed = syscall(SYS_clock_gettime, id, now);
  const char *skew = getenv("VARIABLE");
  if (!failed && skew && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) now->tv_sec += atol(skew);
  return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec found;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &found);
  now->tv_sec = found.tv_sec;
  now->tv_usec = found.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *now) {
  struct timespec found;
  clock_gettime(CLOCK_REALTIME, &found);
  if (now) *now = found.tv_sec;
  return found.tv_sec;
}

static int opened(const char *path, int flags, int mode) {
  if (!strcmp(path, "/proc/sys/kernel/random/boot_id") && getenv("BOOT")) path = "/opt/test-boot-id";
  return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  int mode = va_arg(more, int);
  va_end(more);
  return opened(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  int mode = va_arg(more, int);
  va_end(more);
  return opened(path, flags, mode);
}
""".replace("VARIABLE", VARIABLE).replace("BOOT", BOOT_VARIABLE)


def library(folder: Path) -> Path:
    """Compile it (gcc); returns the path for LD_PRELOAD."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "clock.c").write_text(SOURCE)
    subprocess.run(
        ["gcc", "-O1", "-shared", "-fPIC", "-o", str(folder / "clock.so"), str(folder / "clock.c")], check=True
    )
    return folder / "clock.so"
