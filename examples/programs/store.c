/* A program on RocksDB's C interface that knows nothing of Spillway: puts COUNT keys into a database and reads them back.
 * OPTIONS is an option string of RocksDB, or @DIRECTORY with an OPTIONS file of RocksDB.
 *
 *   cc store.c -o store -lrocksdb
 *   LD_PRELOAD=librocksdb-spillway.so ./store DATABASE 'env=spillway://preset:quickstart,pacing:off' 10000
 */
#include <rocksdb/c.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char* error = NULL;

static void check(const char* what) {
  if (error == NULL) return;
  fprintf(stderr, "%s: %s\n", what, error);
  exit(1);
}

static rocksdb_options_t* options_of(const char* option_string) {
  rocksdb_options_t* defaults = rocksdb_options_create();
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_get_options_from_string(defaults, option_string, options, &error);
  check("options");
  rocksdb_options_destroy(defaults);
  return options;
}

static rocksdb_options_t* options_in(const char* directory) {
  rocksdb_env_t* env = rocksdb_create_default_env();
  rocksdb_cache_t* cache = rocksdb_cache_create_lru(8 << 20);
  rocksdb_options_t* options = NULL;
  size_t count = 0;
  char** names = NULL;
  rocksdb_options_t** of_families = NULL;
  rocksdb_load_latest_options(directory, env, false, cache, &options, &count, &names, &of_families, &error);
  check("OPTIONS file");
  rocksdb_load_latest_options_destroy(NULL, names, of_families, count);
  rocksdb_cache_destroy(cache);
  rocksdb_env_destroy(env);
  return options;
}

static rocksdb_t* open_database(const char* path, const char* given) {
  rocksdb_options_t* options = given[0] == '@' ? options_in(given + 1) : options_of(given);
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_t* db = rocksdb_open(options, path, &error);
  check("open");
  rocksdb_options_destroy(options);
  return db;
}

static void put_all(rocksdb_t* db, int count) {
  rocksdb_writeoptions_t* options = rocksdb_writeoptions_create();
  char value[400];
  memset(value, 'v', sizeof value);
  for (int i = 0; i < count; ++i) {
    char key[32];
    snprintf(key, sizeof key, "key%08d", i);
    rocksdb_put(db, options, key, strlen(key), value, sizeof value, &error);
    check("put");
  }
  rocksdb_writeoptions_destroy(options);
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &error);
  check("flush");
  rocksdb_flushoptions_destroy(flush);
}

static int read_all(rocksdb_t* db, int count) {
  rocksdb_readoptions_t* options = rocksdb_readoptions_create();
  int found = 0;
  for (int i = 0; i < count; ++i) {
    char key[32];
    size_t size = 0;
    snprintf(key, sizeof key, "key%08d", i);
    char* value = rocksdb_get(db, options, key, strlen(key), &size, &error);
    check("get");
    found += value != NULL && size == 400;
    free(value);
  }
  rocksdb_readoptions_destroy(options);
  return found;
}

int main(int count_of_words, char** words) {
  if (count_of_words != 4) {
    fprintf(stderr, "usage: store DATABASE OPTIONS COUNT\n");
    return 2;
  }
  const int count = atoi(words[3]);
  rocksdb_t* db = open_database(words[1], words[2]);
  put_all(db, count);
  const int found = read_all(db, count);
  printf("%d of %d keys\n", found, count);
  rocksdb_close(db);
  return found == count ? 0 : 1;
}
