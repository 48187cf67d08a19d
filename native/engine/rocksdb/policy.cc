#include "engine/rocksdb/policy.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "base/spelling.h"
#include "engine/engine_kind.h"
#include "engine/rocksdb/adoc_tuner.h"
#include "engine/rocksdb/spillway_db.h"

namespace spillway::engine {

namespace {

// Stalls only: each slowdown trigger is put where its stop trigger is, and RocksDB tests for a stop first. More than
// three memtables would bring back a slowdown of their own. Source: RocksDB, db/column_family.cc; K12.
class NoSlowdown final : public Policy {
 public:
  rocksdb::Status open(const rocksdb::Options& options, const std::string& directory, rocksdb::DB** db) override {
    rocksdb::Options own = options;
    own.level0_slowdown_writes_trigger = own.level0_stop_writes_trigger;
    own.soft_pending_compaction_bytes_limit = own.hard_pending_compaction_bytes_limit;
    own.max_write_buffer_number = std::min(own.max_write_buffer_number, 3);
    return rocksdb::DB::Open(own, directory, spill::DbOut(db));
  }
};

class AdocPolicy final : public Policy {
 public:
  explicit AdocPolicy(const AdocOptions& options) : adoc_(std::make_shared<AdocTuner>(options)) {}
  ~AdocPolicy() override { adoc_->stop(); }

  rocksdb::Status open(const rocksdb::Options& options, const std::string& directory, rocksdb::DB** db) override {
    rocksdb::Options own = options;
    own.listeners.push_back(adoc_);
    rocksdb::Status status = rocksdb::DB::Open(own, directory, spill::DbOut(db));
    if (status.ok()) adoc_->start(*db);
    return status;
  }

  void observe(Observation& seen) override {
    const AdocSettings settings = adoc_->settings();
    seen.set("background_jobs", settings.jobs);
    seen.set("write_buffer_bytes", settings.buffer_bytes);
  }

  void add_statistics(std::map<std::string, std::uint64_t>& figures) override { figures.merge(adoc_->counters()); }
  std::vector<Event> take_events() override { return adoc_->take_events(); }
  void stop() override { adoc_->stop(); }

 private:
  const std::shared_ptr<AdocTuner> adoc_;  // RocksDB keeps it as its listener
};

constexpr std::uint64_t kMostJobs = 1024;                       // RocksDB starts a thread for each
constexpr std::uint64_t kMostBuffer = std::uint64_t{64} << 30;  // RocksDB's own bound of write_buffer_size
constexpr std::uint64_t kMostIntervalMs = 86'400'000;

AdocOptions read_adoc(Settings& settings) {
  AdocOptions adoc;
  const auto jobs = [&](const char* key, std::uint32_t fallback, std::uint64_t high) {
    return static_cast<std::uint32_t>(settings.whole(key, fallback, 1, high));
  };
  adoc.interval_ms = static_cast<std::int64_t>(
      settings.whole("adoc.interval_ms", static_cast<std::uint64_t>(adoc.interval_ms), 1, kMostIntervalMs));
  adoc.least_jobs = jobs("adoc.least_jobs", adoc.least_jobs, std::numeric_limits<std::uint32_t>::max());
  adoc.most_jobs = jobs("adoc.most_jobs", adoc.most_jobs, kMostJobs);
  adoc.least_buffer_bytes = settings.whole("adoc.least_buffer_bytes", adoc.least_buffer_bytes, 1, kMostBuffer);
  adoc.most_buffer_bytes = settings.whole("adoc.most_buffer_bytes", adoc.most_buffer_bytes, 1, kMostBuffer);
  return adoc;
}

}  // namespace

std::vector<std::string> policy_names() { return {"slowdown", "no-slowdown", "adoc"}; }

Result<std::unique_ptr<Policy>> make_policy(const EngineSpec& spec) {
  const auto given = spec.settings.find("policy");
  const std::string name = given == spec.settings.end() ? "slowdown" : given->second;
  if (spec.name == "spillway") {
    if (name == "slowdown") return make_spillway_policy(spec);
    return Status::bad_input("engine.policy is '" + name +
                             "', but policies are of the engine rocksdb: leave it out of spillway");
  }
  const std::vector<std::string> names = policy_names();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    const std::string near = nearest(name, names);
    return Status::bad_input(
        "engine.policy: there is no policy '" + name + "'" +
        (near.empty() ? "; there are slowdown, no-slowdown and adoc" : ", the nearest is '" + near + "'"));
  }
  Settings settings = settings_of(spec);
  settings.choice("policy", names, 0);
  const AdocOptions adoc = read_adoc(settings);  // also of the other policies: arms of a plan share their tables
  if (Status status = settings.finish(); !status) return status;
  if (name == "no-slowdown") return std::unique_ptr<Policy>(std::make_unique<NoSlowdown>());
  if (name == "slowdown") return std::make_unique<Policy>();
  if (const std::string problem = find_problem(adoc); !problem.empty()) return Status::bad_input(problem);
  return std::unique_ptr<Policy>(std::make_unique<AdocPolicy>(adoc));
}

}  // namespace spillway::engine
