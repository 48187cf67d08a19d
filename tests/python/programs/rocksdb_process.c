// A program on RocksDB's C interface that changes its process before it opens a database, and knows nothing of
// Spillway.
//
//   rocksdb_process MODE DATABASE [FILE]
//
// MODE: plain                  opens DATABASE, puts a key, closes
//       own-file               as plain, with FILE as file descriptor 2, to which it writes "own\n" before and after
//       log-file, log-files    as plain, after standard error, or both standard files, were sent to FILE
//       directory              as plain, after it has changed its working directory to FILE
//       fork                   as plain; then a child opens DATABASE-child, puts a key, and exits with it open
//       family                 as plain, after it has made a column family with the name FILE
//       two-phase              prepares a transaction with allow_2pc, and commits it
//       repair, read-only      calls rocksdb_repair_db, or rocksdb_open_for_read_only
#include <fcntl.h>
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char* error = NULL;
static rocksdb_options_t* options = NULL;

static void check(const char* what) {
  if (error == NULL) return;
  fprintf(stderr, "%s: %s\n", what, error);
  exit(2);
}

static void require(int is_true) {
  if (!is_true) exit(3);
}

static rocksdb_t* open_and_put(const char* path) {
  rocksdb_t* db = rocksdb_open(options, path, &error);
  check("open");
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_put(db, write, "key", 3, "value", 5, &error);
  check("put");
  rocksdb_writeoptions_destroy(write);
  return db;
}

static void put_in_child(const char* path) {
  char child[4096];
  snprintf(child, sizeof child, "%s-child", path);
  const pid_t pid = fork();
  if (pid == 0) {
    (void)open_and_put(child);
    exit(0);
  }
  require(waitpid(pid, NULL, 0) == pid);  // RocksDB's own threads are not in the child, so that its exit may be a crash
}

static void commit_in_two_phases(const char* path) {
  rocksdb_options_t* two_phase = rocksdb_options_create();
  rocksdb_get_options_from_string(options, "allow_2pc=true", two_phase, &error);
  check("options");
  rocksdb_transactiondb_options_t* of_database = rocksdb_transactiondb_options_create();
  rocksdb_transactiondb_t* db = rocksdb_transactiondb_open(two_phase, of_database, path, &error);
  check("open");
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_transaction_options_t* of_one = rocksdb_transaction_options_create();
  rocksdb_transaction_t* transaction = rocksdb_transaction_begin(db, write, of_one, NULL);
  rocksdb_transaction_set_name(transaction, "name", 4, &error);
  check("name");
  rocksdb_transaction_put(transaction, "key", 3, "value", 5, &error);
  check("put");
  rocksdb_transaction_prepare(transaction, &error);
  check("prepare");
  rocksdb_transaction_commit(transaction, &error);
  check("commit");
  rocksdb_transaction_destroy(transaction);
  rocksdb_transactiondb_close(db);
}

int main(int argc, char** argv) {
  if (argc < 3) return 3;
  const char* mode = argv[1];
  const char* path = argv[2];
  const char* file = argc > 3 ? argv[3] : "";
  options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  const int is_own = strcmp(mode, "own-file") == 0;
  if (strcmp(mode, "repair") == 0) {
    rocksdb_repair_db(options, path, &error);
    check("repair");
    return 0;
  }
  if (strcmp(mode, "read-only") == 0) {
    rocksdb_t* db = rocksdb_open_for_read_only(options, path, 0, &error);
    check("open");
    rocksdb_close(db);
    return 0;
  }
  if (strcmp(mode, "two-phase") == 0) {
    commit_in_two_phases(path);
    return 0;
  }
  if (is_own) {
    close(2);
    require(open(file, O_WRONLY | O_CREAT, 0644) == 2 && write(2, "own\n", 4) == 4);
  }
  if (strcmp(mode, "log-file") == 0) require(freopen(file, "a", stderr) != NULL);
  if (strcmp(mode, "log-files") == 0) {
    const int log = open(file, O_WRONLY | O_CREAT, 0644);
    require(dup2(log, 1) == 1 && dup2(log, 2) == 2 && close(log) == 0);
  }
  if (strcmp(mode, "directory") == 0) require(chdir(file) == 0);
  rocksdb_t* db = open_and_put(path);
  if (strcmp(mode, "family") == 0) {
    rocksdb_column_family_handle_t* made = rocksdb_create_column_family(db, options, file, &error);
    check("family");
    rocksdb_column_family_handle_destroy(made);
  }
  rocksdb_close(db);
  if (strcmp(mode, "fork") == 0) put_in_child(path);
  if (is_own) require(write(2, "own\n", 4) == 4);
  rocksdb_options_destroy(options);
  return 0;
}
