#include "spill/main_db/binding.h"

#include <rocksdb/comparator.h>
#include <rocksdb/env.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <random>
#include <utility>

#include "base/steps.h"
#include "spill/main_db/guarded_env.h"

namespace spillway::spill {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Slice;
using rocksdb::Status;

// Its name is part of RocksDB's message to a program that opens a guard as an ordinary family.
class GuardOrder final : public rocksdb::Comparator {
 public:
  using Comparator::Compare;
  int Compare(const Slice& a, const Slice& b) const override { return a.compare(b); }
  const char* Name() const override { return "spillway.Guard (open the database with spillway::DB)"; }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

std::uint64_t draw() {
  std::random_device random;
  return (static_cast<std::uint64_t>(random()) << 32) | random();
}

std::string draw_id() {
  std::array<char, 33> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx%016llx", static_cast<unsigned long long>(draw()),
                static_cast<unsigned long long>(draw()));
  return digits.data();
}

}  // namespace

Status list_families(const rocksdb::DBOptions& options, const std::string& name, std::vector<std::string>* families) {
  families->clear();
  if (!options.env->FileExists(name + "/CURRENT").ok()) return {};
  return rocksdb::DB::ListColumnFamilies(options, name, families);
}

std::string identity_of(rocksdb::Env& env, const std::string& name) {
  std::string identity;
  if (!rocksdb::ReadFileToString(&env, name + "/IDENTITY", &identity).ok()) return "";
  while (!identity.empty() && static_cast<unsigned char>(identity.back()) <= ' ') identity.pop_back();
  return identity;
}

