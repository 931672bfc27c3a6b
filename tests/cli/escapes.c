/* A null engine that does once what no driver may, at a place and in a way that its option names, PLACE/HOW, or
 * ESCAPE in the environment: leaves processes, ends or kills what is not its own, spoils what it shares, fills the
 * disk.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "kit.h"

#define CAPABILITIES (KV_STORES_NOTHING | KV_IN_MEMORY | KV_ORDERED | KV_CAN_DELETE | KV_OVERWRITE)

static const kv_option options[] = {{"escape", "text", "none", "PLACE/HOW"}};
static char escape[64] = "none", folder[4096];
static int has_escaped;

static int is(const char *how) {
  const char *slash = strchr(escape, '/');
  return slash != NULL && strcmp(slash + 1, how) == 0;
}

static void wait_for_ever(void) {
  for (;;) pause();
}

static void *spin(void *unused) {
  for (;;) __asm__ volatile("");
  return unused;
}

static void leave_child(void) {
  if (fork() != 0) return;
  if (is("deaf"))
    for (int number = 1; number < 32; number++) signal(number, SIG_IGN);
  if (is("stopped")) raise(SIGSTOP);
  wait_for_ever();
}

/* Uses one second of CPU time, whatever else runs on the machine. */
static void burn(void) {
  struct timespec used = {0, 0};
  while (used.tv_sec < 1) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
}

/* A process in a session of its own whose parent has ended. */
static void leave_daemon(void) {
  int ends[2];
  char byte;
  pid_t middle;
  if (pipe(ends) != 0) abort();
  middle = fork();
  if (middle == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    close(ends[0]);
    if (is("burner") || is("burner-gone")) burn();
    if (is("burner-gone")) _exit(0);
    if (write(ends[1], "x", 1) != 1) abort();
    wait_for_ever();
  }
  close(ends[1]);
  waitpid(middle, NULL, 0);
  /* Until it has done what it is for, or has ended. */
  if (read(ends[0], &byte, 1) < 0) abort();
  close(ends[0]);
}

static void burn_and_wait(void) {
  pid_t child = fork();
  if (child == 0) {
    burn();
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

static void write_garbage(void) {
  static char garbage[4096];
  for (size_t i = 0; i < sizeof(garbage); i++) garbage[i] = (char)(i * 151 + 7);
  for (int descriptor = 0; descriptor <= 20; descriptor++) {
    if (write(descriptor, garbage, sizeof(garbage)) < 0) continue;
  }
  if (write(1, "kvdyno-told {\"message\":{\"phase\":", 32) < 0) return;
}

static void fill_disk(void) {
  char name[4200];
  static char block[65536];
  int file;
  memset(block, 'x', sizeof(block));
  snprintf(name, sizeof(name), "%s/filler", folder);
  file = open(name, O_WRONLY | O_CREAT | O_APPEND, 0600);
  for (size_t size = sizeof(block); size > 0; size /= 2)
    while (write(file, block, size) > 0) continue;
  close(file);
}

/* So that a test need not guess when it has come so far. */
static void tell(void) {
  char name[4200];
  snprintf(name, sizeof(name), "%s/escaping", folder);
  close(open(name, O_WRONLY | O_CREAT, 0600));
}

static void go_astray(const char *place) {
  const char *slash = strchr(escape, '/');
  struct rlimit limit;
  sigset_t all;
  pthread_t thread;
  if (has_escaped || slash == NULL || strncmp(escape, place, (size_t)(slash - escape)) != 0) return;
  has_escaped = 1;
  if (is("child") || is("deaf") || is("stopped")) leave_child();
  if (is("daemon") || is("burner") || is("burner-gone") || is("daemon-kill")) leave_daemon();
  if (is("burner-waited")) burn_and_wait();
  if (is("bomb"))
    for (int i = 0; i < 50; i++) leave_child();
  if (is("thread")) pthread_create(&thread, NULL, spin, NULL);
  if (is("exit-0")) exit(0);
  if (is("_exit-0")) _exit(0);
  if (is("_exit-3")) _exit(3);
  if (is("abort")) abort();
  if (is("hang")) {
    tell();
    wait_for_ever();
  }
  if (is("kill-group") || is("daemon-kill")) kill(-getpgid(getppid()), SIGKILL);
  if (is("close-all"))
    for (int descriptor = 0; descriptor < 1024; descriptor++) close(descriptor);
  if (is("garbage")) write_garbage();
  if (is("limits")) {
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max = RLIM_INFINITY;
    setrlimit(RLIMIT_NOFILE, &limit);
    setrlimit(RLIMIT_CORE, &limit);
  }
  if (is("chdir") && chdir("/") != 0) abort();
  if (is("signals")) {
    for (int number = 1; number < 32; number++) signal(number, SIG_IGN);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
  }
  if (is("full") || is("full-abort")) fill_disk();
  if (is("full-abort")) abort();
}

__attribute__((destructor)) static void at_exit(void) { go_astray("destructor"); }

static uint32_t call(kv_session *session, kv_op *op, kv_batch *batch) {
  (void)session, (void)op;
  go_astray("execute");
  if (is("full") && has_escaped) return kv_fail(batch, op, KV_FULL, "%s", strerror(ENOSPC));
  return KV_OK;
}

static uint32_t execute(kv_session *session, kv_batch *batch) {
  static const kv_calls calls = {.capabilities = CAPABILITIES, .get = call, .put = call, .remove = call, .scan = call};
  return kv_run(session, batch, &calls);
}

static const kv_driver driver;
static char handle;

static uint32_t open_it(const kv_config *config, kv_opened *opened, kv_database **database) {
  uint32_t status = kv_open_begin(&driver, config, opened);
  const char *wanted = getenv("ESCAPE");
  for (uint32_t i = 0; i < config->setting_count; i++) wanted = config->settings[i].value;
  snprintf(escape, sizeof(escape), "%s", wanted == NULL ? "none" : wanted);
  snprintf(folder, sizeof(folder), "%s", config->path);
  opened->level = KV_NONE;
  kv_opened_setting(opened, "escape", "%s", kv_setting_text(&driver, config, "escape"));
  snprintf(opened->version, sizeof(opened->version), "1");
  *database = (kv_database *)&handle;
  go_astray("open");
  return status;
}

static uint32_t close_it(kv_database *database, char *error) {
  (void)database, (void)error;
  go_astray("close");
  return KV_OK;
}

static const kv_driver driver = {.abi = KV_ABI,
                                 .size = sizeof(kv_driver),
                                 .name = "escapes",
                                 .engine = "goes astray",
                                 .language = "C",
                                 .family = "example",
                                 .capabilities = CAPABILITIES,
                                 .levels = 1u << KV_NONE,
                                 .option_count = 1,
                                 .options = options,
                                 .open = open_it,
                                 .close = close_it,
                                 .session = kv_same_session,
                                 .session_end = kv_same_session_end,
                                 .execute = execute,
                                 .maintain = kv_no_maintain,
                                 .stats = kv_no_stats};

KV_EXPORT(&driver)
