#include "accelerate/databases/opener.h"

#include <rocksdb/env.h>

#include <algorithm>
#include <cstdint>
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

// A program that asks for it prepares transactions, which spillway::TransactionDB does not.
constexpr const char* kTwoPhase = "TransactionDB::Open with allow_2pc";

std::string message_of(const Status& status) {
  return status.getState() != nullptr ? status.getState() : status.ToString();
}

rocksdb::Env& env_of(const rocksdb::DBOptions& options) {
  return options.env == nullptr ? *rocksdb::Env::Default() : *options.env;
}

// Whether the database has a spill store, in its directory, that was not closed empty.
bool has_spill_store(const rocksdb::DBOptions& options, const std::string& name) {
  const std::string file = name + "/spill/" + spill::kBindingFile;
  std::string bytes;
  if (!rocksdb::ReadFileToString(&env_of(options), file, &bytes).ok()) return env_of(options).FileExists(file).ok();
  const auto record = spill::decode_binding(bytes);
  return !record || !record->is_released;
}

enum class Guarded : std::uint8_t { no, yes, unknown };  // unknown: the database does not tell its column families

// Whether writes of the database may lie in its spill store, a guard of another version of Spillway included.
Guarded guarded(rocksdb::DBOptions options, const std::string& name) {
  options.env = &env_of(options);
  std::vector<std::string> families;
  const Status status = spill::list_families(options, name, &families);
  if (std::any_of(families.begin(), families.end(), spill::is_guard)) return Guarded::yes;
  return status.ok() && !families.empty() ? Guarded::no : Guarded::unknown;
}

// NotSupported while writes of the database may lie in its spill store, which `way` of opening it does not read.
Status refuse_guarded(const rocksdb::DBOptions& options, const std::string& name, const char* way) {
  switch (guarded(options, name)) {
    case Guarded::no:
      return {};
    case Guarded::yes:
      return Status::NotSupported(std::string(way) + " does not see the writes of " + name +
                                  " that lie in its spill store; bring them back with 'spillway spill drain " + name +
                                  "'");
    case Guarded::unknown:
      break;
  }
  if (!has_spill_store(options, name)) return {};
  return Status::NotSupported(std::string(way) + " does not see the writes of " + name + " that may lie in " + name +
                              "/spill; restore a copy of both, or move that directory away to go on without them");
}

class SpillwayOpener final : public Opener {
 public:
  explicit SpillwayOpener(const Process& process) {
    report_.begin(process);
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
    if (options.allow_2pc) return pass_on(options, name, kTwoPhase);
    return accelerate(options, name, [&](const SpillOptions& spill, DB** below) {
      TransactionDB* opened = nullptr;
      Status status = TransactionDB::Open(options, transactions, spill, name, &opened);
      return pass_on_opened(std::move(status), opened, db, below);
    });
  }
  Outcome open(const rocksdb::DBOptions& options, const rocksdb::TransactionDBOptions& transactions,
               const std::string& name, const Families& families, Handles* handles,
               rocksdb::TransactionDB** db) override {
    if (options.allow_2pc) return pass_on(options, name, kTwoPhase);
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
    if (!status.ok()) return {std::move(status), ""};
    return {std::nullopt, std::string(way) + " is RocksDB's own"};
  }

  void add_unaccelerated(const std::string& name, const std::string& why) override {
    report_.add_unaccelerated(name, why);
  }

  void hide_guards(std::vector<std::string>* families) override { std::erase_if(*families, spill::is_guard); }

  void destroy_spill_store(const rocksdb::DBOptions& options, const std::string& name) override {
    rocksdb::Env& env = env_of(options);
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
    if (!options_) return {};
    SpillOptions spill = *options_;
    const std::shared_ptr<SpillListener> listener = report_.make_listener(name);
    spill.listeners.push_back(listener);
    DB* below = nullptr;
    Status status = open(spill, &below);
    if (status.ok()) {
      report_.add_open(listener.get(), name, [below] { return below->GetSpillStatistics(); });
      return {std::move(status), ""};
    }
    if (would_miss_writes(options, name, status)) return {std::move(status), ""};
    return {std::nullopt, message_of(status)};
  }

  // Whether RocksDB, if it opens what could not be opened with a spill store, would miss writes. Without a guard, what
  // is not supported is so because of the program's options; another error may be that of a store with writes.
  static bool would_miss_writes(const rocksdb::DBOptions& options, const std::string& name, const Status& status) {
    const Guarded found = guarded(options, name);
    if (found == Guarded::yes) return true;
    return (found == Guarded::unknown || !status.IsNotSupported()) && has_spill_store(options, name);
  }

  Report& report_ = Report::of_process();
  std::optional<SpillOptions> options_;  // none: SPILLWAY was refused
};

}  // namespace
}  // namespace spillway::accelerate

__attribute__((visibility("default"))) spillway::accelerate::Opener* spillway_opener(
    const spillway::accelerate::Process& process) {
  static spillway::accelerate::SpillwayOpener* const opener =
      std::make_unique<spillway::accelerate::SpillwayOpener>(process).release();
  return opener;
}
