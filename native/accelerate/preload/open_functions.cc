// RocksDB's functions that open a database, in front of RocksDB's own. Each is accelerated, or passed on.
//
// The program's calls come here because this library is preloaded; those of RocksDB's C interface too, which calls
// these functions. The signatures are those of the headers at hand.
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/utilities/db_ttl.h>
#include <rocksdb/utilities/optimistic_transaction_db.h>
#include <rocksdb/utilities/transaction_db.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "accelerate/preload/accelerator.h"
#include "accelerate/preload/rocksdb_library.h"

namespace spillway::accelerate {
namespace {

// Calls the function of RocksDB's that `own` stands in front of.
template <typename Value, typename... Parameters, typename... Arguments>
Value call_rocksdb(Value (*own)(Parameters...), Arguments&&... arguments) {
  const std::string symbol = symbol_of(reinterpret_cast<const void*>(own));
  auto* const next = reinterpret_cast<Value (*)(Parameters...)>(next_definition(symbol));
  const Inside inside;
  return next(std::forward<Arguments>(arguments)...);
}

// Opens a database by `open`, which gets the opener, or by RocksDB's `own` function.
template <typename Open, typename Own>
rocksdb::Status open_by(const void* caller, const std::string& name, const Open& open, const Own& own) {
  Opener* const opener = opener_for(caller);
  if (opener == nullptr) return own();
  const Inside inside;
  Opener::Outcome outcome = open(*opener);
  if (outcome.status) return std::move(*outcome.status);
  rocksdb::Status status = own();
  if (status.ok() && !outcome.why.empty()) opener->add_unaccelerated(name, outcome.why);
  return status;
}

// `way` of opening a database is RocksDB's `own`.
template <typename Own>
rocksdb::Status pass_on(const void* caller, const rocksdb::DBOptions& options, const std::string& name, const char* way,
                        const Own& own) {
  return open_by(
      caller, name, [&](Opener& opener) { return opener.pass_on(options, name, way); }, own);
}

}  // namespace
}  // namespace spillway::accelerate

// Of the caller. Only valid in the function itself.
#define SPILLWAY_CALLER __builtin_return_address(0)

