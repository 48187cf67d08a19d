#include "engine/wiredtiger/engine.h"

#include <dlfcn.h>
#include <unistd.h>
#include <wiredtiger.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "engine/wiredtiger/checkpoints.h"
#include "engine/wiredtiger/error_messages.h"
#include "engine/wiredtiger/file_system.h"
#include "engine/wiredtiger/options.h"
#include "engine/wiredtiger/sessions.h"
#include "engine/wiredtiger/stalls.h"
#include "engine/wiredtiger/statistics.h"
#include "fs/path_key.h"

namespace spillway::engine {

namespace {

// The file system for a wiredtiger_open() in this thread; see spillway_wiredtiger_file_system().
thread_local WT_FILE_SYSTEM* to_install = nullptr;

}  // namespace

// WiredTiger accepts a file system only from an extension that it loads while it opens. This extension is in the
// engine's own shared object. The name has C linkage, for dlsym.
extern "C" [[gnu::visibility("default")]] int spillway_wiredtiger_file_system(WT_CONNECTION* connection,
                                                                              WT_CONFIG_ARG* /*config*/) {
  return connection->set_file_system(connection, to_install, nullptr);
}

namespace {

constexpr const char* kTable = "table:data";
constexpr const char* kTableFiles = "data";  // prefix of their names

// Most retries of a batch that other writers make WiredTiger roll back. Source: guess.
constexpr int kMostTries = 10'000;
constexpr std::chrono::milliseconds kRestPoll{10};
// Errors that no option can cause.
constexpr std::array kOfTheSystem = {EACCES, EBUSY, EIO, EMFILE, ENFILE, ENOMEM, ENOSPC, EPERM, EROFS};
constexpr int kEmptyKey = -1;  // not an error of WiredTiger (from -31800 down) nor of the system

constexpr const char* kCacheInUse = "cache: bytes currently in the cache";
constexpr const char* kCacheDirty = "cache: tracked dirty bytes in the cache";
constexpr const char* kCacheUpdates = "cache: bytes allocated for updates";
constexpr const char* kCacheMax = "cache: maximum bytes configured";
constexpr const char* kLogWritten = "log: log bytes written";
constexpr const char* kLogYields = "log: slot joins yield time (usecs)";

WT_ITEM item_of(std::string_view text) {
  WT_ITEM item{};
  item.data = text.data();
  item.size = text.size();
  return item;
}
std::string_view text_of(const WT_ITEM& item) { return {static_cast<const char*>(item.data), item.size}; }

class WiredtigerEngine final : public Engine {
 public:
  WiredtigerEngine(const EngineSpec& spec, WiredtigerOptions options)
      : directory_(spec.directory),
        options_(std::move(options)),
        file_system_(make_wiredtiger_file_system(spec.volume, spec.volume == nullptr || spec.host_sync, spec.writes)) {}

  ~WiredtigerEngine() override { (void)close(); }

  Status open() {
    auto config = connection_config();
    if (!config) return config.status();
    to_install = file_system_->wt_file_system();
    const bool is_new = ::access((directory_ + "/WiredTiger").c_str(), F_OK) != 0;
    int error = wiredtiger_open(directory_.c_str(), errors_.handler(), config->c_str(), &connection_);
    if (error == 0) error = make_table();
    if (error == 0) error = statistics_.open(connection_);
    if (error == 0) {
      sessions_ = std::make_unique<Sessions>(connection_, kTable);
      error = checkpoints_.start(connection_,
                                 {.wait_s = options_.checkpoint_wait_s, .log_bytes = options_.checkpoint_log_bytes},
                                 [this] { return statistics_.read({kLogWritten})[0]; });
    }
    return error == 0 ? Status::ok() : not_opened(error, is_new);
  }

  Status put(std::string_view key, std::string_view value) override {
    return change("put", [&](ThreadSession& thread) { return insert(*thread.cursor, key, value); });
  }

  Status remove(std::string_view key) override {
    return change("remove", [&](ThreadSession& thread) { return erase(*thread.cursor, key); });
  }

