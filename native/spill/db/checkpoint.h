// A consistent copy of the database in another directory, made while writes are diverted.
//
// In the commit queue, briefly: lists RocksDB's files and what is live in the spill store. Then, while diversion
// continues: links the files, copies the logs, and ingests what was live into the copy. The copy therefore needs no
// spill store, and making it neither waits for the end of a burst nor delays writes.
#pragma once

#include <rocksdb/db.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "spill/commit/commits.h"
#include "spill/db/families.h"
#include "spill/db/file_lists.h"
#include "spill/live/live_set.h"
#include "spill/live/value_reader.h"
#include "spill/main_db/main_db.h"
#include "spill/rollback/rollbacks.h"

namespace spillway::spill {

class CheckpointMaker {
 public:
  CheckpointMaker(ValueReader values, MainDb& main, LiveSet& live, Commits& commits, Rollbacks& rollbacks,
                  FileLists& file_lists, const Families& families)
      : values_(values),
        main_(main),
        live_(live),
        commits_(commits),
        rollbacks_(rollbacks),
        file_lists_(file_lists),
        families_(families) {}

  // As rocksdb::Checkpoint::CreateCheckpoint. InvalidArgument: the directory exists. Removes what a failure leaves.
  rocksdb::Status make(const std::string& name);

 private:
  using Handles = std::vector<rocksdb::ColumnFamilyHandle*>;
  using FamilyOptions = std::map<std::string, rocksdb::ColumnFamilyOptions>;
  // What is copied: RocksDB's files, and the live generations at the same moment.
  struct Captured {
    View view;
    FamilyOptions families;
    std::vector<rocksdb::LiveFileStorageInfo> files;
  };

  rocksdb::Status capture(Captured* captured);
  rocksdb::Status copy_files(const std::string& directory, Captured* captured);
  FamilyOptions options_of_families() const;
  // Opens the database in `directory`, a copy of this one, as plain RocksDB while `use` runs.
  using Use = std::function<rocksdb::Status(rocksdb::DB&, IngestedFiles&, const Handles&)>;
  rocksdb::Status open_copy(const std::string& directory, const FamilyOptions& known, const Use& use);
  // Ingests the spill store's part of the view into the copy, through files in `directory`. TryAgain: RocksDB refused
  // it, or may have placed it too deep (main_db/ingested_files.h).
  rocksdb::Status ingest_view(const View& view, rocksdb::DB& copy, IngestedFiles& ingested_files,
                              const Handles& handles, const std::string& directory);

  const ValueReader values_;
  MainDb& main_;
  LiveSet& live_;
  Commits& commits_;
  Rollbacks& rollbacks_;
  FileLists& file_lists_;
  const Families& families_;
};

}  // namespace spillway::spill
