#include "engine/spill_policy.h"

#include <mutex>
#include <string>
#include <utility>

#include "engine/stall_watch.h"
#include "spillway/db.h"

namespace spillway::engine {

namespace {

class SpillEvents final : public SpillListener {
 public:
  void on_spill_event(const SpillEvent& event) override {
    Event told{.at_ns = steady_now_ns(),
               .name = std::string("spill.") + name_of(event.kind),
               .figures = {{"generation", static_cast<double>(event.generation)},
                           {"entries", static_cast<double>(event.entries)},
                           {"bytes", static_cast<double>(event.bytes)},
                           {"duration_s", static_cast<double>(event.duration_us) * 1e-6}},
               .message = event.message};
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(told));
  }
  std::vector<Event> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(events_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<Event> events_;
};

class SpillPolicy final : public Policy {
 public:
  explicit SpillPolicy(SpillOptions options) : options_(std::move(options)) { options_.listeners.push_back(events_); }

  rocksdb::Status open(const rocksdb::Options& options, const std::string& directory, rocksdb::DB** db) override {
    const rocksdb::Status status = DB::Open(options, options_, directory, &db_);
    *db = db_;
    return status;
  }

  void observe(Observation& seen) override {
    if (db_ == nullptr) return;
    const SpillStatistics now = db_->GetSpillStatistics();
    seen.spill = SpillObservation{.diverting = now.diverting,
                                  .live_generations = now.live_generations,
                                  .live_bytes = now.live_bytes,
                                  .index_bytes = now.index_bytes,
                                  .diverted_writes = now.diverted_writes,
                                  .diverted_bytes = now.diverted_bytes,
                                  .rolled_back_bytes = now.rolled_back_bytes,
                                  .waits = now.waits};
  }

  void add_statistics(std::map<std::string, std::uint64_t>& figures) override {
    if (db_ == nullptr) return;
    const SpillStatistics now = db_->GetSpillStatistics();
    const std::map<std::string, std::uint64_t> own = {{"spill.diverted_writes", now.diverted_writes},
                                                      {"spill.diverted_bytes", now.diverted_bytes},
                                                      {"spill.main_writes", now.main_writes},
                                                      {"spill.waits", now.waits},
                                                      {"spill.wait_us", now.wait_us},
                                                      {"spill.stalls_diverted", now.stalls_diverted},
                                                      {"spill.last_resort", now.last_resort},
                                                      {"spill.ordering_syncs", now.ordering_syncs},
                                                      {"spill.rolled_back_entries", now.rolled_back_entries},
                                                      {"spill.rolled_back_bytes", now.rolled_back_bytes},
                                                      {"spill.rollbacks_by_ingest", now.rollbacks_by_ingest},
                                                      {"spill.rollbacks_by_put", now.rollbacks_by_put},
                                                      {"spill.rollback_us", now.rollback_us}};
    figures.insert(own.begin(), own.end());
  }

  std::vector<Event> take_events() override { return events_->take(); }
  rocksdb::Status bring_back() override { return db_->Rollback(); }
  void stop() override { db_ = nullptr; }

 private:
  const std::shared_ptr<SpillEvents> events_ = std::make_shared<SpillEvents>();
  SpillOptions options_;
  DB* db_ = nullptr;  // the engine's; null when it is closed
};

}  // namespace

std::unique_ptr<Policy> make_spill_policy(SpillOptions options) {
  return std::make_unique<SpillPolicy>(std::move(options));
}

}  // namespace spillway::engine