  Status write(std::span<const engine::Write> writes) override {
    return change("write", [&](ThreadSession& thread) {
      WT_SESSION* const session = thread.session;
      int error = session->begin_transaction(session, nullptr);
      if (error != 0) return error;
      for (const engine::Write& write : writes) {
        error = write.kind == engine::Write::Kind::put ? insert(*thread.cursor, write.key, write.value)
                                                       : erase(*thread.cursor, write.key);
        if (error != 0) break;
      }
      if (error == 0) return session->commit_transaction(session, nullptr);
      (void)session->rollback_transaction(session, nullptr);
      return error;
    });
  }

  Result<bool> get(std::string_view key, std::string* value) override {
    if (key.empty()) return false;
    bool found = false;
    Status status = access("get", [&](ThreadSession& thread) {
      WT_CURSOR* const cursor = thread.cursor;
      WT_ITEM item = item_of(key);
      cursor->set_key(cursor, &item);
      int error = cursor->search(cursor);
      found = error == 0;
      if (found && (error = cursor->get_value(cursor, &item)) == 0 && value != nullptr) value->assign(text_of(item));
      (void)cursor->reset(cursor);  // releases the page
      return error == WT_NOTFOUND ? 0 : error;
    });
    if (!status) return status;
    return found;
  }

  Result<std::uint64_t> scan(std::string_view key, std::uint64_t nexts, Direction direction, Pairs* pairs) override {
    std::uint64_t seen = 0;
    const std::size_t pairs_before = pairs != nullptr ? pairs->size() : 0;
    Status status = access("scan", [&](ThreadSession& thread) {
      if (pairs != nullptr) pairs->resize(pairs_before);  // for another try
      WT_SESSION* const session = thread.session;
      int error = session->begin_transaction(session, "isolation=snapshot");
      if (error != 0) return error;
      error = walk(*thread.cursor, key, nexts, direction, pairs, seen);
      (void)thread.cursor->reset(thread.cursor);
      (void)session->rollback_transaction(session, nullptr);  // it has only read
      return error;
    });
    if (!status) return status;
    return seen;
  }

  std::span<const char* const> stall_causes() const override { return WiredtigerCause::names; }

  Observation observe() override {
    Observation seen;
    if (connection_ == nullptr) return seen;
    const CacheLevels levels = read_levels();
    const StallCause cause = report_stalled_writers(levels);
    if (cause != WiredtigerCause::none) {
      seen.stall_state = StallState::stopped;
      seen.stall_cause = cause;
    }
    seen.gauges = {{"cache_bytes_inuse", static_cast<std::uint64_t>(levels.inuse_bytes)},
                   {"cache_bytes_dirty", static_cast<std::uint64_t>(levels.dirty_bytes)},
                   {"cache_bytes_updates", static_cast<std::uint64_t>(levels.updates_bytes)},
                   {"cache_bytes_max", static_cast<std::uint64_t>(levels.max_bytes)},
                   {"running_checkpoints", checkpoints_.running() ? 1U : 0U},
                   {"live_bytes", table_bytes()}};
    return seen;
  }

  std::vector<Stall> stalls() override {
    if (connection_ != nullptr) (void)report_stalled_writers(read_levels());
    return held_.stalls();
  }

  std::map<std::string, std::uint64_t> statistics() override { return statistics_.all(); }

  std::vector<Event> take_events() override { return checkpoints_.take_events(); }

  Status flush() override {
    int error = 0;
    ThreadSession* const thread = sessions_->of_this_thread(&error);
    if (thread != nullptr) error = checkpoints_.run(thread->session);
    return ended(error, "checkpoint");
  }

  // A B+tree that reuses its free blocks has no compaction. This waits for a running checkpoint.
  Status wait_for_compaction(const std::atomic<bool>& stop) override {
    while (checkpoints_.running() && !stop) std::this_thread::sleep_for(kRestPoll);
    return ended(checkpoints_.last_error(), "checkpoint");
  }

