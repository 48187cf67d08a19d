#include "accelerate/databases/opener.h"

#include <rocksdb/env.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "accelerate/databases/configuration.h"
#include "accelerate/databases/report.h"
#include "spill/main_db/binding.h"
#include "spillway/db.h"
#include "spillway/transaction_db.h"

namespace spillway::accelerate {
namespace {

using rocksdb::Status;

std::string message_of(const Status& status) {
  return status.getState() != nullptr ? status.getState() : status.ToString();
}

// NotSupported while writes of the database may lie in its spill store, which `way` of opening it does not read.
Status refuse_guarded(rocksdb::DBOptions options, const std::string& name, const char* way) {
  if (options.env == nullptr) options.env = rocksdb::Env::Default();
  std::vector<std::string> families;
  if (Status status = spill::list_families(options, name, &families); !status.ok()) return status;
  if (!spill::newest_guard(families)) return {};
  return Status::NotSupported(std::string(way) + " does not see the writes of " + name +
                              " that lie in its spill store; bring them back with 'spillway spill drain " + name + "'");
}

class SpillwayOpener final : public Opener {
 public:
  SpillwayOpener() {
    const char* const text = std::getenv("SPILLWAY");
    auto parsed = parse_configuration(text == nullptr ? "" : text);
    if (parsed) {
      options_ = std::move(parsed.value());
    } else {
      report_.say(parsed.status().message() + "; going on without acceleration");
    }
  }

  Outcome open(const rocksdb::Options& options, const std::string& name, spill::OpenedDb* db) override {
    return accelerate(options, name, [&](const SpillOptions& spill, DB** below) {
      const Status status = DB::Open(options, spill, name, below);
      spill::set_opened(status.ok() ? *below : nullptr, db);
      return status;
    });
  }
  Outcome open(const rocksdb::DBOptions& options, const std::string& name, const Families& families, Handles* handles,
               spill::OpenedDb* db) override {
    return accelerate(options, name, [&](const SpillOptions& spill, DB** below) {
      handles->clear();
      const Status status = DB::Open(options, spill, name, families, handles, below);
      spill::set_opened(status.ok() ? *below : nullptr, db);
      return status;
    });
  }

  Outcome open(const rocksdb::Options& options, const rocksdb::TransactionDBOptions& transactions,
               const std::string& name, rocksdb::TransactionDB** db) override {
    return accelerate(options, name, [&](const SpillOptions& spill, DB** below) {
      TransactionDB* opened = nullptr;
      Status status = TransactionDB::Open(options, transactions, spill, name, &opened);
      return pass_on_opened(std::move(status), opened, db, below);
    });
  }
  Outcome open(const rocksdb::DBOptions& options, const rocksdb::TransactionDBOptions& transactions,
               const std::string& name, const Families& families, Handles* handles,
               rocksdb::TransactionDB** db) override {
    return accelerate(options, name, [&](const SpillOptions& spill, DB** below) {
      TransactionDB* opened = nullptr;
      handles->clear();
      Status status = TransactionDB::Open(options, transactions, spill, name, families, handles, &opened);
      return pass_on_opened(std::move(status), opened, db, below);
    });
  }
  Outcome open(const rocksdb::Options& options, const std::string& name,
               rocksdb::OptimisticTransactionDB** db) override {
    return accelerate(options, name, [&](const SpillOptions& spill, DB** below) {
      OptimisticTransactionDB* opened = nullptr;
      Status status = OptimisticTransactionDB::Open(options, spill, name, &opened);
      return pass_on_opened(std::move(status), opened, db, below);
    });
  }
  Outcome open(const rocksdb::DBOptions& options, const std::string& name, const Families& families, Handles* handles,
               rocksdb::OptimisticTransactionDB** db) override {
    return accelerate(options, name, [&](const SpillOptions& spill, DB** below) {
      OptimisticTransactionDB* opened = nullptr;
      handles->clear();
      Status status = OptimisticTransactionDB::Open(options, spill, name, families, handles, &opened);
      return pass_on_opened(std::move(status), opened, db, below);
    });
  }

  Outcome pass_on(const rocksdb::DBOptions& options, const std::string& name, const char* way) override {
    Status status = refuse_guarded(options, name, way);
    if (status.IsNotSupported()) return status;
    report_.add_unaccelerated(name, std::string(way) + " is RocksDB's own");
    return std::nullopt;
  }

  void hide_guards(std::vector<std::string>* families) override { std::erase_if(*families, spill::is_guard); }

  void destroy_spill_store(const rocksdb::DBOptions& options, const std::string& name) override {
    rocksdb::Env& env = options.env == nullptr ? *rocksdb::Env::Default() : *options.env;
    const std::string directory = name + "/spill";
    std::vector<std::string> files;
    if (!env.FileExists(directory + "/" + spill::kBindingFile).ok()) return;
    if (!env.GetChildren(directory, &files).ok()) return;
    for (const std::string& file : files) {
      if (file != "." && file != "..") (void)env.DeleteFile(directory + "/" + file);
    }
    (void)env.DeleteDir(directory);
    (void)env.DeleteDir(name);  // RocksDB left it because the spill store was in it
  }

 private:
  template <typename Opened, typename Base>
  static Status pass_on_opened(Status status, Opened* opened, Base** db, DB** below) {
    *db = opened;
    if (status.ok()) *below = opened->GetSpillwayDB();
    return status;
  }

  // `open` gets the options and returns the spillway::DB in its second parameter.
  template <typename Open>
  Outcome accelerate(const rocksdb::DBOptions& options, const std::string& name, const Open& open) {
    if (!options_) return std::nullopt;
    SpillOptions spill = *options_;
    const std::shared_ptr<SpillListener> listener = report_.make_listener(name);
    spill.listeners.push_back(listener);
    DB* below = nullptr;
    Status status = open(spill, &below);
    if (status.ok()) {
      report_.add_open(listener.get(), name, [below] { return below->GetSpillStatistics(); });
      return status;
    }
    // What cannot be accelerated is RocksDB's, unless RocksDB would miss writes.
    if (!status.IsNotSupported() || !refuse_guarded(options, name, "Open").ok()) return status;
    report_.add_unaccelerated(name, message_of(status));
    return std::nullopt;
  }

  Report& report_ = Report::of_process();
  std::optional<SpillOptions> options_;  // none: SPILLWAY was refused
};

}  // namespace
}  // namespace spillway::accelerate

__attribute__((visibility("default"))) spillway::accelerate::Opener* spillway_opener() {
  static spillway::accelerate::SpillwayOpener* const opener =
      std::make_unique<spillway::accelerate::SpillwayOpener>().release();
  return opener;
}
