/* Compares the rows of a database with those that were acknowledged before a crash. The program that includes it, in C
 * or C++, has the calls of the engine.
 *
 * It opens the database and gets each key, puts a row, closes the database, opens it again, and gets each key again. It
 * prints what is wrong, and exits with 1 if anything is. It changes the database: give it a copy. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The calls of the engine. One that fails calls `failed`. */
static void open_database(const char *folder);
/* 1 and the value, which is not used after the next call; 0: there is no row. */
static int get(const char *key, size_t key_length, const void **value, size_t *length);
static void put(const char *key, size_t key_length, const void *value, size_t length);
static void close_database(void);

enum { TEXT = 64, THREADS = 16 };

/* What is done now. */
static const char *step = "first open";
static unsigned long wrong;

/* Says that a call of the engine has failed, and ends the program. */
static void failed(const char *call, const char *message) {
  printf("%s: %s: %s\n", step, call, message);
  exit(1);
}

/* A value as the files of this folder show it: its length and its FNV-1a hash of 64 bits. */
static void show(char text[TEXT], const void *value, size_t length) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < length; i++) hash = (hash ^ ((const uint8_t *)value)[i]) * 0x100000001b3u;
  snprintf(text, TEXT, "%zu:%016llx", length, (unsigned long long)hash);
}

/* Gets every key of the list. */
static void compare(FILE *list) {
  char line[1024], key[256], value[TEXT], next_value[TEXT], found[TEXT];
  unsigned long keys = 0, before = wrong, old_rows[THREADS] = {0}, new_rows[THREADS] = {0};
  unsigned long long commit, next_commit, next[THREADS] = {0};
  unsigned thread;
  rewind(list);
  while (fgets(line, sizeof(line), list) != NULL) {
    if (line[0] == '#') continue;
    if (sscanf(line, "%u %255s %llu %63s %llu %63s", &thread, key, &commit, value, &next_commit, next_value) != 6 ||
        thread >= THREADS) {
      fprintf(stderr, "not a line of the list of acknowledged rows: %s\n", line);
      exit(2);
    }
    const void *bytes;
    size_t length;
    strcpy(found, "none");
    if (get(key, strlen(key), &bytes, &length)) show(found, bytes, length);
    keys++;
    const int is_old = strcmp(found, value) == 0, is_new = next_commit != 0 && strcmp(found, next_value) == 0;
    if (!is_old && !is_new) {
      printf("%s: %s: %s instead of %s, acknowledged in commit %llu\n", step, key, found, value, commit);
      wrong++;
    } else if (next_commit != 0 && is_old != is_new) {
      next[thread] = next_commit;
      old_rows[thread] += (unsigned long)is_old;
      new_rows[thread] += (unsigned long)is_new;
    }
  }
  for (thread = 0; thread < THREADS; thread++)
    if (old_rows[thread] != 0 && new_rows[thread] != 0) {
      printf("%s: commit %llu of thread %u was one transaction: %lu of its changes are there, %lu are not\n", step,
             next[thread], thread, new_rows[thread], old_rows[thread]);
      wrong++;
    }
  if (wrong == before) printf("%s: all %lu keys are as acknowledged\n", step, keys);
}

int main(int argc, char **argv) {
  static const char after[] = "kvafter000000000", row[] = "a row that is put after the crash";
  const void *value;
  size_t length;
  FILE *list = argc == 3 ? fopen(argv[2], "r") : NULL;
  if (list == NULL) {
    fprintf(stderr, "usage: %s FOLDER-OF-THE-DATABASE acknowledged.tsv\n", argv[0]);
    return 2;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  open_database(argv[1]);
  compare(list);
  step = "put after it";
  put(after, strlen(after), row, strlen(row));
  step = "close";
  close_database();
  step = "second open";
  open_database(argv[1]);
  compare(list);
  if (!get(after, strlen(after), &value, &length) || length != strlen(row) || memcmp(value, row, length) != 0) {
    printf("%s: the row that was put before the close is not there\n", step);
    wrong++;
  }
  step = "second close";
  close_database();
  printf(wrong != 0 ? "This database is not what was acknowledged.\n" : "Nothing is wrong.\n");
  return wrong != 0;
}