  Status close() override {
    if (connection_ == nullptr) return Status::ok();
    checkpoints_.stop();
    const CheckpointThread last_one;  // closing makes a last checkpoint
    if (sessions_) sessions_->close();
    statistics_.close();
    WT_CONNECTION* const connection = std::exchange(connection_, nullptr);
    const int error = connection->close(connection, nullptr);
    return ended(error, "WiredTiger cannot close " + directory_);
  }

 private:
  Result<std::string> connection_config() const {
    Dl_info self{};
    if (::dladdr(reinterpret_cast<const void*>(&spillway_wiredtiger_file_system), &self) == 0) {
      return Status::io_error("WiredTiger cannot open " + directory_ + ": the engine's own file is not to be found");
    }
    std::string extensions =
        "\"" + std::string(self.dli_fname) + "\"=(early_load=true,entry=spillway_wiredtiger_file_system)";
    if (!options_.extensions.empty()) extensions += "," + options_.extensions;
    std::string config = "create,config_base=false,use_environment=false";
    if (!options_.connection.empty()) config += "," + options_.connection;
    return config + ",extensions=[" + extensions + "]";
  }

  int make_table() {
    WT_SESSION* session = nullptr;
    if (const int error = connection_->open_session(connection_, nullptr, nullptr, &session); error != 0) return error;
    std::string config = "key_format=u,value_format=u";
    if (!options_.table.empty()) config += "," + options_.table;
    const int error = session->create(session, kTable, config.c_str());
    (void)session->close(session, nullptr);
    return error;
  }

  // REQUIRES: the key is not empty. WiredTiger accepts no empty keys, so none can be found or removed.
  static int insert(WT_CURSOR& cursor, std::string_view key, std::string_view value) {
    if (key.empty()) return kEmptyKey;
    WT_ITEM key_item = item_of(key);
    WT_ITEM value_item = item_of(value);
    cursor.set_key(&cursor, &key_item);
    cursor.set_value(&cursor, &value_item);
    return cursor.insert(&cursor);
  }

  static int erase(WT_CURSOR& cursor, std::string_view key) {
    if (key.empty()) return 0;
    WT_ITEM item = item_of(key);
    cursor.set_key(&cursor, &item);
    const int error = cursor.remove(&cursor);
    (void)cursor.reset(&cursor);  // a removal leaves it positioned on the key
    return error == WT_NOTFOUND ? 0 : error;
  }

  static int walk(WT_CURSOR& cursor, std::string_view key, std::uint64_t nexts, Direction direction, Pairs* pairs,
                  std::uint64_t& seen) {
    const bool forward = direction == Direction::forward;
    const auto step = [&] { return forward ? cursor.next(&cursor) : cursor.prev(&cursor); };
    seen = 0;
    int error = 0;
    if (key.empty()) {
      error = forward ? step() : WT_NOTFOUND;  // an empty key sorts before all others
    } else {
      WT_ITEM item = item_of(key);
      int side = 0;
      cursor.set_key(&cursor, &item);
      error = cursor.search_near(&cursor, &side);
      if (error == 0 && (forward ? side < 0 : side > 0)) error = step();
    }
    while (error == 0) {
      WT_ITEM found_key{};
      WT_ITEM found_value{};
      if ((error = cursor.get_key(&cursor, &found_key)) != 0) break;
      if ((error = cursor.get_value(&cursor, &found_value)) != 0) break;
      ++seen;
      if (pairs != nullptr) pairs->emplace_back(text_of(found_key), text_of(found_value));
      if (seen > nexts) break;
      error = step();
    }
    return error == WT_NOTFOUND ? 0 : error;
  }

  // One operation of this thread. Retried if WiredTiger rolled it back because of a conflict.
  template <typename Operation>
  Status access(const char* what, const Operation& operation) {
    int error = 0;
    ThreadSession* const thread = sessions_->of_this_thread(&error);
    if (thread == nullptr) return ended(error, what);
    const std::int64_t begin_ns = steady_now_ns();
    error = try_often(*thread, operation);
    if (steady_now_ns() - begin_ns >= kMinStallNs) thread->cache_wait_us = cache_wait_us_of(thread->session);
    return ended(error, what);
  }

