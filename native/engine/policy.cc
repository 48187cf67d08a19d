#include "engine/policy.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "device/preset.h"
#include "engine/adoc_tuner.h"
#include "engine/factory.h"
#include "engine/spill_policy.h"

namespace spillway::engine {

namespace {

// Stalls only: each slowdown trigger is put where its stop trigger is, and RocksDB tests for a stop first. More than
// three memtables would bring back a slowdown of their own. Source: FACTS on db/column_family.cc; K12.
class NoSlowdown final : public Policy {
 public:
  rocksdb::Status open(const rocksdb::Options& options, const std::string& directory, rocksdb::DB** db) override {
    rocksdb::Options own = options;
    own.level0_slowdown_writes_trigger = own.level0_stop_writes_trigger;
    own.soft_pending_compaction_bytes_limit = own.hard_pending_compaction_bytes_limit;
    own.max_write_buffer_number = std::min(own.max_write_buffer_number, 3);
    return rocksdb::DB::Open(own, directory, db);
  }
};

class AdocPolicy final : public Policy {
 public:
  explicit AdocPolicy(const AdocOptions& options) : adoc_(std::make_shared<AdocTuner>(options)) {}
  ~AdocPolicy() override { adoc_->stop(); }

  rocksdb::Status open(const rocksdb::Options& options, const std::string& directory, rocksdb::DB** db) override {
    rocksdb::Options own = options;
    own.listeners.push_back(adoc_);
    rocksdb::Status status = rocksdb::DB::Open(own, directory, db);
    if (status.ok()) adoc_->start(*db);
    return status;
  }

  void observe(Observation& seen) override {
    const AdocSettings settings = adoc_->settings();
    seen.background_jobs = settings.jobs;
    seen.write_buffer_bytes = settings.buffer_bytes;
  }

  void add_statistics(std::map<std::string, std::uint64_t>& figures) override { figures.merge(adoc_->counters()); }
  std::vector<Event> take_events() override { return adoc_->take_events(); }
  void stop() override { adoc_->stop(); }

 private:
  const std::shared_ptr<AdocTuner> adoc_;  // RocksDB keeps it as its listener
};

}  // namespace

std::vector<std::string> policy_names() { return {"slowdown", "no-slowdown", "adoc"}; }

Result<std::unique_ptr<Policy>> make_policy(const EngineSpec& spec) {
  if (spec.name == "spillway") {
    if (spec.policy == "slowdown") return make_spill_policy(spec.spill);
    return Status::bad_input("engine.policy is '" + spec.policy +
                             "', but policies are of the engine rocksdb: leave it out of spillway");
  }
  if (spec.policy == "slowdown") return std::make_unique<Policy>();
  if (spec.policy == "no-slowdown") return std::unique_ptr<Policy>(std::make_unique<NoSlowdown>());
  if (spec.policy == "adoc") {
    if (const std::string problem = find_problem(spec.adoc); !problem.empty()) return Status::bad_input(problem);
    return std::unique_ptr<Policy>(std::make_unique<AdocPolicy>(spec.adoc));
  }
  const std::string near = device::nearest(spec.policy, policy_names());
  return Status::bad_input(
      "engine.policy: there is no policy '" + spec.policy + "'" +
      (near.empty() ? "; there are slowdown, no-slowdown and adoc" : ", the nearest is '" + near + "'"));
}

}  // namespace spillway::engine