rocksdb::ColumnFamilyOptions guard_options() {
  // Never destroyed, because a static object of the program may own the database.
  static const GuardOrder* const order = std::make_unique<GuardOrder>().release();
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;  // it almost never has a table
  rocksdb::ColumnFamilyOptions options;
  options.comparator = order;
  options.write_buffer_size = 64 << 10;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

Binding::Binding(std::shared_ptr<Store> store, std::string database, std::string location) : store_(std::move(store)) {
  pairing_.database = std::move(database);
  pairing_.location = std::move(location);
}

Binding::~Binding() {
  if (guard_ != nullptr) (void)db_->DestroyColumnFamilyHandle(guard_);
}

Status Binding::check_guard(const std::vector<std::string>& families, const std::string& identity) {
  for (const std::string& family : families) {
    if (!is_guard(family) || parse_guard(family)) continue;
    return Status::NotSupported("database " + pairing_.database +
                                " was last opened by another version of Spillway; open it with that, and close it");
  }
  pairing_.identity = identity;
  pairing_.guard = newest_guard(families);
  std::string bytes;
  if (Status status = store_->read_binding(&bytes); !status.ok()) return status;
  if (!bytes.empty()) {
    pairing_.record = decode_binding(bytes);
    is_damaged_ = !pairing_.record;
    is_of_another_version_ = is_binding_of_another_version(bytes);
    names_another_version_ = names_another_version(bytes);
    const MutexLock lock(mutex_);
    if (pairing_.record) record_ = *pairing_.record;
  }
  if (!pairing_.guard) return {};
  return is_damaged_ ? unreadable() : check_pairing(pairing_);
}

Status Binding::check_writes(bool has_writes) {
  pairing_.has_writes = has_writes;
  return has_writes && is_damaged_ ? unreadable() : check_pairing(pairing_);
}

Status Binding::unreadable() const {
  if (is_of_another_version_) {
    return Status::NotSupported("the spill store in " + pairing_.location +
                                " was last opened by another version of Spillway (" + store_->binding_place() +
                                "); open it with that, and close it");
  }
  if (names_another_version_) {
    return Status::Corruption("the spill store in " + pairing_.location +
                              " was last opened by another version of Spillway, or its binding record is damaged (" +
                              store_->binding_place() + "); open it with that version, or put a copy of the record " +
                              "there");
  }
  return Status::Corruption("the binding record of the spill store in " + pairing_.location + " is damaged (" +
                            store_->binding_place() +
                            "); put a copy of it there, or give up the writes in the spill store with 'spillway spill "
                            "drain --abandon " +
                            pairing_.database + "'");
}

Status Binding::install(const std::shared_ptr<rocksdb::DB>& db, const std::vector<ColumnFamilyHandle*>& old_guards) {
  const MutexLock lock(mutex_);
  db_ = db;
  if (pairing_.guard) {
    // If a crash ended its opening, the record still names it as pending.
    record_.confirmed = pairing_.guard->opening;
  }
  std::string identity;
  if (Status status = db_->GetDbIdentity(identity); !status.ok()) return status;
  if (!pairing_.guard && (record_.id.empty() || record_.identity != identity)) record_.id = draw_id();
  record_.is_released = false;
  record_.database = pairing_.database;
  record_.identity = identity;
  if (Status status = begin_opening(); !status.ok()) return status;
  for (ColumnFamilyHandle* old : old_guards) {
    if (Status status = db_->DropColumnFamily(old); !status.ok()) return status;
  }
  steps::reached("spill.bind.dropped");
  record_.confirmed = record_.pending;
  const Status status = write();
  has_guard_.store(status.ok(), std::memory_order_release);
  steps::reached("spill.bind.confirmed");
  return status;
}

Status Binding::ensure_guard() {
  if (has_guard_.load(std::memory_order_acquire)) return {};
  const MutexLock lock(mutex_);
  if (has_guard_.load(std::memory_order_relaxed)) return {};
  record_.is_released = false;
  Status status = begin_opening();
  if (!status.ok()) return status;
  record_.confirmed = record_.pending;
  status = write();
  has_guard_.store(status.ok(), std::memory_order_release);
  return status;
}

Status Binding::without_guard(const std::function<Status()>& copy) {
  bool has_none = false;  // after RocksDB itself was handed out
  {
    const MutexLock lock(mutex_);
    has_none = guard_ == nullptr;
    if (Status status = drop_guard(); !status.ok()) return status;
  }
  if (has_none) return copy();
  steps::reached("spill.bind.unguarded");
  Status status = copy();
  const Status guarded = ensure_guard();
  return status.ok() ? guarded : status;
}

Status Binding::use_guard(const std::function<Status(ColumnFamilyHandle*)>& use) {
  const MutexLock lock(mutex_);
  return guard_ == nullptr ? Status::Incomplete("there is no guard") : use(guard_);
}

Status Binding::close(bool has_writes) {
  const MutexLock lock(mutex_);
  if (guard_ == nullptr) return {};
  Status status;
  if (!has_writes) {
    status = drop_guard();
    steps::reached("spill.bind.released");
    record_.is_released = true;
    if (status.ok()) status = write();
  }
  if (guard_ != nullptr) (void)db_->DestroyColumnFamilyHandle(std::exchange(guard_, nullptr));
  return status;
}

// Creates the guard of a new, pending opening. Reuses a guard that was created before and not confirmed.
Status Binding::begin_opening() {
  if (guard_ != nullptr) return {};
  record_.pending = {std::max(record_.confirmed.number, record_.pending.number) + 1, draw()};
  if (Status status = write(); !status.ok()) return status;
  steps::reached("spill.bind.pending");
  const Guard guard{record_.id, record_.pending, pairing_.location};
  const Status status = db_->CreateColumnFamily(guard_options(), name_of(guard), &guard_);
  steps::reached("spill.bind.created");
  return status;
}

// RocksDB would also write an OPTIONS file, which never contains the guard. If only that fails, the guard is dropped.
Status Binding::drop_guard() {
  if (guard_ == nullptr) return {};
  const NoOptionsFile no_options_file;
  const Status status = db_->DropColumnFamily(guard_);
  if (!status.ok() && !no_options_file.was_tried()) return status;
  has_guard_.store(false, std::memory_order_release);
  (void)db_->DestroyColumnFamilyHandle(std::exchange(guard_, nullptr));
  return {};
}

Status Binding::write() { return store_->write_binding(encode(record_)); }

}  // namespace spillway::spill
