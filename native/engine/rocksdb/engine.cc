
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/perf_level.h>
#include <rocksdb/statistics.h>
#include <rocksdb/version.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine_kind.h"
#include "engine/rocksdb/full_drive_listener.h"
#include "engine/rocksdb/info_log.h"
#include "engine/rocksdb/level_statistics.h"
#include "engine/rocksdb/options.h"
#include "engine/rocksdb/policy.h"
#include "engine/rocksdb/stall_listener.h"
#include "engine/rocksdb/status.h"
#include "fs/rocksdb/counting_file_system.h"
#include "fs/rocksdb/file_system.h"

namespace spillway::engine {

using Properties = rocksdb::DB::Properties;

namespace {

// Between two looks at whether compaction has come to rest; db_bench waits in steps of the same order.
constexpr std::chrono::milliseconds kRestPoll{10};
// So many looks in a row must find it at rest: between a flush and the compaction it asks for there is a gap.
constexpr int kRestLooks = 3;
// RocksDB calls a compaction due as long as a level is over its size, also where its picker has found nothing to do;
// then it asks again at the next flush only. One second without anything running or queued. Source: guess, many times
// what lies between RocksDB's finding that one is due and queuing it, which happens under one lock
constexpr int kDueLooks = 100;

// RocksDB counts each key comparison of a thread in its perf_context unless the thread says otherwise. Nothing here
// reads that, and db_bench switches it off as well (--perf_level=1): with it, bench/runner_overhead shows a tenth more
// processor time for puts.
void switch_off_perf_context() {
  thread_local const bool off = [] {
    rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
    return true;
  }();
  (void)off;
}

rocksdb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }

class RocksdbEngine final : public Engine {
 public:
  RocksdbEngine(const EngineSpec& spec, RocksdbOptions options, std::unique_ptr<Policy> policy)
      : directory_(spec.directory),
        options_(std::move(options)),
        watch_(std::make_shared<StallListener>()),
        policy_(std::move(policy)) {
    std::shared_ptr<rocksdb::FileSystem> files = rocksdb::FileSystem::Default();
    if (spec.volume != nullptr) {
      files = fs::make_rocksdb_file_system(*spec.volume, fs::RocksdbFileSystemOptions{.host_sync = spec.host_sync});
    }
    if (spec.writes != nullptr) files = fs::make_counting_file_system(*spec.writes, files);
    env_ = rocksdb::NewCompositeEnv(with_own_info_log(std::move(files)));
    options_.db.env = env_.get();
    statistics_ = rocksdb::CreateDBStatistics();
    // Tickers only: histograms and timers cost every operation two looks at the clock.
    statistics_->set_stats_level(rocksdb::StatsLevel::kExceptHistogramOrTimers);
    options_.db.statistics = statistics_;
    options_.db.listeners.push_back(watch_);
    if (!policy_->waits_for_space()) options_.db.listeners.push_back(std::make_shared<FullDriveListener>());
  }

  ~RocksdbEngine() override { (void)close(); }

  Status open() {
    rocksdb::DB* db = nullptr;
    const rocksdb::Options options(options_.db, options_.column_family);
    rocksdb::Status status;
    try {
      status = policy_->open(options, directory_, &db);
    } catch (const std::exception& error) {  // there is not as much memory, or as many threads, as options ask for
      return Status::bad_input("engine.options: RocksDB cannot open a database with them (" +
                               std::string(error.what()) + ")");
    }
    if (status.IsInvalidArgument() || status.IsNotSupported()) {
      return Status::bad_input("engine.options: RocksDB does not open a database with them (" + status.ToString() +
                               ")");
    }
    if (!status.ok()) return to_status(status, "RocksDB cannot open " + directory_);
    db_.reset(db);
    watch_->attach(db);
    return Status::ok();
  }

  Status put(std::string_view key, std::string_view value) override {
    switch_off_perf_context();
    policy_->before_write(key.size() + value.size());
    // One batch a thread, emptied and filled again: DB::Put would allocate one for every pair.
    thread_local rocksdb::WriteBatch batch;
    batch.Clear();
    rocksdb::Status status = batch.Put(slice(key), slice(value));
    if (status.ok()) status = db_->Write(options_.write, &batch);
    return status.ok() ? Status() : to_status(status, "put");
  }

  Status remove(std::string_view key) override {
    switch_off_perf_context();
    policy_->before_write(key.size());
    const rocksdb::Status status = db_->Delete(options_.write, slice(key));
    return status.ok() ? Status() : to_status(status, "remove");
  }

