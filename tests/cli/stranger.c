/* Makes a database with the library itself, as another program would: keys and values of many sizes, in no form of
 * kvdyno. Arguments: leveldb, rocksdb or lmdb, and a folder that does not exist. */
#include <leveldb/c.h>
#include <lmdb.h>
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ROWS 3000
#define LARGEST 70000

static void check(int is_right, const char *what) {
  if (is_right) return;
  fprintf(stderr, "%s failed\n", what);
  exit(1);
}

static size_t make_key(unsigned i, char *key) {
  const int length = snprintf(key, 200, i % 3 != 0 ? "user/%u" : "session/%08u/%u/state", i * 7919u % 100003u, i);
  return (size_t)length;
}

/* Most are small, a few have no bytes, and a few are large. */
static size_t value_size(unsigned i) { return i % 500 == 7 ? LARGEST - i : i % 11 == 0 ? 0 : i * 31 % 400; }

int main(int count, char **arguments) {
  static char key[200], value[LARGEST];
  check(count == 3 && mkdir(arguments[2], 0700) == 0, "mkdir");
  memset(value, 'v', sizeof(value));
  char *error = NULL;
  if (strcmp(arguments[1], "leveldb") == 0) {
    leveldb_options_t *options = leveldb_options_create();
    leveldb_options_set_create_if_missing(options, 1);
    leveldb_t *db = leveldb_open(options, arguments[2], &error);
    check(db != NULL, "leveldb_open");
    leveldb_writeoptions_t *how = leveldb_writeoptions_create();
    for (unsigned i = 0; i < ROWS; i++) leveldb_put(db, how, key, make_key(i, key), value, value_size(i), &error);
    check(error == NULL, "leveldb_put");
    leveldb_close(db);
  } else if (strcmp(arguments[1], "rocksdb") == 0) {
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_t *db = rocksdb_open(options, arguments[2], &error);
    check(db != NULL, "rocksdb_open");
    /* An application has column families of its own. */
    rocksdb_column_family_handle_t *other = rocksdb_create_column_family(db, options, "counters", &error);
    rocksdb_writeoptions_t *how = rocksdb_writeoptions_create();
    for (unsigned i = 0; i < ROWS; i++) rocksdb_put(db, how, key, make_key(i, key), value, value_size(i), &error);
    rocksdb_put_cf(db, how, other, "c", 1, "1", 1, &error);
    check(error == NULL, "rocksdb_put");
    rocksdb_column_family_handle_destroy(other);
    rocksdb_close(db);
  } else {
    MDB_env *env;
    MDB_txn *transaction;
    MDB_dbi dbi;
    check(mdb_env_create(&env) == 0 && mdb_env_set_mapsize(env, 64 << 20) == 0, "mdb_env_create");
    check(mdb_env_open(env, arguments[2], 0, 0600) == 0, "mdb_env_open");
    check(mdb_txn_begin(env, NULL, 0, &transaction) == 0 && mdb_dbi_open(transaction, NULL, 0, &dbi) == 0,
          "mdb_dbi_open");
    for (unsigned i = 0; i < ROWS; i++) {
      MDB_val row_key = {make_key(i, key), key}, row_value = {value_size(i), value};
      check(mdb_put(transaction, dbi, &row_key, &row_value, 0) == 0, "mdb_put");
    }
    check(mdb_txn_commit(transaction) == 0, "mdb_txn_commit");
    mdb_env_close(env);
  }
  return 0;
}
