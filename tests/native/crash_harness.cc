#include "crash_harness.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <thread>
#include <utility>

#include "crash_child.h"
#include "crash_judge.h"
#include "faults/power_loss.h"
#include "spill/compat/db_out.h"
#include "temporary_directory.h"

namespace spillway::crash {

namespace {

using Random = std::mt19937_64;

// Waits until the child writes or is dead. False: it hangs.
bool wait_until_writing(const CrashLedger& ledger, pid_t child, bool* dead) {
  using namespace std::chrono_literals;
  const auto patience = std::chrono::steady_clock::now() + 60s;
  *dead = false;
  while (ledger.phase == Phase::opening) {
    if (waitpid(child, nullptr, WNOHANG) == child) {
      *dead = true;
      return true;
    }
    if (std::chrono::steady_clock::now() > patience) return false;
    std::this_thread::sleep_for(100us);
  }
  return true;
}

#ifdef __SANITIZE_THREAD__
constexpr unsigned kStepPatienceUs = 3'000'000;  // a step's watcher makes a process ten times as slow
#else
constexpr unsigned kStepPatienceUs = 300'000;
#endif

constexpr unsigned kMostTries = 8;  // factor on the kills of a plan until one reaches its step

class Run {
 public:
  explicit Run(const CrashPlan& plan) : plan_(plan), random_(plan.seed), history_{.plan = &plan} {}

  CrashReport run() {
    if (ledger_ == nullptr) {
      report_.failure = "no shared memory";
      return report_;
    }
    std::filesystem::create_directories(root_);
    while (report_.failure.empty() && (report_.kills < plan_.kills || is_to_try_more())) one_child();
    if (report_.failure.empty()) one_child(true);  // which only judges the last one
    collect_steps();
    report_.refused = ledger_->refused;
    report_.copies = ledger_->copies;
    return report_;
  }

 private:
  // On a busy machine a child may not reach the step in its time.
  bool is_to_try_more() const {
    return !plan_.step.empty() && report_.at_step == 0 && report_.kills < kMostTries * plan_.kills;
  }

  void one_child(bool only_judges = false) {
    ledger_->phase = Phase::opening;
    ledger_->step_reached = false;
    CrashPlan plan = plan_;
    if (only_judges) plan.step.clear();
    ++round_;
    const pid_t child = fork();
    if (child == 0) live(plan, *ledger_, round_, root_, history_);
    bool dead = false;
    if (!wait_until_writing(*ledger_, child, &dead)) ledger_->fail("it hangs while it opens or reads");
    if (!dead && ledger_->phase == Phase::writing && !only_judges) {
      // A child that dies at a step gets enough time to reach it.
      const auto moment_us = 200 + static_cast<unsigned>(random_() % (plan_.most_ms * 1000));
      await(child, plan_.step.empty() ? moment_us : kStepPatienceUs, &dead);
    }
    if (!dead) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    settle(dead);
    if (!only_judges) ++report_.kills;
    if (ledger_->step_reached) ++report_.at_step;
    const bool stays_on = plan_.also_kills && random_() % 3 == 0;
    if (plan_.power_loss && !stays_on && report_.failure.empty()) cut_power();
  }

  static void await(pid_t child, unsigned for_us, bool* dead) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(for_us);
    while (!*dead && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      *dead = waitpid(child, nullptr, WNOHANG) == child;
    }
  }

  // Evaluates what the child has reported.
  void settle(bool dead) {
    if (ledger_->phase == Phase::failed) {
      report_.failure = "seed " + std::to_string(plan_.seed) + ", child " + std::to_string(round_) + ": " +
                        std::string(ledger_->failure.data());
      return;
    }
    if (ledger_->phase == Phase::opening) {  // it died at a step of recovery: the next child judges the same history
      if (!ledger_->step_reached)
        report_.failure = "child " + std::to_string(round_) + " died by itself while it opened";
      return;
    }
    if (dead && !ledger_->step_reached) {
      report_.failure = "child " + std::to_string(round_) + " died by itself while it wrote";
      return;
    }
    report_.lost += history_.settle(*ledger_);
    history_.round = round_;
    history_.power_lost = false;
    for (unsigned i = 0; i < kThreads; ++i) report_.operations += ledger_->threads[i].begun;
  }

