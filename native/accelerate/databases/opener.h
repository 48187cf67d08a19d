// What the preloaded library calls once RocksDB is there: opens databases with the accelerator.
//
// It is a library of its own, loaded when a program opens its first database. The preloaded one is also loaded into
// every other program that is started, so it must not need RocksDB.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/utilities/optimistic_transaction_db.h>
#include <rocksdb/utilities/transaction_db.h>

#include <optional>
#include <string>
#include <vector>

#include "spill/compat/opened_db.h"

namespace spillway::accelerate {

// What the preloaded library knows of the process.
struct Process {
  std::string directory;  // the working directory when it began
  void (*write_to_standard_error)(const std::string& line) = nullptr;
};

// Pure virtual, so that who calls it needs no symbol of it. Thread-safe.
class Opener {
 public:
  using Families = std::vector<rocksdb::ColumnFamilyDescriptor>;
  using Handles = std::vector<rocksdb::ColumnFamilyHandle*>;
  // Of the program's call. Without a status, RocksDB is to open the database, or to refuse it.
  struct Outcome {
    std::optional<rocksdb::Status> status;
    std::string why;  // for add_unaccelerated(); empty: it was said
  };

  virtual Outcome open(const rocksdb::Options& options, const std::string& name, spill::OpenedDb* db) = 0;
  virtual Outcome open(const rocksdb::DBOptions& options, const std::string& name, const Families& families,
                       Handles* handles, spill::OpenedDb* db) = 0;
  virtual Outcome open(const rocksdb::Options& options, const rocksdb::TransactionDBOptions& transactions,
                       const std::string& name, rocksdb::TransactionDB** db) = 0;
  virtual Outcome open(const rocksdb::DBOptions& options, const rocksdb::TransactionDBOptions& transactions,
                       const std::string& name, const Families& families, Handles* handles,
                       rocksdb::TransactionDB** db) = 0;
  virtual Outcome open(const rocksdb::Options& options, const std::string& name,
                       rocksdb::OptimisticTransactionDB** db) = 0;
  virtual Outcome open(const rocksdb::DBOptions& options, const std::string& name, const Families& families,
                       Handles* handles, rocksdb::OptimisticTransactionDB** db) = 0;

  // For `way` of opening a database that is never accelerated. The outcome is an error while writes may lie in the
  // spill store, which would be missed.
  virtual Outcome pass_on(const rocksdb::DBOptions& options, const std::string& name, const char* way) = 0;

  // After RocksDB has opened the database: says that it is not accelerated, and why.
  virtual void add_unaccelerated(const std::string& name, const std::string& why) = 0;

  virtual void hide_guards(std::vector<std::string>* families) = 0;
  // After RocksDB has destroyed the database: removes its spill store too.
  virtual void destroy_spill_store(const rocksdb::DBOptions& options, const std::string& name) = 0;

 protected:
  ~Opener() = default;
};

}  // namespace spillway::accelerate

// The only symbol that the library exports. The opener lives as long as the process.
extern "C" spillway::accelerate::Opener* spillway_opener(const spillway::accelerate::Process& process);