  Result<bool> get(std::string_view key, std::string* value) override {
    switch_off_perf_context();
    // Pinned rather than copied into a fresh string: what db_bench does, and the block cache's copy is the only one.
    thread_local rocksdb::PinnableSlice pinned;
    const rocksdb::Status status = db_->Get(options_.read, db_->DefaultColumnFamily(), slice(key), &pinned);
    if (status.ok() && value != nullptr) value->assign(pinned.data(), pinned.size());
    // Gives the block back to the cache, which may be gone when this thread ends. A Get that fails may pin one, too.
    pinned.Reset();
    if (status.ok()) return true;
    return status.IsNotFound() ? Result<bool>(false) : Result<bool>(to_status(status, "get"));
  }

  Status write(std::span<const engine::Write> writes) override {
    switch_off_perf_context();
    rocksdb::WriteBatch batch;
    rocksdb::Status status;
    std::uint64_t bytes = 0;
    for (const engine::Write& write : writes) {
      bytes += write.key.size() + write.value.size();
      status = write.kind == engine::Write::Kind::put ? batch.Put(slice(write.key), slice(write.value))
                                                      : batch.Delete(slice(write.key));
      if (!status.ok()) break;
    }
    policy_->before_write(bytes);
    if (status.ok()) status = db_->Write(options_.write, &batch);
    return status.ok() ? Status() : to_status(status, "write");
  }

  Result<std::uint64_t> scan(std::string_view key, std::uint64_t nexts, Direction direction, Pairs* pairs) override {
    switch_off_perf_context();
    const std::unique_ptr<rocksdb::Iterator> iterator(db_->NewIterator(options_.read));
    const bool forward = direction == Direction::forward;
    std::uint64_t seen = 0;
    forward ? iterator->Seek(slice(key)) : iterator->SeekForPrev(slice(key));
    for (; iterator->Valid() && seen <= nexts; forward ? iterator->Next() : iterator->Prev()) {
      ++seen;
      if (pairs != nullptr) pairs->emplace_back(iterator->key().ToString(), iterator->value().ToString());
    }
    if (!iterator->status().ok()) return to_status(iterator->status(), "scan");
    return seen;
  }

  std::span<const char* const> stall_causes() const override { return RocksdbCause::names; }

  Observation observe() override {
    Observation seen;
    if (!db_) return seen;
    const StallSignals signals = signals_of(*db_);
    watch_->poll(signals);
    seen.stall_state = watch_->state();
    seen.stall_cause = watch_->cause();
    seen.gauges = {{"l0_files", signals.l0_files},
                   {"immutable_memtables", signals.immutable_memtables},
                   {"memtable_bytes", property(Properties::kCurSizeAllMemTables)},
                   {"pending_compaction_bytes", signals.pending_compaction_bytes},
                   {"running_flushes", property(Properties::kNumRunningFlushes)},
                   {"running_compactions", property(Properties::kNumRunningCompactions)},
                   {"live_bytes", property(Properties::kLiveSstFilesSize) + property(Properties::kLiveBlobFileSize)},
                   {"background_jobs", static_cast<std::uint64_t>(std::max(options_.db.max_background_jobs, 0))},
                   {"write_buffer_bytes", options_.column_family.write_buffer_size}};
    add_level_bytes(*db_, seen);
    policy_->observe(seen);
    return seen;
  }

  std::vector<Stall> stalls() override { return watch_->stalls(); }

  std::map<std::string, std::uint64_t> statistics() override {
    std::map<std::string, std::uint64_t> tickers;
    for (const auto& [ticker, name] : rocksdb::TickersNameMap) tickers[name] = statistics_->getTickerCount(ticker);
    if (db_) add_level_statistics(*db_, tickers);
    policy_->add_statistics(tickers);
    return tickers;
  }

  std::vector<Event> take_events() override { return policy_->take_events(); }

  Status flush() override { return to_status(db_->Flush(rocksdb::FlushOptions()), "flush"); }

