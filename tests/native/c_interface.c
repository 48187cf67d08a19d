/* spillway/c.h as a program in C uses it.
 *   c_interface check DIRECTORY     every function, and how it fails
 *   c_interface metrics DIRECTORY   a database of some writes, and its metrics on standard output */
#include <rocksdb/c.h>
#include <spillway/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char kOptions[] = "create_if_missing=true;write_buffer_size=65536";

static void fail(int line, const char* what, const char* message) {
  fprintf(stderr, "c_interface.c:%d: %s: %s\n", line, what, message == NULL ? "" : message);
  exit(1);
}

#define EXPECT(condition) \
  if (!(condition)) fail(__LINE__, #condition, error)
#define EXPECT_OK EXPECT(error == NULL)

/* The call before it has failed, with this in its message. */
static void expect_error(int line, char** error, const char* part) {
  if (*error == NULL || strstr(*error, part) == NULL) fail(line, part, *error);
  spillway_free(*error);
  *error = NULL;
}
#define EXPECT_ERROR(part) expect_error(__LINE__, &error, part)

static void put(spillway_t* db, const char* key, const char* value, char** error) {
  spillway_put(db, 0, key, strlen(key), value, strlen(value), error);
}

static int has(spillway_t* db, const char* key, const char* value, char** error) {
  size_t length = 99;
  char* const found = spillway_get(db, key, strlen(key), &length, error);
  const int same = value == NULL ? found == NULL && length == 0
                                 : found != NULL && length == strlen(value) && memcmp(found, value, length) == 0;
  spillway_free(found);
  return same;
}

static void check_refusals(const char* directory) {
  char* error = NULL;
  EXPECT(spillway_open(directory, "create_if_missing=true;no_such_option=1", NULL, &error) == NULL);
  EXPECT_ERROR("no_such_option");
  EXPECT(spillway_open(directory, kOptions, "capacty=4GiB", &error) == NULL);
  EXPECT_ERROR("the nearest is capacity");
  EXPECT(spillway_open(directory, kOptions, "capacity", &error) == NULL);
  EXPECT_ERROR("KEY=VALUE");
  EXPECT(spillway_open(directory, kOptions, "capacity=much", &error) == NULL);
  EXPECT_ERROR("capacity is much; it takes a size");
  EXPECT(spillway_open(directory, kOptions, "divert_pending=1.5", &error) == NULL);
  EXPECT_ERROR("it takes a number from 0 to 1");
  EXPECT(spillway_open(directory, kOptions, "divert_pending=nan", &error) == NULL);
  EXPECT_ERROR("it takes a number from 0 to 1");
  EXPECT(spillway_open(directory, kOptions, "rollback=later", &error) == NULL);
  EXPECT_ERROR("rollback \"later\" is not known");
  EXPECT(spillway_open(directory, kOptions, "poll_ms=10;poll_ms=20", &error) == NULL);
  EXPECT_ERROR("poll_ms is given twice");
  EXPECT(spillway_open(directory, kOptions, "capacity=1MiB;generation=2MiB", &error) == NULL);
  EXPECT_ERROR("less than a generation");
  /* A message takes the place of an earlier one. */
  EXPECT(spillway_open(directory, NULL, NULL, &error) == NULL);
  EXPECT(spillway_open(directory, NULL, "capacty=1", &error) == NULL);
  EXPECT_ERROR("capacty");
  EXPECT(spillway_open(directory, NULL, NULL, &error) == NULL);
  EXPECT_ERROR("create_if_missing");
}

static void check_batch(spillway_t* db) {
  char* error = NULL;
  size_t length = 0;
  rocksdb_writebatch_t* const batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "b1", 2, "one", 3);
  rocksdb_writebatch_delete(batch, "key", 3);
  const char* const data = rocksdb_writebatch_data(batch, &length);
  spillway_write(db, 0, data, length, &error);
  EXPECT_OK;
  spillway_write(db, 0, data, 4, &error);
  EXPECT_ERROR("not a batch");
  rocksdb_writebatch_destroy(batch);
  EXPECT(has(db, "b1", "one", &error));
  EXPECT(has(db, "key", NULL, &error));
}

