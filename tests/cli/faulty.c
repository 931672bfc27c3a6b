/* A null engine that goes wrong as its option says, at its thousandth op, in the load, or with `-later` at its 2500th,
 * in the phase after it: what the tool must survive.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "kit.h"

#define CAPABILITIES (KV_STORES_NOTHING | KV_IN_MEMORY | KV_ORDERED | KV_CAN_DELETE | KV_OVERWRITE)

static const kv_option options[] = {{"fault", "text", "none",
                                     "segv, abort, exit, exit-zero, exit-three, kill, hang, stop, sleep, bus, map, "
                                     "freeze, memory, endless, files, size, "
                                     "leak, error"}};
static char fault[32], folder[4096];
static unsigned ops, last_op = 1000;

/* Stores to each page of a mapped file of 64 MiB in a folder, of which `kept` bytes are left when it is mapped. */
static void store_to_map(off_t kept) {
  const size_t length = 64 << 20;
  char name[4200];
  snprintf(name, sizeof(name), "%s/map", folder);
  int file = open(name, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, (off_t)length) != 0) abort();
  volatile char *map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (map == MAP_FAILED || ftruncate(file, kept) != 0) abort();
  for (size_t at = 0; at < length; at += 4096) map[at] = 1;
}

/* Freezes the file system of a folder and then writes there: the kernel blocks the call until somebody thaws it. */
static void freeze_and_write(const char *place) {
  char name[4200];
  snprintf(name, sizeof(name), "%s/blocked", place);
  int file = open(name, O_WRONLY | O_CREAT, 0600), mount = open(place, O_RDONLY);
  if (file < 0 || ioctl(mount, FIFREEZE, 0) != 0) abort();
  if (write(file, "x", 1) != 1) abort();
}

/* Keeps 48 MiB of memory and 100 open files more in each second. */
static void leak(void) {
  enum { PIECE = 1 << 20 };
  static struct timespec begun;
  static double kept, opened;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (begun.tv_sec == 0) begun = now;
  double seconds = (double)(now.tv_sec - begun.tv_sec) + (double)(now.tv_nsec - begun.tv_nsec) / 1e9;
  for (; kept < seconds * 48; kept++) memset(malloc(PIECE), 1, PIECE);
  for (; opened < seconds * 100; opened++)
    if (open("/dev/null", O_RDONLY) < 0) abort();
}

/* Writes more than a file may have, with the signal for that as the kernel ships it. */
static void exceed_size(void) {
  char name[4200];
  struct rlimit limit = {4096, 4096};
  snprintf(name, sizeof(name), "%s/large", folder);
  int file = open(name, O_WRONLY | O_CREAT, 0600);
  signal(SIGXFSZ, SIG_DFL);
  if (file < 0 || setrlimit(RLIMIT_FSIZE, &limit) != 0) abort();
  for (int at = 0; at < 3; at++)
    if (write(file, folder, sizeof(folder)) < 0) abort();
}

/* Sleeps in a system call for a second and a half. */
static uint32_t sleep_a_while(void) {
  const struct timespec length = {1, 500000000};
  return nanosleep(&length, NULL) == 0 ? KV_OK : KV_ERROR;
}

static uint32_t go_wrong(kv_op *op, kv_batch *batch) {
  (void)op;
  if (!strcmp(fault, "sleep")) return sleep_a_while();
  if (!strcmp(fault, "size")) exceed_size();
  if (!strcmp(fault, "segv")) *(volatile int *)8 = 0;
  if (!strcmp(fault, "abort")) fprintf(stderr, "engine: assertion failed: it was not\n"), abort();
  if (!strcmp(fault, "exit")) _exit(0);
  if (!strcmp(fault, "exit-zero")) exit(0);
  if (!strcmp(fault, "exit-three")) _exit(3);
  if (!strcmp(fault, "kill")) raise(SIGKILL);
  if (!strcmp(fault, "bus")) store_to_map(8192);
  if (!strcmp(fault, "map")) store_to_map(64 << 20);
  if (!strcmp(fault, "freeze")) freeze_and_write(getenv("FAULTY_FREEZE"));
  if (!strcmp(fault, "endless"))
    for (;;) memset(malloc(1 << 20), 1, 1 << 20);
  if (!strcmp(fault, "hang"))
    for (;;) pause();
  if (!strcmp(fault, "stop")) raise(SIGSTOP);
  if (!strcmp(fault, "memory")) fprintf(stderr, "memory allocation of 99 bytes failed\n"), abort();
  if (!strcmp(fault, "files")) {
    while (open("/dev/null", O_RDONLY) >= 0) continue;
    snprintf(batch->error, sizeof(batch->error), "%s", strerror(errno));
    return KV_ERROR;
  }
  snprintf(batch->error, sizeof(batch->error), "the page is torn");
  return KV_ERROR;
}

static uint32_t call(kv_session *session, kv_op *op, kv_batch *batch) {
  (void)session;
  ops++;
  if (ops > last_op && !strcmp(fault, "leak")) leak();
  return ops == last_op && strcmp(fault, "none") && strcmp(fault, "leak") ? go_wrong(op, batch) : KV_OK;
}

static uint32_t execute(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {.capabilities = CAPABILITIES, .get = call, .put = call, .remove = call, .scan = call};
  return kv_run(session, batch, &calls);
}

static const kv_driver driver;
static char handle;

static uint32_t open_faulty(const kv_config *config, kv_opened *opened, kv_database **database) {
  uint32_t status = kv_open_begin(&driver, config, opened);
  for (uint32_t i = 0; i < config->setting_count; i++) snprintf(fault, sizeof(fault), "%s", config->settings[i].value);
  snprintf(folder, sizeof(folder), "%s", config->path);
  char *later = strstr(fault, "-later");
  if (later != NULL) *later = 0, last_op = 2500;
  opened->level = KV_NONE;
  snprintf(opened->version, sizeof(opened->version), "1");
  *database = (kv_database *)&handle;
  return status;
}

static uint32_t close_faulty(kv_database *database, char *error) {
  (void)database, (void)error;
  return KV_OK;
}

static const kv_driver driver = {.abi = KV_ABI,
                                 .size = sizeof(kv_driver),
                                 .name = "faulty",
                                 .engine = "goes wrong",
                                 .language = "C",
                                 .family = "example",
                                 .capabilities = CAPABILITIES,
                                 .levels = 1u << KV_NONE,
                                 .option_count = 1,
                                 .options = options,
                                 .open = open_faulty,
                                 .close = close_faulty,
                                 .session = kv_same_session,
                                 .session_end = kv_same_session_end,
                                 .execute = execute,
                                 .maintain = kv_no_maintain,
                                 .stats = kv_no_stats};

KV_EXPORT(&driver)
