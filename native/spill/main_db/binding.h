// Binds a spill store to its database while both are open; binding_record.h says by what.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/status.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "spill/store/binding_record.h"
#include "spill/store/store.h"

namespace spillway::spill {

// The families in the MANIFEST of the database in `name`; none where there is no database.
rocksdb::Status list_families(const rocksdb::DBOptions& options, const std::string& name,
                              std::vector<std::string>* families);
// RocksDB's identity of the database in `name`; empty where it has none.
std::string identity_of(rocksdb::Env& env, const std::string& name);
// The options of a guard. Its comparator has a name of its own, so that RocksDB refuses a program that opens every
// family it finds.
rocksdb::ColumnFamilyOptions guard_options();

// Thread-safe from install() on.
class Binding {
 public:
  // `location` names the store in messages.
  Binding(std::shared_ptr<Store> store, std::string database, std::string location);
  ~Binding();
  Binding(const Binding&) = delete;
  Binding& operator=(const Binding&) = delete;

  // Refuse a store that does not belong to the database, with a message that says what to do. The first changes nothing
  // and is called before the store is recovered, the second when it is known whether writes lie in it.
  rocksdb::Status check_guard(const std::vector<std::string>& families, const std::string& identity);
  rocksdb::Status check_writes(bool has_writes);

  // Begins an opening: a new guard in the place of `old_guards`, which remain the caller's handles.
  // REQUIRES: both checks passed, and nothing was diverted yet.
  rocksdb::Status install(const std::shared_ptr<rocksdb::DB>& db,
                          const std::vector<rocksdb::ColumnFamilyHandle*>& old_guards);

  // To be called before something goes to an empty spill store: no write lies there without a guard.
  rocksdb::Status ensure_guard();

  // Runs `copy`, which takes a copy of RocksDB's files, while there is no guard: so the copy is a plain RocksDB
  // database. Then begins another opening, so that the copy does not fit the spill store any more.
  // REQUIRES: the spill store is empty, and nothing is diverted until this returns. (If something is all the same, the
  // guard is there before it, and may be in the copy.)
  rocksdb::Status without_guard(const std::function<rocksdb::Status()>& copy);

  // Runs `use` with the guard, which stays meanwhile. Incomplete where there is none.
  rocksdb::Status use_guard(const std::function<rocksdb::Status(rocksdb::ColumnFamilyHandle*)>& use);

  // Ends the opening before RocksDB is closed. Without writes in the spill store the database is a plain one from now
  // on, and any database may take the store. ensure_guard() begins another opening, should RocksDB stay open.
  rocksdb::Status close(bool has_writes);

 private:
  rocksdb::Status begin_opening() REQUIRES(mutex_);
  rocksdb::Status drop_guard() REQUIRES(mutex_);
  rocksdb::Status write() REQUIRES(mutex_);
  rocksdb::Status damaged() const;

  const std::shared_ptr<Store> store_;
  Pairing pairing_;          // as it was found
  bool is_damaged_ = false;  // the record

  Mutex mutex_;
  BindingRecord record_ GUARDED_BY(mutex_);  // as the store has it
  std::shared_ptr<rocksdb::DB> db_ GUARDED_BY(mutex_);
  rocksdb::ColumnFamilyHandle* guard_ GUARDED_BY(mutex_) = nullptr;
  std::atomic<bool> has_guard_{false};
};

}  // namespace spillway::spill
