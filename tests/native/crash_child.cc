#include "crash_child.h"

#include <rocksdb/sst_file_writer.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/steps.h"
#include "faults/file_system.h"

namespace spillway::crash {

namespace {

using rocksdb::Status;
using Random = std::mt19937_64;

// Makes a thread's files for an operation's puts, one per family, and ingests them together. A killed process leaves
// them.
Status ingest(Opened& store, const Operation& operation, const std::string& prefix, rocksdb::Env* env) {
  std::vector<rocksdb::IngestExternalFileArg> arguments;
  for (unsigned family = 0; family < store.families.size(); ++family) {
    std::map<std::string, std::string> pairs;
    for (const Change& change : operation.changes) {
      if (change.key.family == family) pairs[change.key.name] = change.value;
    }
    if (pairs.empty()) continue;
    rocksdb::Options options = small_options(env);
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
    rocksdb::IngestExternalFileArg& argument = arguments.emplace_back();
    argument.column_family = store.families[family];
    argument.external_files.push_back(prefix + std::to_string(family) + ".sst");
    Status status = writer.Open(argument.external_files.front());
    for (const auto& [key, value] : pairs) {
      if (status.ok()) status = writer.Put(key, value);
    }
    if (status.ok()) status = writer.Finish();
    if (!status.ok()) return status;
  }
  return store.db->IngestExternalFiles(arguments);
}

Status apply(Opened& store, const Operation& operation) {
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

// Ends the process when it reaches a step for the n-th time, and records the names of steps.
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

// The life of one child.
class Child {
 public:
  Child(const CrashPlan& plan, CrashLedger& ledger, std::uint64_t round, std::string root)
      : plan_(plan), ledger_(ledger), round_(round), root_(std::move(root)) {}

  [[noreturn]] void run(const History& history) {
    Random random(plan_.seed * 7919 + round_);
    // At the first time, or one soon after, because some steps are reached once in a life.
    StepKiller killer(ledger_, plan_.step, round_ % 2 == 0 ? 1 : 1 + random() % 2);
    steps::watch(&killer);
    open_environment();
    const Claim claim = history.claim(ledger_);
    const auto judge_it = [&](Opened& store) { return judge(store, claim, ledger_).failure; };
    if (plan_.visit) fail_if(plan_.visit(root_, env(), judge_it));
    Opened store;
    if (const Status status = plan_.open(root_, env(), &store); !status.ok()) {
      fail("cannot open: " + status.ToString());
    }
    Judgement judgement = judge(store, claim, ledger_);
    fail_if(judgement.failure);
    if (plan_.checks) fail_if(plan_.checks(store));
    if (ledger_.copy != 0) judge_last_copy(history.claim_of_copy(ledger_));
    base_ = std::move(judgement.contents);
    ledger_.survivors = judgement.survivors;
    ledger_.begin_writing();
    if (plan_.room_bytes > 0 && round_ % 2 == 0) fill_drive();
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] { write(store, i); });
    }
    Scene scene{store, root_, env(), random, [&](const TakeCopy& take) { return judge_copy(store, take); }};
    while (plan_.stir) fail_if(plan_.stir(scene));
    for (std::thread& thread : threads) thread.join();
    for (;;) pause();  // until killed
  }

 private:
  // If the page cache survives, what was synced need not be recorded.
  void open_environment() {
    if (!plan_.power_loss && plan_.room_bytes == 0) return;
    auto system = faults::FaultyFileSystem::open(root_);
    if (!system) fail("the fault layer cannot open: " + system.status().message());
    system_ = *system;
    env_ = rocksdb::NewCompositeEnv(system_);
  }
  rocksdb::Env* env() const { return env_ ? env_.get() : rocksdb::Env::Default(); }

  [[noreturn]] void fail(const std::string& message) {
    ledger_.fail(message);
    _exit(1);
  }
  void fail_if(const std::string& message) {
    if (!message.empty()) fail(message);
  }

