// The Env under RocksDB: the user's, with four additions.
//
// It keeps out of RocksDB a sorted file that RocksDB could not read. If RocksDB 7.8.3 cannot read a file's first key,
// it takes the file for one without keys and reports no error. It would never find the keys or remove the file, and
// scans and compactions would meet its keys outside the range that RocksDB has recorded. RocksDB reads all files first
// and then links them into its directory. Therefore the link of a file of which a read has failed fails too, and
// nothing is ingested.
//
// It puts the user's options back into RocksDB's OPTIONS files. RocksDB writes one under a temporary name, compares it
// with the options that it runs with, asks for its size, which it reports to copies of the database, and renames it.
// The text is therefore restored when RocksDB asks for the size. A crash before the rename leaves a temporary file,
// which RocksDB never reads.
//
// It prevents a thread from writing an OPTIONS file without a change (NoOptionsFile).
//
// It registers RocksDB's logs with MainLogs.
#pragma once

#include <rocksdb/env.h>

#include <memory>
#include <string>

#include "spill/main_db/main_logs.h"
#include "spill/main_db/user_options.h"

namespace spillway::spill {

// `env`, which outlives it. `database`: RocksDB's directory; `sorted_directory`: where sorted files wait for ingestion.
std::unique_ptr<rocksdb::Env> guard_env(rocksdb::Env* env, const std::string& database,
                                        const std::string& sorted_directory,
                                        const std::shared_ptr<const UserOptions>& user_options,
                                        const std::shared_ptr<MainLogs>& main_logs);

// While it exists, RocksDB writes no OPTIONS file in this thread: the current one stays. RocksDB does not ask objects
// in the options for their names then. RocksDB continues without the file, or with fail_if_options_file_error returns
// IOError after everything else is done.
class NoOptionsFile {
 public:
  NoOptionsFile();
  ~NoOptionsFile();
  NoOptionsFile(const NoOptionsFile&) = delete;
  NoOptionsFile& operator=(const NoOptionsFile&) = delete;

  // Whether RocksDB has tried to write one.
  bool was_tried() const { return was_tried_; }
  void note_tried() { was_tried_ = true; }

 private:
  bool was_tried_ = false;
};

}  // namespace spillway::spill
