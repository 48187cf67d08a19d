// A program on RocksDB's C interface that knows nothing of Spillway. Its pause lets whoever watches RocksDB see its first
// table.
//
//   rocksdb_user MODE DATABASE COUNT
//
// MODE: write, comparator, ttl, transactions   put COUNT keys, in write a flush after the first, and half a second's pause
//       sync                              as write, with sync, and prints each key when it is acknowledged
//       read, read-only                   read COUNT keys; exit code 1 where one is missing
//       no-close                          as write, and exits with the database open
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char* error = NULL;

static void check(const char* what) {
  if (error == NULL) return;
  fprintf(stderr, "%s: %s\n", what, error);
  exit(2);
}

static int compare(void* state, const char* a, size_t a_size, const char* b, size_t b_size) {
  (void)state;
  const size_t least = a_size < b_size ? a_size : b_size;
  const int order = memcmp(a, b, least);
  return order != 0 ? order : (a_size > b_size) - (a_size < b_size);
}
static void destroy(void* state) { (void)state; }
static const char* name(void* state) {
  (void)state;
  return "own comparator";
}

static void key_of(int number, char* key) { snprintf(key, 32, "key%08d", number); }

static int read_all(rocksdb_t* db, int count) {
  rocksdb_readoptions_t* options = rocksdb_readoptions_create();
  int missing = 0;
  for (int i = 0; i < count; ++i) {
    char key[32];
    size_t size = 0;
    key_of(i, key);
    char* value = rocksdb_get(db, options, key, strlen(key), &size, &error);
    check("get");
    if (value == NULL || size != strlen(key) || memcmp(value, key, size) != 0) ++missing;
    free(value);
  }
  rocksdb_readoptions_destroy(options);
  printf("%d of %d missing\n", missing, count);
  return missing == 0 ? 0 : 1;
}

static void put_transactions(rocksdb_transactiondb_t* db, int count) {
  rocksdb_writeoptions_t* options = rocksdb_writeoptions_create();
  rocksdb_transaction_options_t* of_one = rocksdb_transaction_options_create();
  for (int i = 0; i < count; ++i) {
    char key[32];
    key_of(i, key);
    rocksdb_transaction_t* transaction = rocksdb_transaction_begin(db, options, of_one, NULL);
    rocksdb_transaction_put(transaction, key, strlen(key), key, strlen(key), &error);
    check("put");
    rocksdb_transaction_commit(transaction, &error);
    check("commit");
    rocksdb_transaction_destroy(transaction);
    if (i == 0) usleep(500000);
  }
  rocksdb_transaction_options_destroy(of_one);
  rocksdb_writeoptions_destroy(options);
}

static void put_all(rocksdb_t* db, int count, int sync) {
  rocksdb_writeoptions_t* options = rocksdb_writeoptions_create();
  rocksdb_writeoptions_set_sync(options, (unsigned char)sync);
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  for (int i = 0; i < count; ++i) {
    char key[32];
    key_of(i, key);
    rocksdb_put(db, options, key, strlen(key), key, strlen(key), &error);
    check("put");
    if (sync) {
      printf("%d\n", i);
      fflush(stdout);
    }
    if (i == 0) {
      rocksdb_flush(db, flush, &error);
      check("flush");
      usleep(500000);
    }
  }
  rocksdb_flushoptions_destroy(flush);
  rocksdb_writeoptions_destroy(options);
}

int main(int argc, char** argv) {
  if (argc != 4) return 3;
  const char* mode = argv[1];
  const char* path = argv[2];
  const int count = atoi(argv[3]);
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  // Its tables are never compacted, so that a watcher who takes one table for many always has a reason to act.
  rocksdb_universal_compaction_options_t* universal = rocksdb_universal_compaction_options_create();
  rocksdb_universal_compaction_options_set_min_merge_width(universal, 1000);
  rocksdb_universal_compaction_options_set_max_size_amplification_percent(universal, 1000000);
  rocksdb_options_set_compaction_style(options, rocksdb_universal_compaction);
  rocksdb_options_set_universal_compaction_options(options, universal);
  rocksdb_universal_compaction_options_destroy(universal);
  rocksdb_options_set_level0_file_num_compaction_trigger(options, 1);
  int code = 0;
  if (strcmp(mode, "transactions") == 0) {
    rocksdb_transactiondb_options_t* transactions = rocksdb_transactiondb_options_create();
    rocksdb_transactiondb_t* db = rocksdb_transactiondb_open(options, transactions, path, &error);
    check("open");
    put_transactions(db, count);
    rocksdb_transactiondb_close(db);
    rocksdb_transactiondb_options_destroy(transactions);
  } else {
    if (strcmp(mode, "comparator") == 0) {
      rocksdb_options_set_comparator(options, rocksdb_comparator_create(NULL, destroy, compare, name));
    }
    const int is_read_only = strcmp(mode, "read-only") == 0;
    rocksdb_t* db = is_read_only                   ? rocksdb_open_for_read_only(options, path, 0, &error)
                    : strcmp(mode, "ttl") == 0 ? rocksdb_open_with_ttl(options, path, 0, &error)
                                               : rocksdb_open(options, path, &error);
    check("open");
    if (is_read_only || strcmp(mode, "read") == 0) {
      code = read_all(db, count);
    } else {
      put_all(db, count, strcmp(mode, "sync") == 0);
      if (strcmp(mode, "comparator") == 0) code = read_all(db, count);
    }
    if (strcmp(mode, "no-close") != 0) rocksdb_close(db);
  }
  rocksdb_options_destroy(options);
  return code;
}