  // RocksDB 7.8 has no call for this; its properties say when nothing runs, waits or is due.
  Status wait_for_compaction(const std::atomic<bool>& stop) override {
    const bool compacts = !db_->GetOptions().disable_auto_compactions;
    int due = 0;  // looks in a row at which a compaction was due and nothing was on its way
    for (int at_rest = 0; at_rest < kRestLooks && !stop;) {
      if (property(Properties::kBackgroundErrors) != 0) return background_error();
      const bool works = property(Properties::kNumRunningFlushes) != 0 ||
                         property(Properties::kNumRunningCompactions) != 0 ||
                         property(Properties::kMemTableFlushPending) != 0;
      const bool waits = compacts && property(Properties::kCompactionPending) != 0;
      due = waits && !works && !something_is_queued() ? due + 1 : 0;
      at_rest = works || (waits && due < kDueLooks) ? 0 : at_rest + 1;
      if (at_rest < kRestLooks) std::this_thread::sleep_for(kRestPoll);
    }
    return Status::ok();
  }

  void set_diversion(Diversion diversion) override { policy_->set_diversion(diversion); }

  Status settle(const std::atomic<bool>& stop) override {
    if (Status status = to_status(policy_->roll_back(), "rollback"); !status) return status;
    return Engine::settle(stop);
  }

  Status close() override {
    if (!db_) return Status::ok();
    policy_->stop();
    watch_->detach();
    const rocksdb::Status status = db_->Close();
    db_.reset();
    return to_status(status, "RocksDB cannot close " + directory_);
  }

 private:
  std::uint64_t property(const std::string& name) {
    std::uint64_t value = 0;
    return db_->GetIntProperty(name, &value) ? value : 0;
  }

  // Does a flush or a compaction wait for a thread?
  bool something_is_queued() const {
    rocksdb::Env* const env = db_->GetEnv();
    using rocksdb::Env;
    return env->GetThreadPoolQueueLen(Env::HIGH) != 0 || env->GetThreadPoolQueueLen(Env::LOW) != 0 ||
           env->GetThreadPoolQueueLen(Env::BOTTOM) != 0;
  }

  // After a background error the next flush returns it, because RocksDB refuses the flush for the same reason.
  Status background_error() {
    Status status = flush();
    return status ? Status::io_error("a background job of RocksDB failed; its LOG in " + directory_ + " says why")
                  : status;
  }

  const std::string directory_;
  RocksdbOptions options_;
  std::unique_ptr<rocksdb::Env> env_;
  std::shared_ptr<rocksdb::Statistics> statistics_;
  std::shared_ptr<StallListener> watch_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<rocksdb::DB> db_;
};

Status check_rocksdb(const EngineSpec& spec) {
  if (auto policy = make_policy(spec); !policy) return policy.status();
  auto options = parse_rocksdb_options(spec.options);
  return options ? Status::ok() : options.status();
}

Result<std::unique_ptr<Engine>> open_rocksdb(const EngineSpec& spec) {
  auto options = parse_rocksdb_options(spec.options);
  if (!options) return options.status();
  auto policy = make_policy(spec);
  if (!policy) return policy.status();
  auto engine = std::make_unique<RocksdbEngine>(spec, *options, std::move(*policy));
  if (Status status = engine->open(); !status) return status;
  return std::unique_ptr<Engine>(std::move(engine));
}

StringMap rocksdb_versions() {
  return {{"rocksdb",
           std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR) + "." + std::to_string(ROCKSDB_PATCH)}};
}

bool rocksdb_compresses(const EngineSpec& spec) {
  auto options = parse_rocksdb_options(spec.options);
  return options && options->column_family.compression != rocksdb::kNoCompression;
}

std::string rocksdb_compression(const EngineSpec& spec) {
  auto options = parse_rocksdb_options(spec.options);
  if (!options) return "";
  switch (options->column_family.compression) {
    case rocksdb::kNoCompression:
      return "none";
    case rocksdb::kSnappyCompression:
      return "snappy";
    case rocksdb::kZlibCompression:
      return "zlib";
    case rocksdb::kBZip2Compression:
      return "bzip2";
    case rocksdb::kLZ4Compression:
      return "lz4";
    case rocksdb::kLZ4HCCompression:
      return "lz4hc";
    case rocksdb::kXpressCompression:
      return "xpress";
    case rocksdb::kZSTD:
      return "zstd";
    default:
      return "";  // one that a program brings
  }
}

}  // namespace

std::vector<EngineKind> rocksdb_engines() {
  EngineKind plain{.name = "rocksdb",
                   .check = check_rocksdb,
                   .open = open_rocksdb,
                   .versions = rocksdb_versions,
                   .compresses = rocksdb_compresses,
                   .compression = rocksdb_compression};
  EngineKind accelerated = plain;
  accelerated.name = "spillway";
  accelerated.is_movable = false;  // its binding says where the spill store lies (native/spill/main_db/binding.h)
  return {plain, accelerated};
}

}  // namespace spillway::engine