namespace rocksdb {

using spillway::accelerate::call_rocksdb;
using spillway::accelerate::open_by;
using spillway::accelerate::Opener;
using spillway::accelerate::pass_on;
using spillway::spill::OpenedDb;
using Families = std::vector<ColumnFamilyDescriptor>;
using Handles = std::vector<ColumnFamilyHandle*>;

// NOLINTBEGIN(readability-identifier-naming): RocksDB's names

Status DB::Open(const Options& options, const std::string& name, OpenedDb* db) {
  using Function = Status (*)(const Options&, const std::string&, OpenedDb*);
  return open_by(
      SPILLWAY_CALLER, name, [&](Opener& opener) { return opener.open(options, name, db); },
      [&] { return call_rocksdb(static_cast<Function>(&DB::Open), options, name, db); });
}

Status DB::Open(const DBOptions& options, const std::string& name, const Families& families, Handles* handles,
                OpenedDb* db) {
  using Function = Status (*)(const DBOptions&, const std::string&, const Families&, Handles*, OpenedDb*);
  return open_by(
      SPILLWAY_CALLER, name, [&](Opener& opener) { return opener.open(options, name, families, handles, db); },
      [&] { return call_rocksdb(static_cast<Function>(&DB::Open), options, name, families, handles, db); });
}

Status TransactionDB::Open(const Options& options, const TransactionDBOptions& transactions, const std::string& name,
                           TransactionDB** db) {
  using Function = Status (*)(const Options&, const TransactionDBOptions&, const std::string&, TransactionDB**);
  return open_by(
      SPILLWAY_CALLER, name, [&](Opener& opener) { return opener.open(options, transactions, name, db); },
      [&] { return call_rocksdb(static_cast<Function>(&TransactionDB::Open), options, transactions, name, db); });
}

Status TransactionDB::Open(const DBOptions& options, const TransactionDBOptions& transactions, const std::string& name,
                           const Families& families, Handles* handles, TransactionDB** db) {
  using Function = Status (*)(const DBOptions&, const TransactionDBOptions&, const std::string&, const Families&,
                              Handles*, TransactionDB**);
  return open_by(
      SPILLWAY_CALLER, name,
      [&](Opener& opener) { return opener.open(options, transactions, name, families, handles, db); },
      [&] {
        return call_rocksdb(static_cast<Function>(&TransactionDB::Open), options, transactions, name, families, handles,
                            db);
      });
}

Status OptimisticTransactionDB::Open(const Options& options, const std::string& name, OptimisticTransactionDB** db) {
  using Function = Status (*)(const Options&, const std::string&, OptimisticTransactionDB**);
  return open_by(
      SPILLWAY_CALLER, name, [&](Opener& opener) { return opener.open(options, name, db); },
      [&] { return call_rocksdb(static_cast<Function>(&OptimisticTransactionDB::Open), options, name, db); });
}

Status OptimisticTransactionDB::Open(const DBOptions& options, const std::string& name, const Families& families,
                                     Handles* handles, OptimisticTransactionDB** db) {
  using Function =
      Status (*)(const DBOptions&, const std::string&, const Families&, Handles*, OptimisticTransactionDB**);
  return open_by(
      SPILLWAY_CALLER, name, [&](Opener& opener) { return opener.open(options, name, families, handles, db); },
      [&] {
        return call_rocksdb(static_cast<Function>(&OptimisticTransactionDB::Open), options, name, families, handles,
                            db);
      });
}

// The options say how RocksDB validates a commit and how many locks that takes; neither changes what a commit does.
Status OptimisticTransactionDB::Open(const DBOptions& options, const OptimisticTransactionDBOptions& transactions,
                                     const std::string& name, const Families& families, Handles* handles,
                                     OptimisticTransactionDB** db) {
  using Function = Status (*)(const DBOptions&, const OptimisticTransactionDBOptions&, const std::string&,
                              const Families&, Handles*, OptimisticTransactionDB**);
  return open_by(
      SPILLWAY_CALLER, name, [&](Opener& opener) { return opener.open(options, name, families, handles, db); },
      [&] {
        return call_rocksdb(static_cast<Function>(&OptimisticTransactionDB::Open), options, transactions, name,
                            families, handles, db);
      });
}

Status DB::OpenForReadOnly(const Options& options, const std::string& name, OpenedDb* db,
                           bool error_if_wal_file_exists) {
  using Function = Status (*)(const Options&, const std::string&, OpenedDb*, bool);
  return pass_on(SPILLWAY_CALLER, options, name, "OpenForReadOnly", [&] {
    return call_rocksdb(static_cast<Function>(&DB::OpenForReadOnly), options, name, db, error_if_wal_file_exists);
  });
}

Status DB::OpenForReadOnly(const DBOptions& options, const std::string& name, const Families& families,
                           Handles* handles, OpenedDb* db, bool error_if_wal_file_exists) {
  using Function = Status (*)(const DBOptions&, const std::string&, const Families&, Handles*, OpenedDb*, bool);
  return pass_on(SPILLWAY_CALLER, options, name, "OpenForReadOnly", [&] {
    return call_rocksdb(static_cast<Function>(&DB::OpenForReadOnly), options, name, families, handles, db,
                        error_if_wal_file_exists);
  });
}

Status DB::OpenAsSecondary(const Options& options, const std::string& name, const std::string& secondary,
                           OpenedDb* db) {
  using Function = Status (*)(const Options&, const std::string&, const std::string&, OpenedDb*);
  return pass_on(SPILLWAY_CALLER, options, name, "OpenAsSecondary", [&] {
    return call_rocksdb(static_cast<Function>(&DB::OpenAsSecondary), options, name, secondary, db);
  });
}

Status DB::OpenAsSecondary(const DBOptions& options, const std::string& name, const std::string& secondary,
                           const Families& families, Handles* handles, OpenedDb* db) {
  using Function =
      Status (*)(const DBOptions&, const std::string&, const std::string&, const Families&, Handles*, OpenedDb*);
  return pass_on(SPILLWAY_CALLER, options, name, "OpenAsSecondary", [&] {
    return call_rocksdb(static_cast<Function>(&DB::OpenAsSecondary), options, name, secondary, families, handles, db);
  });
}

Status DB::OpenAndTrimHistory(const DBOptions& options, const std::string& name, const Families& families,
                              Handles* handles, OpenedDb* db, std::string trim_ts) {
  using Function = Status (*)(const DBOptions&, const std::string&, const Families&, Handles*, OpenedDb*, std::string);
  return pass_on(SPILLWAY_CALLER, options, name, "OpenAndTrimHistory", [&] {
    return call_rocksdb(static_cast<Function>(&DB::OpenAndTrimHistory), options, name, families, handles, db,
                        std::move(trim_ts));
  });
}

Status DBWithTTL::Open(const Options& options, const std::string& name, DBWithTTL** db, std::int32_t ttl,
                       bool read_only) {
  using Function = Status (*)(const Options&, const std::string&, DBWithTTL**, std::int32_t, bool);
  return pass_on(SPILLWAY_CALLER, options, name, "DBWithTTL::Open", [&] {
    return call_rocksdb(static_cast<Function>(&DBWithTTL::Open), options, name, db, ttl, read_only);
  });
}

Status DBWithTTL::Open(const DBOptions& options, const std::string& name, const Families& families, Handles* handles,
                       DBWithTTL** db, const std::vector<std::int32_t>& ttls, bool read_only) {
  using Function = Status (*)(const DBOptions&, const std::string&, const Families&, Handles*, DBWithTTL**,
                              const std::vector<std::int32_t>&, bool);
  return pass_on(SPILLWAY_CALLER, options, name, "DBWithTTL::Open", [&] {
    return call_rocksdb(static_cast<Function>(&DBWithTTL::Open), options, name, families, handles, db, ttls, read_only);
  });
}

Status DB::ListColumnFamilies(const DBOptions& options, const std::string& name, std::vector<std::string>* families) {
  Opener* const opener = spillway::accelerate::opener_for(SPILLWAY_CALLER);
  using Function = Status (*)(const DBOptions&, const std::string&, std::vector<std::string>*);
  const Status status = call_rocksdb(static_cast<Function>(&DB::ListColumnFamilies), options, name, families);
  if (opener != nullptr) opener->hide_guards(families);
  return status;
}

Status DestroyDB(const std::string& name, const Options& options, const Families& families) {
  Opener* const opener = spillway::accelerate::opener_for(SPILLWAY_CALLER);
  using Function = Status (*)(const std::string&, const Options&, const Families&);
  const Status status = call_rocksdb(static_cast<Function>(&DestroyDB), name, options, families);
  const spillway::accelerate::Inside inside;
  if (opener != nullptr && status.ok()) opener->destroy_spill_store(options, name);
  return status;
}

// Rebuilds the database from its tables, and would leave out its guard and what is in the spill store.
Status RepairDB(const std::string& name, const DBOptions& options, const Families& families) {
  using Function = Status (*)(const std::string&, const DBOptions&, const Families&);
  return pass_on(SPILLWAY_CALLER, options, name, "RepairDB",
                 [&] { return call_rocksdb(static_cast<Function>(&RepairDB), name, options, families); });
}

Status RepairDB(const std::string& name, const DBOptions& options, const Families& families,
                const ColumnFamilyOptions& unknown) {
  using Function = Status (*)(const std::string&, const DBOptions&, const Families&, const ColumnFamilyOptions&);
  return pass_on(SPILLWAY_CALLER, options, name, "RepairDB",
                 [&] { return call_rocksdb(static_cast<Function>(&RepairDB), name, options, families, unknown); });
}

Status RepairDB(const std::string& name, const Options& options) {
  using Function = Status (*)(const std::string&, const Options&);
  return pass_on(SPILLWAY_CALLER, options, name, "RepairDB",
                 [&] { return call_rocksdb(static_cast<Function>(&RepairDB), name, options); });
}

// The stacked BlobDB, which RocksDB does not declare in its installed headers.
namespace blob_db {

struct BlobDBOptions;

class BlobDB {
 public:
  static Status Open(const Options& options, const BlobDBOptions& blobs, const std::string& name, BlobDB** db);
  static Status Open(const DBOptions& options, const BlobDBOptions& blobs, const std::string& name,
                     const Families& families, Handles* handles, BlobDB** db);
};

Status BlobDB::Open(const Options& options, const BlobDBOptions& blobs, const std::string& name, BlobDB** db) {
  using Function = Status (*)(const Options&, const BlobDBOptions&, const std::string&, BlobDB**);
  return pass_on(SPILLWAY_CALLER, options, name, "BlobDB::Open",
                 [&] { return call_rocksdb(static_cast<Function>(&BlobDB::Open), options, blobs, name, db); });
}

Status BlobDB::Open(const DBOptions& options, const BlobDBOptions& blobs, const std::string& name,
                    const Families& families, Handles* handles, BlobDB** db) {
  using Function =
      Status (*)(const DBOptions&, const BlobDBOptions&, const std::string&, const Families&, Handles*, BlobDB**);
  return pass_on(SPILLWAY_CALLER, options, name, "BlobDB::Open", [&] {
    return call_rocksdb(static_cast<Function>(&BlobDB::Open), options, blobs, name, families, handles, db);
  });
}

}  // namespace blob_db

// NOLINTEND(readability-identifier-naming)

}  // namespace rocksdb
