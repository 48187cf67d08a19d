#include "engine/leveldb/store.h"

#include <leveldb/write_batch.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

namespace spillway::engine {

namespace {

// LevelDB puts a write off for a millisecond (db/db_impl.cc, MakeRoomForWrite); writes that follow at once are put off
// again, and are one stall. A write that is stopped waits once, to its end: each such wait is a stall of its own, even
// where a small memtable fills again within a millisecond.
constexpr std::int64_t kDelayNs = 1'000'000;
// Between two looks at whether the background thread has come to rest, as in db_bench.
constexpr std::chrono::milliseconds kRestPoll{10};
constexpr int kLevels = 7;  // db/dbformat.h: kNumLevels

// Whether this thread's write is held back at the moment: what begins in the info log ends elsewhere.
thread_local bool held_back = false;

}  // namespace

LevelDbStore::LevelDbStore(const EngineSpec& spec, LevelDbOptions options)
    : directory_(spec.directory),
      options_(std::move(options)),
      stalls_({.delayed_ns = kDelayNs}),
      log_([this](LevelDbInfoLog::Wait wait) {
        begin_stall(StallState::stopped, wait == LevelDbInfoLog::Wait::l0 ? LevelDbCause::l0 : LevelDbCause::memtable);
      }) {
  LevelDbEnvOptions env;
  env.volume = spec.volume;
  env.host_sync = spec.host_sync;
  env.writes = spec.writes;
  env.on_delay_begin = [this] { begin_stall(StallState::delayed, LevelDbCause::l0); };
  env.on_delay_end = [this] { end_stall(); };
  env.on_new_log = [this] { end_stall(); };
  env_ = std::make_unique<LevelDbEnv>(log_, std::move(env));
  options_.db.env = env_.get();
  options_.db.info_log = &log_;
}

void LevelDbStore::wrap_env(const WrapEnv& wrap) {
  outer_ = wrap(*env_, log_);
  options_.db.env = outer_.get();
}

void LevelDbStore::begin_stall(StallState state, StallCause cause) {
  end_stall();  // one wait follows another: the cause may have changed
  held_back = true;
  stalls_.begin(state, cause);
}

void LevelDbStore::end_stall() {
  if (!std::exchange(held_back, false)) return;
  stalls_.end();
}

Status LevelDbStore::open() {
  leveldb::Logger* text = nullptr;
  if (leveldb::Env::Default()->NewLogger(directory_ + "/LOG", &text).ok()) {
    log_.forward_to(std::unique_ptr<leveldb::Logger>(text));
  }
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, ignored)) {
    if (entry.path().extension() == ".ldb") env_->add_table_bytes(static_cast<std::int64_t>(entry.file_size(ignored)));
  }
  leveldb::DB* db = nullptr;
  const leveldb::Status status = leveldb::DB::Open(options_.db, directory_, &db);
  db_.reset(db);
  return to_status(status, "LevelDB cannot open " + directory_);
}

void LevelDbStore::close() { db_.reset(); }

Status LevelDbStore::to_status(const leveldb::Status& status, const std::string& what) const {
  if (status.ok()) return Status::ok();
  const std::string message = what + ": " + status.ToString();
  // LevelDB's own environment says no more of an error than the system's words for it.
  const bool is_full = env_->drive_full() || message.ends_with(std::generic_category().message(ENOSPC));
  if (status.IsIOError() && is_full) return Status::error(Fault::drive_full, message);
  if (status.IsInvalidArgument()) return Status::bad_input(message);
  if (status.IsNotSupportedError()) return Status::error(Fault::not_supported, message);
  return Status::io_error(message);
}

Status LevelDbStore::write(leveldb::WriteBatch* batch) {
  const leveldb::Status status = db_->Write(options_.write, batch);
  end_stall();
  return status.ok() ? Status() : to_status(status, "write");
}

// A write of nothing has LevelDB begin a new memtable (db/db_impl.cc, Write); a second one waits until the first one's
// memtable is flushed.
Status LevelDbStore::flush() {
  for (int i = 0; i < 2; ++i) {
    if (Status status = write(nullptr); !status) return status;
  }
  return Status::ok();
}

Status LevelDbStore::wait_for_compaction(const std::atomic<bool>& stop) {
  while (env_->busy() && !stop) std::this_thread::sleep_for(kRestPoll);
  // The next write returns an error of the background thread.
  leveldb::WriteBatch nothing;
  return write(&nothing);
}

std::uint64_t LevelDbStore::number_property(const std::string& name) {
  std::string value;
  return db_->GetProperty("leveldb." + name, &value) ? std::strtoull(value.c_str(), nullptr, 10) : 0;
}

void LevelDbStore::observe(Observation& seen) {
  seen.stall_state = stalls_.state();
  seen.stall_cause = stalls_.cause();
  seen.gauges = {{"l0_files", number_property("num-files-at-level0")},
                 {"memory_bytes", number_property("approximate-memory-usage")},
                 {"running_compactions", log_.compacting() ? 1U : 0U},
                 {"live_bytes", env_->table_bytes()},
                 {"write_buffer_bytes", options_.db.write_buffer_size}};
}

void LevelDbStore::add_statistics(std::map<std::string, std::uint64_t>& figures) {
  figures["leveldb.flushes"] = log_.flushes();
  figures["leveldb.compactions"] = log_.compactions();
  figures["leveldb.moved_tables"] = log_.moves();
  figures["leveldb.table_bytes"] = env_->table_bytes();
  for (int level = 0; level < kLevels; ++level) {
    const std::string name = "num-files-at-level" + std::to_string(level);
    figures["leveldb." + name] = number_property(name);
  }
}

StringMap leveldb_versions() {
  return {{"leveldb", std::to_string(leveldb::kMajorVersion) + "." + std::to_string(leveldb::kMinorVersion)}};
}

}  // namespace spillway::engine
