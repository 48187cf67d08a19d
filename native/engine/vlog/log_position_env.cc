#include "engine/vlog/log_position_env.h"

#include <charconv>
#include <utility>

#include "base/steps.h"
#include "fs/path_key.h"
#include "spill/store/checksum.h"

namespace spillway::engine::vlog {

using leveldb::Slice;

namespace {

constexpr std::string_view kPositionMagic = "SPWVLOGP";

std::string format_log(Position position) {
  std::string text = std::string(kPositionMagic) + format_position(position);
  return text + spill::checksum_of({rocksdb::Slice(text)});
}

std::optional<Position> parse_log(const std::string& text) {
  const std::size_t body = kPositionMagic.size() + kPositionBytes;
  if (text.size() < body || text != format_log(parse_position(std::string_view(text).substr(kPositionMagic.size())))) {
    return std::nullopt;
  }
  return parse_position(std::string_view(text).substr(kPositionMagic.size()));
}

bool is_log_name(const std::string& path) { return path.ends_with(".log"); }
bool is_table_name(const std::string& path) { return path.ends_with(".ldb"); }

class EmptyFile final : public leveldb::SequentialFile {
 public:
  leveldb::Status Read(std::size_t, Slice* result, char*) override {
    *result = Slice();
    return leveldb::Status::OK();
  }
  leveldb::Status Skip(std::uint64_t) override { return leveldb::Status::OK(); }
};

// A file that runs a function before each sync.
class SyncedAfter final : public leveldb::WritableFile {
 public:
  SyncedAfter(std::unique_ptr<leveldb::WritableFile> file, std::function<leveldb::Status()> before)
      : file_(std::move(file)), before_(std::move(before)) {}
  leveldb::Status Append(const Slice& data) override { return file_->Append(data); }
  leveldb::Status Close() override { return file_->Close(); }
  leveldb::Status Flush() override { return file_->Flush(); }
  leveldb::Status Sync() override {
    const leveldb::Status status = before_();
    return status.ok() ? file_->Sync() : status;
  }

 private:
  const std::unique_ptr<leveldb::WritableFile> file_;
  const std::function<leveldb::Status()> before_;
};

}  // namespace

// A log's file, shared by LevelDB, which appends to it, and by the thread that syncs it.
struct LogPositionEnv::PositionLog {
  std::mutex mutex;
  std::unique_ptr<leveldb::WritableFile> file;  // null: synced or closed; guarded by mutex

  leveldb::Status sync() {
    const std::lock_guard lock(mutex);
    if (!file) return leveldb::Status::OK();
    leveldb::Status status = file->Sync();
    if (status.ok()) status = file->Close();
    if (status.ok()) file.reset();
    return status;
  }

  // LevelDB's handle of it. Drops whatever is appended, because the value log has it already.
  class Dropped final : public leveldb::WritableFile {
   public:
    leveldb::Status Append(const Slice&) override { return leveldb::Status::OK(); }
    leveldb::Status Close() override { return leveldb::Status::OK(); }
    leveldb::Status Flush() override { return leveldb::Status::OK(); }
    leveldb::Status Sync() override { return leveldb::Status::OK(); }
  };
};

LogPositionEnv::LogPositionEnv(leveldb::Env* target, const LevelDbInfoLog& log, LogPositionHooks hooks)
    : EnvWrapper(target), log_(log), hooks_(std::move(hooks)) {}

LogPositionEnv::~LogPositionEnv() = default;

leveldb::Status LogPositionEnv::NewSequentialFile(const std::string& path, leveldb::SequentialFile** result) {
  if (!is_log_name(path)) return target()->NewSequentialFile(path, result);
  std::string text;
  const leveldb::Status status = leveldb::ReadFileToString(target(), path, &text);
  if (!status.ok()) return status;
  if (!std::exchange(read_a_log_, true)) first_ = parse_log(text);
  *result = new EmptyFile;  // owned by LevelDB
  return status;
}

leveldb::Status LogPositionEnv::NewWritableFile(const std::string& path, leveldb::WritableFile** result) {
  leveldb::WritableFile* made = nullptr;
  leveldb::Status status = target()->NewWritableFile(path, &made);
  if (!status.ok()) return status;
  std::unique_ptr<leveldb::WritableFile> file(made);
  if (is_log_name(path)) {
    auto begin = hooks_.begin();
    if (!begin) return leveldb::Status::Corruption(path, begin.status().message());
    steps::reached("vlog.log.made");
    status = file->Append(format_log(*begin));
    if (status.ok()) status = file->Flush();
    if (!status.ok()) return status;
    auto log = std::make_shared<PositionLog>();
    log->file = std::move(file);
    {
      const std::lock_guard lock(mutex_);
      newest_ = std::move(log);
    }
    hooks_.on_new_log(*begin);
    *result = new PositionLog::Dropped;  // NOLINT: as above
    return status;
  }
  const std::string name = fs::base_name(path);
  std::uint64_t number = 0;
  std::from_chars(name.data(), name.data() + name.size(), number);
  if (is_table_name(name) && log_.is_flush(number)) {
    *result = new SyncedAfter(std::move(file), [this] { return before_flush_sync(); });  // NOLINT: as above
  } else if (name.starts_with("MANIFEST")) {
    *result = new SyncedAfter(std::move(file), [this] { return sync_newest_log(); });  // NOLINT: as above
  } else {
    *result = file.release();
  }
  return status;
}

bool LogPositionEnv::holds_position(const std::string& path) {
  std::string text;
  return leveldb::ReadFileToString(leveldb::Env::Default(), path, &text).ok() && parse_log(text).has_value();
}

leveldb::Status LogPositionEnv::sync_newest_log() {
  std::shared_ptr<PositionLog> newest;
  {
    const std::lock_guard lock(mutex_);
    newest = newest_;
  }
  return newest ? newest->sync() : leveldb::Status::OK();
}

}  // namespace spillway::engine::vlog
