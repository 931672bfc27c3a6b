/* The C side of the Go kit: tables whose calls are passed on to Go. The open call does not say which driver it belongs
 * to, so each table has its own. */
#include "glue.h"

#include "_cgo_export.h"

#define FOR_8(each, tens) \
  each(tens##0) each(tens##1) each(tens##2) each(tens##3) each(tens##4) each(tens##5) each(tens##6) each(tens##7)
#define FOR_64(each) \
  FOR_8(each, 0)     \
  FOR_8(each, 01) FOR_8(each, 02) FOR_8(each, 03) FOR_8(each, 04) FOR_8(each, 05) FOR_8(each, 06) FOR_8(each, 07)

/* The numbers are octal: 00 to 077. */
#define OPEN(number)                                                                                  \
  static uint32_t open_##number(const kv_config *config, kv_opened *opened, kv_database **database) { \
    return kvGoOpen(number, (kv_config *)config, opened, (kv_go_box **)database);                     \
  }
FOR_64(OPEN)

typedef uint32_t open_call(const kv_config *, kv_opened *, kv_database **);
#define NAME(number) open_##number,
static open_call *const opens[KV_GO_DRIVERS] = {FOR_64(NAME)};

static uint32_t session(kv_database *database, const kv_arena *arena, kv_session **session, char *error) {
  (void)arena;
  return kvGoSession((kv_go_box *)database, (kv_go_box **)session, error);
}

static uint32_t execute(kv_session *session, kv_batch *batch) {
  return kvGoExecute(((kv_go_box *)session)->handle, batch);
}

static uint32_t drive(kv_session *session, kv_turn *turn, void *context) {
  return kvGoDrive(((kv_go_box *)session)->handle, (uintptr_t)turn, (uintptr_t)context);
}

kv_batch *kv_go_turn(uintptr_t turn, uintptr_t context, uint32_t status) {
  return ((kv_turn *)turn)((void *)context, status);
}

static uint32_t session_end(kv_session *session, char *error) { return kvGoSessionEnd((kv_go_box *)session, error); }

static uint32_t maintain(kv_database *database, uint32_t work, char *error) {
  return kvGoMaintain((kv_go_box *)database, work, error);
}

static uint32_t stats(kv_database *database, char *out, uint64_t size) {
  return kvGoStats((kv_go_box *)database, out, size);
}

static uint32_t close_database(kv_database *database, char *error) { return kvGoClose((kv_go_box *)database, error); }

static kv_driver tables[KV_GO_DRIVERS];
static const kv_driver *list[KV_GO_DRIVERS];
static kv_drivers drivers = {KV_ABI, 0, list};

kv_driver *kv_go_table(uint32_t index) {
  kv_driver *table = &tables[index];
  table->abi = KV_ABI;
  table->size = sizeof(kv_driver);
  table->language = "Go";
  table->open = opens[index];
  table->session = session;
  table->execute = execute;
  table->session_end = session_end;
  table->maintain = maintain;
  table->stats = stats;
  table->close = close_database;
  table->drive = drive;
  return table;
}

/* The plug-in's one symbol. The call into Go waits until its runtime has started and all drivers are registered. */
const kv_drivers *kv_plugin(void) {
  const uint32_t count = kvGoFillTables();
  for (uint32_t i = 0; i < count; i++) list[i] = &tables[i];
  drivers.count = count;
  return &drivers;
}
