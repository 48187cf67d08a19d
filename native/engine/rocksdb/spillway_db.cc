#include "engine/rocksdb/spillway_db.h"

#include <chrono>
#include <mutex>
#include <string>
#include <utility>

#include "engine/rocksdb/stall_listener.h"
#include "spill/settings/spill_settings.h"
#include "spill/store/kv/kv_store.h"
#include "spillway/db.h"

namespace spillway::engine {

namespace {

class SpillEvents final : public SpillListener {
 public:
  void on_spill_event(const SpillEvent& event) override {
    Event reported{.at_ns = steady_now_ns(),
                   .name = std::string("spill.") + name_of(event.kind),
                   .figures = {{"generation", static_cast<double>(event.generation)},
                               {"entries", static_cast<double>(event.entries)},
                               {"bytes", static_cast<double>(event.bytes)},
                               {"duration_s", static_cast<double>(event.duration_us) * 1e-6}},
                   .message = event.message};
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(reported));
  }
  std::vector<Event> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(events_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<Event> events_;
};

spillway::Diversion to_library(Diversion diversion) {
  switch (diversion) {
    case Diversion::automatic:
      return spillway::Diversion::automatic;
    case Diversion::always:
      return spillway::Diversion::always;
    case Diversion::never:
      return spillway::Diversion::never;
  }
  return spillway::Diversion::automatic;
}

class SpillPolicy final : public Policy {
 public:
  // `drive`: whose key-value namespace is the spill store; null: files are.
  SpillPolicy(SpillOptions options, device::EmulatedDevice* drive) : options_(std::move(options)), drive_(drive) {
    options_.listeners.push_back(events_);
  }

  rocksdb::Status open(const rocksdb::Options& options, const std::string& directory, rocksdb::DB** db) override {
    if (drive_ != nullptr) {
      spill::KvStoreOptions in_drive;
      in_drive.drive = drive_;
      std::unique_ptr<spill::Store> store;
      rocksdb::Status opened = spill::open_kv_store(in_drive, &store);
      if (!opened.ok()) return opened;
      options_.store = std::move(store);
    }
    const rocksdb::Status status = DB::Open(options, options_, directory, &db_);
    options_.store.reset();  // the database's alone: it ends before the drive does
    *db = db_;
    return status;
  }

  bool waits_for_space() const override { return true; }

  void observe(Observation& seen) override {
    if (db_ == nullptr) return;
    seen.spill = db_->GetSpillStatistics();
  }

  void add_statistics(std::map<std::string, std::uint64_t>& figures) override {
    if (db_ == nullptr) return;
    for_each_statistic(db_->GetSpillStatistics(), [&](std::string_view name, std::uint64_t value) {
      figures.emplace("spill." + std::string(name), value);
    });
  }

  std::vector<Event> take_events() override { return events_->take(); }
  void set_diversion(Diversion diversion) override {
    if (db_ != nullptr) db_->SetDiversion(to_library(diversion));
  }
  rocksdb::Status roll_back() override { return db_->Rollback(); }
  void stop() override { db_ = nullptr; }

 private:
  const std::shared_ptr<SpillEvents> events_ = std::make_shared<SpillEvents>();
  SpillOptions options_;
  device::EmulatedDevice* const drive_;
  DB* db_ = nullptr;  // the engine's; null when it is closed
};

}  // namespace

Result<std::unique_ptr<Policy>> make_spillway_policy(const EngineSpec& spec) {
  Settings settings = settings_of(spec);
  settings.choice("policy", {"slowdown"}, 0);
  const bool in_drive = settings.choice("spill.store", {"region", "kv"}, 0) == 1;
  SpillOptions spill =
      spill::read_spill_options(settings, {.prefix = "spill.", .size_suffix = "_bytes", .shown = "engine."});
  if (in_drive && !spec.has_kv_namespace) {
    settings.refuse(
        "engine.spill.store is kv, but the target has no key-value namespace: give an emulated drive a "
        "namespaces.kv_share above 0, or use the store region");
  }
  if (Status status = settings.finish(); !status) return status;
  return std::unique_ptr<Policy>(std::make_unique<SpillPolicy>(std::move(spill), in_drive ? spec.device : nullptr));
}

}  // namespace spillway::engine