  // The same for a write, which may be stalled.
  template <typename Operation>
  Status change(const char* what, const Operation& operation) {
    int error = 0;
    ThreadSession* const thread = sessions_->of_this_thread(&error);
    if (thread == nullptr) return ended(error, what);
    const std::int64_t begin_ns = steady_now_ns();
    thread->writes_since.store(begin_ns, std::memory_order_relaxed);
    error = try_often(*thread, operation);
    thread->writes_since.store(0, std::memory_order_relaxed);
    const std::int64_t end_ns = steady_now_ns();
    if (end_ns - begin_ns >= kMinStallNs) explain(*thread, begin_ns, end_ns);
    return ended(error, what);
  }

  template <typename Operation>
  static int try_often(ThreadSession& thread, const Operation& operation) {
    int error = WT_ROLLBACK;
    for (int tries = 0; tries < kMostTries && error == WT_ROLLBACK; ++tries) error = operation(thread);
    return error;
  }

  // --- Stalls: see stalls.h for the rules

  CacheLevels read_levels() {
    const auto values = statistics_.read({kCacheInUse, kCacheDirty, kCacheUpdates, kCacheMax});
    return {.inuse_bytes = static_cast<double>(values[0]),
            .dirty_bytes = static_cast<double>(values[1]),
            .updates_bytes = static_cast<double>(values[2]),
            .max_bytes = static_cast<double>(values[3])};
  }

  StallCause cause_now(const CacheLevels& levels, std::int64_t since_ns) const {
    const bool checkpoint = checkpoints_.running() || checkpoints_.last_end_ns() >= since_ns;
    return checkpoint ? WiredtigerCause::checkpoint : pressure_of(levels, options_).cause;
  }

  void explain(ThreadSession& thread, std::int64_t begin_ns, std::int64_t end_ns) {
    const std::uint64_t wait_us = cache_wait_us_of(thread.session);
    const auto waited_ns = static_cast<std::int64_t>(wait_us - std::exchange(thread.cache_wait_us, wait_us)) * 1000;
    const std::int64_t yielded_ns = newly_yielded_ns();
    if (waited_ns >= kMinStallNs) {
      held_.report(begin_ns, std::min(end_ns, begin_ns + waited_ns), cause_now(read_levels(), begin_ns));
    } else if (yielded_ns >= kMinStallNs) {
      held_.report(begin_ns, std::min(end_ns, begin_ns + yielded_ns), WiredtigerCause::log);
    }
  }

  // The time that all writers together have waited for the log since the last call.
  std::int64_t newly_yielded_ns() {
    const std::uint64_t now_us = statistics_.read({kLogYields})[0];
    const std::uint64_t before_us = log_yields_us_.exchange(now_us);
    return now_us > before_us ? static_cast<std::int64_t>(now_us - before_us) * 1000 : 0;
  }

  // Reports writers that are stalled now, and the cause; none if there are none.
  StallCause report_stalled_writers(const CacheLevels& levels) {
    (void)newly_yielded_ns();
    if (pressure_of(levels, options_).of_trigger < 1) return WiredtigerCause::none;
    const std::int64_t now_ns = steady_now_ns();
    std::int64_t since_ns = now_ns;
    sessions_->each([&](const ThreadSession& thread) {
      const std::int64_t since = thread.writes_since.load(std::memory_order_relaxed);
      if (since != 0) since_ns = std::min(since_ns, since);
    });
    if (now_ns - since_ns < kMinStallNs) return WiredtigerCause::none;
    const StallCause cause = cause_now(levels, since_ns);
    held_.report(since_ns, now_ns, cause);
    return cause;
  }

  // --- Errors