  // Fills the drive, or a smaller one that holds only files with `only_in` in their names.
  void fill_drive() {
    const auto written = std::make_shared<std::atomic<std::uint64_t>>(0);
    system_->set_fault_rule([this, written](const faults::FileOperation& operation) {
      // After a refused write to its MANIFEST within IngestExternalFiles, RocksDB 7.8.3 with assertions ends the
      // process (docs/decisions/0014).
      const bool is_manifest = operation.name.find("MANIFEST-") != std::string::npos;
      if (operation.action != faults::Action::write || is_manifest ||
          operation.name.find(plan_.only_in) == std::string::npos) {
        return faults::FileFault();
      }
      if ((*written += operation.bytes) <= plan_.room_bytes) return faults::FileFault();
      ++ledger_.refused;
      return faults::FileFault{.status = rocksdb::IOStatus::NoSpace("the drive is full (injected)")};
    });
  }

  void write(Opened& store, unsigned number) {
    ThreadLedger& thread = ledger_.threads[number];
    Script script(script_seed(plan_, round_), number, plan_.kinds, base_[number]);
    Random random(round_ * 31 + number);
    for (std::uint32_t i = 0; i < kMostOperations; ++i) {
      const Operation operation = script.next();
      thread.begun_at[i] = ++ledger_.time;
      thread.begun = i + 1;
      const std::string files = root_ + "/ingested-" + std::to_string(number) + "-";
      const Status status = operation.is_ingestion ? ingest(store, operation, files, env()) : apply(store, operation);
      if (!status.ok()) {
        if (plan_.room_bytes == 0) fail("a write failed: " + status.ToString());
        return;  // its outcome is unknown, and later operations depend on it
      }
      thread.acknowledged_at[i] = ++ledger_.time;
      thread.acknowledged = i + 1;
      if (random() % 8 == 0) {
        const std::string wrong = compare_with_reads(store, number, script.state());
        if (!wrong.empty()) fail("while it was written, after operation " + std::to_string(i) + ": " + wrong);
      }
    }
  }

  std::string directory_of_copy(std::uint64_t name) const { return root_ + "/copy-" + std::to_string(name); }

  std::string judge_copy(Opened& store, const TakeCopy& take) {
    const std::uint64_t before = ledger_.copy;
    const std::uint64_t name = round_ * 1000 + ++taken_;
    Claim claim{.plan = &plan_, .round = round_, .base = base_};
    for (unsigned i = 0; i < kThreads; ++i) claim.due[i] = ledger_.threads[i].acknowledged;
    if (const Status status = take(*store.db, directory_of_copy(name)); !status.ok()) {
      return "no copy: " + status.ToString();
    }
    ledger_.copy = 0;
    ledger_.copy_due = claim.due;
    ledger_.copy = name;
    for (unsigned i = 0; i < kThreads; ++i) claim.begun[i] = ledger_.threads[i].begun;
    if (before != 0) remove_copy(before);
    return judge_copy(name, claim);
  }

  void judge_last_copy(const Claim& claim) {
    if (const std::string failure = judge_copy(ledger_.copy, claim); !failure.empty()) {
      fail("after the death of who took it, " + failure);
    }
    remove_copy(ledger_.copy);
  }

  std::string judge_copy(std::uint64_t name, const Claim& claim) {
    Opened copy;
    if (const Status status = open_rocksdb_at(directory_of_copy(name), env(), &copy); !status.ok()) {
      return "cannot open a copy: " + status.ToString();
    }
    const std::string failure = judge(copy, claim, ledger_).failure;
    close(copy);
    ++ledger_.copies;
    return failure.empty() ? failure : "of a copy: " + failure;
  }

  void remove_copy(std::uint64_t name) {
    rocksdb::Options options;
    options.env = env();
    rocksdb::DestroyDB(directory_of_copy(name), options).PermitUncheckedError();
  }

  const CrashPlan& plan_;
  CrashLedger& ledger_;
  const std::uint64_t round_;
  const std::string root_;
  std::shared_ptr<faults::FaultyFileSystem> system_;
  std::unique_ptr<rocksdb::Env> env_;
  std::array<Contents, kThreads> base_{};
  std::uint64_t taken_ = 0;  // number of copies
};

}  // namespace

void live(const CrashPlan& plan, CrashLedger& ledger, std::uint64_t round, const std::string& root,
          const History& history) {
  Child(plan, ledger, round, root).run(history);
}

}  // namespace spillway::crash
