// Binds a spill store to its database while both are open; binding_record.h says by what.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/status.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "spill/store/binding_record.h"
#include "spill/store/store.h"

namespace spillway::spill {

// The families in the MANIFEST of the database in `name`; none if there is no database.
rocksdb::Status list_families(const rocksdb::DBOptions& options, const std::string& name,
                              std::vector<std::string>* families);
// RocksDB's identity of the database in `name`; empty if it has none.
std::string identity_of(rocksdb::Env& env, const std::string& name);
// The options of a guard. Its comparator has a name that RocksDB does not know, so RocksDB refuses a program that opens
// every family of the database.
rocksdb::ColumnFamilyOptions guard_options();

// Thread-safe from install() on.
class Binding {
 public:
  // `location` names the store in messages.
  Binding(std::shared_ptr<Store> store, std::string database, std::string location);
  ~Binding();
  Binding(const Binding&) = delete;
  Binding& operator=(const Binding&) = delete;

  // Both refuse a store that does not belong to the database; the message says what to do. check_guard() changes
  // nothing and is called before the store is recovered. The second is called when it is known whether the store has
  // writes.
  rocksdb::Status check_guard(const std::vector<std::string>& families, const std::string& identity);
  rocksdb::Status check_writes(bool has_writes);

  // Begins an opening: a new guard replaces `old_guards`, whose handles remain the caller's.
  // REQUIRES: both checks passed, and nothing was diverted yet.
  rocksdb::Status install(const std::shared_ptr<rocksdb::DB>& db,
                          const std::vector<rocksdb::ColumnFamilyHandle*>& old_guards);

  // REQUIRED before a write goes to an empty spill store. There is never a write in the store without a guard.
  rocksdb::Status ensure_guard();

  // Runs `copy`, which copies RocksDB's files, while there is no guard, so the copy is a plain RocksDB database. Then
  // begins another opening, so that the copy no longer fits the spill store. REQUIRES: the spill store is empty, and
  // nothing is diverted until this returns. (If a write is diverted nevertheless, the guard is created before it, and
  // may be in the copy.)
  rocksdb::Status without_guard(const std::function<rocksdb::Status()>& copy);

  // Runs `use` with the guard, which stays until `use` returns. Incomplete: there is none.
  rocksdb::Status use_guard(const std::function<rocksdb::Status(rocksdb::ColumnFamilyHandle*)>& use);

  // Ends the opening before RocksDB is closed. If the spill store has no writes, the database is a plain one from now
  // on, and the store may be used with any database. If RocksDB stays open, ensure_guard() begins another opening.
  rocksdb::Status close(bool has_writes);

 private:
  rocksdb::Status begin_opening() REQUIRES(mutex_);
  rocksdb::Status drop_guard() REQUIRES(mutex_);
  rocksdb::Status write() REQUIRES(mutex_);
  rocksdb::Status unreadable() const;  // why the record cannot be read

  const std::shared_ptr<Store> store_;
  Pairing pairing_;          // as found by check_guard()
  bool is_damaged_ = false;  // the record is, or is of another version
  bool is_of_another_version_ = false;
  bool names_another_version_ = false;  // though its checksum may not fit

  Mutex mutex_;
  BindingRecord record_ GUARDED_BY(mutex_);  // as it is in the store
  std::shared_ptr<rocksdb::DB> db_ GUARDED_BY(mutex_);
  rocksdb::ColumnFamilyHandle* guard_ GUARDED_BY(mutex_) = nullptr;
  std::atomic<bool> has_guard_{false};
};

}  // namespace spillway::spill