static void check_all(const char* directory) {
  char* error = NULL;
  uint64_t number = 0;
  spillway_t* db = spillway_open(directory, kOptions, "capacity=64MiB;generation=1MiB;rollback=off;poll_ms=10", &error);
  EXPECT_OK;
  EXPECT(spillway_property_int(db, "spillway.store-capacity-bytes", &number) == 0 && number == 64u << 20);
  put(db, "key", "value", &error);
  EXPECT_OK;
  EXPECT(has(db, "key", "value", &error));
  EXPECT(has(db, "none", NULL, &error));
  EXPECT_OK;

  spillway_set_diversion(db, 7, &error);
  EXPECT_ERROR("no diversion has the number 7");
  spillway_set_diversion(db, SPILLWAY_DIVERSION_ALWAYS, &error);
  spillway_put(db, SPILLWAY_WRITE_SYNC, "diverted", 8, "", 0, &error);
  EXPECT_OK;
  EXPECT(has(db, "diverted", "", &error));
  EXPECT(spillway_property_int(db, "spillway.live-entries", &number) == 0 && number == 1);
  check_batch(db);
  spillway_delete(db, 0, "b1", 2, &error);
  EXPECT_OK;
  EXPECT(has(db, "b1", NULL, &error));
  EXPECT(spillway_wait(db, 20) == 0);

  spillway_set_diversion(db, SPILLWAY_DIVERSION_AUTOMATIC, &error);
  spillway_rollback(db, &error);
  EXPECT_OK;
  EXPECT(spillway_wait(db, 60000) == 1);
  EXPECT(spillway_property_int(db, "spillway.live-entries", &number) == 0 && number == 0);
  EXPECT(spillway_property_int(db, "spillway.no-such-thing", &number) == -1);
  EXPECT(spillway_property_value(db, "spillway.no-such-thing") == NULL);
  char* const stats = spillway_property_value(db, "spillway.stats");
  EXPECT(stats != NULL && strstr(stats, "diverted-writes: 4\n") != NULL);
  spillway_free(stats);
  spillway_close(db, &error);
  EXPECT_OK;

  db = spillway_open(directory, NULL, NULL, &error);
  EXPECT_OK;
  EXPECT(has(db, "diverted", "", &error));
  EXPECT(has(db, "key", NULL, &error));
  spillway_close(db, &error);
  EXPECT_OK;
}

static void print_metrics(const char* directory) {
  char* error = NULL;
  spillway_t* const db = spillway_open(
      directory, "create_if_missing=true;write_buffer_size=65536;statistics=BasicStatistics", NULL, &error);
  EXPECT_OK;
  put(db, "key", "value", &error);
  spillway_set_diversion(db, SPILLWAY_DIVERSION_ALWAYS, &error);
  put(db, "key", "newer", &error);
  EXPECT_OK;
  char* const text = spillway_property_value(db, "spillway.prometheus");
  EXPECT(text != NULL);
  fputs(text, stdout);
  spillway_free(text);
  spillway_close(db, &error);
  EXPECT_OK;
}

static void destroy(const char* directory) {
  char* error = NULL;
  rocksdb_options_t* const options = rocksdb_options_create();
  rocksdb_destroy_db(options, directory, &error);
  rocksdb_options_destroy(options);
  rocksdb_free(error);
}

int main(int argc, char** argv) {
  if (argc != 3) return fputs("usage: c_interface check|metrics DIRECTORY\n", stderr), 2;
  destroy(argv[2]);
  if (strcmp(argv[1], "metrics") == 0) {
    print_metrics(argv[2]);
  } else {
    check_refusals(argv[2]);
    check_all(argv[2]);
  }
  return 0;
}