  void cut_power() {
    history_.power_lost = true;
    const std::string next = scratch_.path("root-" + std::to_string(round_));
    const spillway::Status status = faults::power_loss(root_, next, {.seed = random_(), .in_order = plan_.in_order});
    if (!status) report_.failure = status.message();
    if (plan_.also_loses) plan_.also_loses(root_, next, random_);
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
    std::filesystem::remove_all(root_ + ".drive", ignored);
    root_ = next;
  }

  void collect_steps() {
    for (const auto& name : ledger_->steps) {
      if (name[0] != 0) report_.steps.emplace(name.data());
    }
  }

  const CrashPlan& plan_;
  Random random_;
  const TemporaryDirectory scratch_{memory_path()};
  std::string root_ = scratch_.path("root");
  CrashLedger* const ledger_ = CrashLedger::map();  // mapped until the test process ends
  History history_;
  std::uint64_t round_ = 0;
  CrashReport report_;
};

}  // namespace

Effort& effort() {
  static Effort effort;
  return effort;
}

CrashReport run_crashes(const CrashPlan& plan) {
  CrashPlan scaled = plan;
  scaled.kills *= effort().times;
  scaled.seed += effort().seed * 1000;
  return Run(scaled).run();
}

rocksdb::Options small_options(rocksdb::Env* env) {
  rocksdb::Options options;
  options.env = env;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.write_buffer_size = 64 << 10;
  options.target_file_size_base = 32 << 10;
  options.max_bytes_for_level_base = 128 << 10;
  options.max_background_jobs = 2;
  options.merge_operator = appending_merge();
  options.compression = rocksdb::kNoCompression;
  options.info_log_level = rocksdb::FATAL_LEVEL;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.max_file_opening_threads = 1;
  options.skip_stats_update_on_db_open = true;
  options.paranoid_checks = true;
  return options;
}

void close(Opened& store) {
  for (auto* handles : {&store.families, &store.imported}) {
    for (rocksdb::ColumnFamilyHandle* handle : *handles) {
      store.db->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
    }
    handles->clear();
  }
  store.db.reset();
}

rocksdb::Status open_rocksdb_at(const std::string& path, rocksdb::Env* env, Opened* opened) {
  const rocksdb::Options options = small_options(env);
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const std::string& name : families_in(path, env)) families.emplace_back(name, options);
  rocksdb::DB* db = nullptr;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  const rocksdb::Status status = rocksdb::DB::Open(options, path, families, &handles, spill::DbOut(&db));
  take_handles(handles, opened);
  opened->db.reset(db);
  return status;
}

rocksdb::Status open_rocksdb(const std::string& root, rocksdb::Env* env, Opened* opened) {
  return open_rocksdb_at(root + "/db", env, opened);
}

std::vector<std::string> families_in(const std::string& path, rocksdb::Env* env) {
  std::vector<std::string> all;
  rocksdb::DBOptions options;
  options.env = env;
  rocksdb::DB::ListColumnFamilies(options, path, &all).PermitUncheckedError();  // the database may not exist yet
  std::vector<std::string> names{rocksdb::kDefaultColumnFamilyName, "other"};
  std::ranges::copy_if(all, std::back_inserter(names), [](const auto& name) { return name.starts_with(kImported); });
  return names;
}

void take_handles(const std::vector<rocksdb::ColumnFamilyHandle*>& handles, Opened* opened) {
  if (handles.empty()) return;
  opened->families.assign(handles.begin(), handles.begin() + 2);
  opened->imported.assign(handles.begin() + 2, handles.end());
}

}  // namespace spillway::crash
