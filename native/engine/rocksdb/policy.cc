#include "engine/rocksdb/policy.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "base/spelling.h"
#include "engine/engine_kind.h"
#include "engine/rocksdb/adoc_tuner.h"
#include "engine/rocksdb/flow_control_runner.h"
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

// RocksDB's own stalls are out of reach, and writers wait for the limiter instead.
class FlowControlPolicy final : public Policy {
 public:
  explicit FlowControlPolicy(const FlowControlOptions& options)
      : options_(options), runner_(std::make_shared<FlowControlRunner>(options)) {}
  ~FlowControlPolicy() override { runner_->stop(); }

  rocksdb::Status open(const rocksdb::Options& options, const std::string& directory, rocksdb::DB** db) override {
    rocksdb::Options own = without_stalls(options);
    own.listeners.push_back(runner_);
    rocksdb::Status status = rocksdb::DB::Open(own, directory, spill::DbOut(db));
    if (status.ok()) runner_->start(*db);
    return status;
  }

  void before_write(std::uint64_t bytes) override { runner_->before_write(bytes); }
  void observe(Observation& seen) override { seen.set("write_limit_bytes_s", runner_->limit_bytes_s()); }
  void add_statistics(std::map<std::string, std::uint64_t>& figures) override { figures.merge(runner_->counters()); }
  std::vector<Event> take_events() override { return runner_->take_events(); }
  void stop() override { runner_->stop(); }

 private:
  rocksdb::Options without_stalls(const rocksdb::Options& options) const {
    rocksdb::Options own = options;
    own.level0_slowdown_writes_trigger = kOutOfReach;
    own.level0_stop_writes_trigger = kOutOfReach;
    // No limits. RocksDB then always allows several compactions at once, not only where it is behind. Source: RocksDB,
    // db/column_family.cc
    own.soft_pending_compaction_bytes_limit = 0;
    own.hard_pending_compaction_bytes_limit = 0;
    // RocksDB always stops at some number of memtables, which bounds their memory.
    const std::uint64_t memtables = options_.memtables * kMemtablesBeforeStop;
    own.max_write_buffer_number = std::max(own.max_write_buffer_number, static_cast<int>(memtables));
    return own;
  }

  static constexpr int kOutOfReach = 1 << 30;               // files of L0
  static constexpr std::uint64_t kMemtablesBeforeStop = 8;  // times flow control's limit. Source: guess

  const FlowControlOptions options_;
  const std::shared_ptr<FlowControlRunner> runner_;  // RocksDB keeps it as its listener
};

constexpr std::uint64_t kMostJobs = 1024;                       // RocksDB starts a thread for each
constexpr std::uint64_t kMostBuffer = std::uint64_t{64} << 30;  // RocksDB's own bound of write_buffer_size
constexpr std::uint64_t kMostIntervalMs = 86'400'000;
constexpr std::uint64_t kMostFiles = 1 << 20;                     // what flow control counts, never so many
constexpr std::uint64_t kMostFlowBytes = std::uint64_t{1} << 60;  // exact as a double of this magnitude

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

FlowControlOptions read_flow_control(Settings& settings) {
  FlowControlOptions flow;
  flow.memtables = settings.whole("flow_control.memtables", flow.memtables, 1, kMostFiles);
  flow.l0_files = settings.whole("flow_control.l0_files", flow.l0_files, 1, kMostFiles);
  flow.soft_pending_bytes =
      settings.whole("flow_control.soft_pending_bytes", flow.soft_pending_bytes, 1, kMostFlowBytes);
  flow.hard_pending_bytes =
      settings.whole("flow_control.hard_pending_bytes", flow.hard_pending_bytes, 1, kMostFlowBytes);
  flow.least_bytes_s = settings.whole("flow_control.least_bytes_s", flow.least_bytes_s, 1, kMostFlowBytes);
  flow.most_bytes_s = settings.whole("flow_control.most_bytes_s", flow.most_bytes_s, 1, kMostFlowBytes);
  return flow;
}

// The policy of the engine rocksdb by this name, which is one of policy_names().
Result<std::unique_ptr<Policy>> make_by_name(const std::string& name, const AdocOptions& adoc,
                                             const FlowControlOptions& flow) {
  if (name == "no-slowdown") return std::unique_ptr<Policy>(std::make_unique<NoSlowdown>());
  if (name == "adoc") {
    if (const std::string problem = find_problem(adoc); !problem.empty()) return Status::bad_input(problem);
    return std::unique_ptr<Policy>(std::make_unique<AdocPolicy>(adoc));
  }
  if (name == "flow-control") {
    if (const std::string problem = find_problem(flow); !problem.empty()) return Status::bad_input(problem);
    return std::unique_ptr<Policy>(std::make_unique<FlowControlPolicy>(flow));
  }
  return std::make_unique<Policy>();
}

}  // namespace

std::vector<std::string> policy_names() { return {"slowdown", "no-slowdown", "adoc", "flow-control"}; }

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
    return Status::bad_input("engine.policy: there is no policy '" + name + "'" +
                             (near.empty() ? "; there are slowdown, no-slowdown, adoc and flow-control"
                                           : ", the nearest is '" + near + "'"));
  }
  Settings settings = settings_of(spec);
  settings.choice("policy", names, 0);
  // Also of the other policies: arms of a plan share their tables.
  const AdocOptions adoc = read_adoc(settings);
  const FlowControlOptions flow = read_flow_control(settings);
  if (Status status = settings.finish(); !status) return status;
  return make_by_name(name, adoc, flow);
}

}  // namespace spillway::engine
