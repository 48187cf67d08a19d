#include "crash_harness.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "base/steps.h"
#include "crash_judge.h"
#include "faults/file_system.h"
#include "faults/power_loss.h"
#include "temporary_directory.h"

namespace spillway::crash {

namespace {

using rocksdb::Status;
using Random = std::mt19937_64;

rocksdb::Status apply(Opened& store, const Operation& operation) {
  rocksdb::WriteOptions options;
  options.sync = operation.sync;
  rocksdb::WriteBatch batch;
  for (const Change& change : operation.changes) {
    rocksdb::ColumnFamilyHandle* family = store.families[change.key.family];
    const bool alone = operation.changes.size() == 1;
    rocksdb::DB& db = *store.db;
    const std::string& key = change.key.name;
    Status status;
    switch (change.kind) {
      case Change::Kind::put:
        status = alone ? db.Put(options, family, key, change.value) : batch.Put(family, key, change.value);
        break;
      case Change::Kind::remove:
        status = alone ? db.Delete(options, family, key) : batch.Delete(family, key);
        break;
      case Change::Kind::single_remove:
        status = alone ? db.SingleDelete(options, family, key) : batch.SingleDelete(family, key);
        break;
      case Change::Kind::merge:
        status = alone ? db.Merge(options, family, key, change.value) : batch.Merge(family, key, change.value);
        break;
      case Change::Kind::remove_range:
        status =
            alone ? db.DeleteRange(options, family, key, change.value) : batch.DeleteRange(family, key, change.value);
        break;
    }
    if (alone || !status.ok()) return status;
  }
  return store.db->Write(options, &batch);
}

// Ends the process when it comes to a step for the n-th time, and says which steps there are.
class StepKiller final : public steps::Watcher {
 public:
  StepKiller(CrashLedger& ledger, std::string step, std::uint64_t n)
      : ledger_(ledger), step_(std::move(step)), left_(n) {}

  void reached(std::string_view step) override {
    const std::lock_guard lock(mutex_);
    ledger_.note_step(step);
    if (step != step_ || --left_ != 0) return;
    ledger_.step_reached = true;
    kill(getpid(), SIGKILL);
    pause();
  }

 private:
  CrashLedger& ledger_;
  const std::string step_;
  std::mutex mutex_;
  std::uint64_t left_;
};

// One child's life.
class Child {
 public:
  Child(const CrashPlan& plan, CrashLedger& ledger, std::uint64_t round)
      : plan_(plan), ledger_(ledger), round_(round) {}

  [[noreturn]] void run(const std::string& root, const History& history) {
    Random random(plan_.seed * 7919 + round_);
    // The first time, or one soon after: some steps come once in a life.
    StepKiller killer(ledger_, plan_.step, round_ % 2 == 0 ? 1 : 1 + random() % 2);
    steps::watch(&killer);
    const std::unique_ptr<rocksdb::Env> env = environment(root);
    Opened store;
    if (const Status status = plan_.open(root, env ? env.get() : rocksdb::Env::Default(), &store); !status.ok())
      fail("cannot open: " + status.ToString());
    Judgement judgement = judge(store, history, ledger_);
    if (!judgement.failure.empty()) fail(judgement.failure);
    ledger_.survivors = judgement.survivors;
    ledger_.begin_writing();
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] { write(store, i, std::move(judgement.contents[i])); });
    }
    while (plan_.stir) plan_.stir(*store.db, random);
    for (std::thread& thread : threads) thread.join();
    for (;;) pause();  // until killed
  }

 private:
  // What is synced need not be known where the page cache survives.
  std::unique_ptr<rocksdb::Env> environment(const std::string& root) {
    if (!plan_.power_loss) return nullptr;
    auto system = faults::FaultyFileSystem::open(root);
    if (!system) fail("the fault layer cannot open: " + system.status().message());
    return rocksdb::NewCompositeEnv(*system);
  }

  [[noreturn]] void fail(const std::string& message) {
    ledger_.fail(message);
    _exit(1);
  }

  void write(Opened& store, unsigned number, Contents base) {
    ThreadLedger& thread = ledger_.threads[number];
    Script script(script_seed(plan_, round_), number, plan_.kinds, std::move(base));
    Random random(round_ * 31 + number);
    for (std::uint32_t i = 0; i < kMostOperations; ++i) {
      const Operation operation = script.next();
      thread.begun_at[i] = ++ledger_.time;
      thread.begun = i + 1;
      if (const Status status = apply(store, operation); !status.ok()) fail("a write failed: " + status.ToString());
      thread.acknowledged_at[i] = ++ledger_.time;
      thread.acknowledged = i + 1;
      if (random() % 8 == 0) {
        const std::string wrong = compare_with_reads(store, number, script.state());
        if (!wrong.empty()) fail("while it was written, after operation " + std::to_string(i) + ": " + wrong);
      }
    }
  }

  const CrashPlan& plan_;
  CrashLedger& ledger_;
  const std::uint64_t round_;
};

// Waits until the child writes, or is dead; false: it hangs.
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
constexpr unsigned kStepPatienceUs = 3'000'000;  // it makes a process ten times as slow
#else
constexpr unsigned kStepPatienceUs = 300'000;
#endif

constexpr unsigned kMostTries = 8;  // times the kills of a plan, for the first to be at its step

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
    if (report_.failure.empty()) one_child(true);  // which only judges the last
    collect_steps();
    return report_;
  }

 private:
  // A step that nobody has come to: where the machine is busy, a child may not get there in its time.
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
    if (child == 0) Child(plan, *ledger_, round_).run(root_, history_);
    bool dead = false;
    if (!wait_until_writing(*ledger_, child, &dead)) ledger_->fail("it hangs while it opens or reads");
    if (!dead && ledger_->phase == Phase::writing && !only_judges) {
      // With a step to die at, it has the time to get there.
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

  // What the child has said.
  void settle(bool dead) {
    if (ledger_->phase == Phase::failed) {
      report_.failure = "seed " + std::to_string(plan_.seed) + ", child " + std::to_string(round_) + ": " +
                        std::string(ledger_->failure.data());
      return;
    }
    if (ledger_->phase == Phase::opening) {  // killed at a step of recovery: the next child judges the same history
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
  CrashLedger* const ledger_ = CrashLedger::map();  // until the test process ends
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

rocksdb::Status open_rocksdb(const std::string& root, rocksdb::Env* env, Opened* opened) {
  const rocksdb::Options options = small_options(env);
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status =
      rocksdb::DB::Open(options, root + "/db", {{rocksdb::kDefaultColumnFamilyName, options}, {"other", options}},
                        &opened->families, &db);
  opened->db.reset(db);
  return status;
}

}  // namespace spillway::crash