  // A failed open is reported as an error of the options, unless the drive or the system has failed.
  Status not_opened(int error, bool is_new) const {
    const std::string complaint = errors_.first();
    const Status drive = file_system_->failure();
    const bool of_system = std::find(kOfTheSystem.begin(), kOfTheSystem.end(), error) != kOfTheSystem.end();
    const bool with_direct_io = error == WT_PANIC && options_.connection.find("direct_io=") != std::string::npos;
    const bool of_options = error == EINVAL || with_direct_io || (is_new && !of_system && error != WT_PANIC);
    if (!drive || !of_options) return ended(error, "WiredTiger cannot open " + directory_);
    const bool of_extension = !options_.extensions.empty() && complaint.find("dlopen") != std::string::npos;
    const std::string key = with_direct_io ? ".direct_io" : of_extension ? ".extensions" : "";
    return Status::bad_input("engine.options" + key + ": WiredTiger cannot open a database with " +
                             (key.empty() ? "them" : "it") + " (" +
                             (complaint.empty() ? wiredtiger_strerror(error) : complaint) + ")");
  }

  // The status of an operation for which WiredTiger returned `error`. After a failure of the drive no operation
  // succeeds.
  Status ended(int error, std::string_view what) const {
    Status drive = file_system_->failure();
    if (!drive) return Status::error(drive.fault(), std::string(what) + ": " + drive.message());
    return error == 0 ? Status::ok() : refusal(error, std::string(what));
  }

  Status refusal(int error, const std::string& what) const {
    if (error == kEmptyKey) return Status::bad_input(what + ": WiredTiger takes no empty key");
    const std::string why = wiredtiger_strerror(error);
    if (error == ENOSPC) return Status::error(Fault::drive_full, what + ": " + why);
    if (error != WT_PANIC) return Status::io_error(what + ": " + why);
    return Status::io_error(what + ": WiredTiger has stopped after an error (" + errors_.first() +
                            "); open the database again, which recovers it from its log");
  }

  // Bytes of the table's file, or of its chunks if its type is "lsm". A chunk that is deleted meanwhile counts as 0.
  std::uint64_t table_bytes() const {
    std::uint64_t sum = 0;
    std::error_code failure;
    std::filesystem::directory_iterator entry(directory_, failure);
    for (; !failure && entry != std::filesystem::directory_iterator(); entry.increment(failure)) {
      const std::string path = entry->path().string();
      const bool is_tables = fs::base_name(path).starts_with(kTableFiles);
      if (!is_tables || wiredtiger_cause(path, /*by_checkpoint=*/false) != device::Cause::flush) continue;
      std::error_code gone;
      const std::uint64_t bytes = entry->file_size(gone);
      if (!gone) sum += bytes;
    }
    return sum;
  }

  const std::string directory_;
  const WiredtigerOptions options_;
  ErrorMessages errors_;
  std::unique_ptr<WiredtigerFileSystem> file_system_;
  WT_CONNECTION* connection_ = nullptr;
  ConnectionStatistics statistics_;
  std::unique_ptr<Sessions> sessions_;
  Checkpoints checkpoints_;
  StalledWriters held_;
  std::atomic<std::uint64_t> log_yields_us_ = 0;
};

Status check_wiredtiger(const EngineSpec& spec) {
  if (!spec.settings.empty()) {
    return Status::bad_input("engine." + spec.settings.begin()->first + ": wiredtiger has no such setting; remove it");
  }
  auto options = parse_wiredtiger_options(spec.options);
  return options ? Status::ok() : options.status();
}

Result<std::unique_ptr<Engine>> open_wiredtiger(const EngineSpec& spec) {
  auto options = parse_wiredtiger_options(spec.options);
  if (!options) return options.status();
  auto engine = std::make_unique<WiredtigerEngine>(spec, *options);
  if (Status status = engine->open(); !status) return status;
  return std::unique_ptr<Engine>(std::move(engine));
}

bool wiredtiger_compresses(const EngineSpec& spec) {
  auto options = parse_wiredtiger_options(spec.options);
  return options && options->compresses;
}

}  // namespace

EngineKind wiredtiger_engine() {
  return {.name = "wiredtiger",
          .database_file = "WiredTiger",
          .check = check_wiredtiger,
          .open = open_wiredtiger,
          .versions =
              [] {
                return StringMap{{"wiredtiger", wiredtiger_version_text()}};
              },
          .compresses = wiredtiger_compresses};
}

}  // namespace spillway::engine
