#include "engine/leveldb/env.h"

#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "fs/path_key.h"

namespace spillway::engine {

using fs::Access;
using fs::Cause;
using fs::path_key;
using leveldb::Slice;

namespace {

// Set in the background thread while it does LevelDB's work.
thread_local bool in_background = false;

bool is_table(const std::string& path) { return path.ends_with(".ldb") || path.ends_with(".sst"); }
bool is_log(const std::string& path) { return path.ends_with(".log"); }

// What holds data of the database; LOG and LOCK do not.
bool holds_data(const std::string& path) {
  const std::string name = fs::base_name(path);
  return is_table(name) || is_log(name) || name.starts_with("MANIFEST") || name == "CURRENT" ||
         name.ends_with(".dbtmp");
}

std::uint64_t number_of(const std::string& path) {
  const std::string name = fs::base_name(path);
  std::uint64_t number = 0;
  std::from_chars(name.data(), name.data() + name.size(), number);
  return number;
}

// Where appends are counted, and under which cause; null: not counted.
struct Counted {
  fs::WriteCounts* by = nullptr;
  Cause cause = Cause::other;
};

class WritableFile final : public leveldb::WritableFile {
 public:
  WritableFile(LevelDbEnv& env, std::string path, std::unique_ptr<leveldb::WritableFile> host,
               std::unique_ptr<fs::File> file, Counted counted, std::uint64_t offset, bool host_sync)
      : env_(env),
        path_(std::move(path)),
        host_(std::move(host)),
        file_(std::move(file)),
        counted_(counted),
        offset_(offset),
        host_sync_(host_sync) {}
  ~WritableFile() override { (void)WritableFile::Close(); }

  // The drive comes first: where it has no space, the host's file is not to grow either.
  leveldb::Status Append(const Slice& data) override {
    if (file_) {
      if (Status status = file_->write(offset_, data.size(), Access::buffered); !status)
        return env_.to_leveldb_status(status, path_);
    }
    offset_ += data.size();
    if (is_table(path_)) env_.add_table_bytes(static_cast<std::int64_t>(data.size()));
    const leveldb::Status status = host_->Append(data);
    if (status.ok() && counted_.by != nullptr) counted_.by->add(counted_.cause, data.size());
    return status;
  }
  leveldb::Status Flush() override { return host_->Flush(); }
  leveldb::Status Sync() override {
    leveldb::Status status = host_sync_ ? host_->Sync() : host_->Flush();
    if (status.ok() && file_) status = env_.to_leveldb_status(file_->sync(), path_);
    return status;
  }
  leveldb::Status Close() override {
    if (closed_) return leveldb::Status::OK();
    closed_ = true;
    leveldb::Status status = host_->Close();
    if (file_) {
      const leveldb::Status drive = env_.to_leveldb_status(file_->close(), path_);
      if (status.ok()) status = drive;
    }
    return status;
  }

 private:
  LevelDbEnv& env_;
  const std::string path_;
  const std::unique_ptr<leveldb::WritableFile> host_;
  const std::unique_ptr<fs::File> file_;  // null: no drive
  const Counted counted_;
  std::uint64_t offset_;
  const bool host_sync_;
  bool closed_ = false;
};

class RandomAccessFile final : public leveldb::RandomAccessFile {
 public:
  RandomAccessFile(LevelDbEnv& env, std::string path, std::unique_ptr<leveldb::RandomAccessFile> host,
                   std::unique_ptr<fs::File> file)
      : env_(env), path_(std::move(path)), host_(std::move(host)), file_(std::move(file)) {}

  leveldb::Status Read(std::uint64_t offset, std::size_t count, Slice* result, char* scratch) const override {
    const leveldb::Status status = host_->Read(offset, count, result, scratch);
    if (!status.ok()) return status;
    const Cause cause = in_background ? Cause::compaction : Cause::user;
    return env_.to_leveldb_status(file_->read({{offset, result->size()}}, Access::buffered, cause), path_);
  }

 private:
  LevelDbEnv& env_;
  const std::string path_;
  const std::unique_ptr<leveldb::RandomAccessFile> host_;
  const std::unique_ptr<fs::File> file_;
};

class SequentialFile final : public leveldb::SequentialFile {
 public:
  SequentialFile(LevelDbEnv& env, std::string path, std::unique_ptr<leveldb::SequentialFile> host,
                 std::unique_ptr<fs::File> file, Cause cause)
      : env_(env), path_(std::move(path)), host_(std::move(host)), file_(std::move(file)), cause_(cause) {}

  leveldb::Status Read(std::size_t count, Slice* result, char* scratch) override {
    const leveldb::Status status = host_->Read(count, result, scratch);
    if (!status.ok()) return status;
    const std::uint64_t offset = std::exchange(offset_, offset_ + result->size());
    return env_.to_leveldb_status(file_->read({{offset, result->size()}}, Access::buffered, cause_), path_);
  }
  leveldb::Status Skip(std::uint64_t count) override {
    offset_ += count;
    return host_->Skip(count);
  }

 private:
  LevelDbEnv& env_;
  const std::string path_;
  const std::unique_ptr<leveldb::SequentialFile> host_;
  const std::unique_ptr<fs::File> file_;
  const Cause cause_;
  std::uint64_t offset_ = 0;
};

struct Task {
  void (*function)(void*);
  void* argument;
  // May outlive the env: LevelDB is closed as soon as the function is done, while its thread is on its way back here.
  std::shared_ptr<std::atomic<int>> scheduled;

  static void run(void* given) {
    const std::unique_ptr<Task> task(static_cast<Task*>(given));
    in_background = true;
    task->function(task->argument);
    in_background = false;
    // LevelDB schedules what follows before it returns: at 0 nothing is left to do.
    --*task->scheduled;
  }
};

}  // namespace

LevelDbEnv::LevelDbEnv(const LevelDbInfoLog& log, LevelDbEnvOptions options)
    : EnvWrapper(leveldb::Env::Default()), log_(log), options_(std::move(options)) {}

LevelDbEnv::~LevelDbEnv() = default;

leveldb::Status LevelDbEnv::to_leveldb_status(const Status& status, const std::string& path) {
  if (status) return leveldb::Status::OK();
  if (status.fault() == Fault::drive_full) drive_full_ = true;
  return leveldb::Status::IOError(path, status.message());
}

Cause LevelDbEnv::cause_of(const std::string& path) const {
  const std::string name = fs::base_name(path);
  if (is_log(name)) return Cause::wal;
  if (is_table(name)) return log_.is_flush(number_of(name)) ? Cause::flush : Cause::compaction;
  return name.starts_with("MANIFEST") || name == "CURRENT" || name.ends_with(".dbtmp") ? Cause::manifest : Cause::other;
}

std::uint64_t LevelDbEnv::host_size(const std::string& path) {
  std::uint64_t bytes = 0;
  return target()->GetFileSize(path, &bytes).ok() ? bytes : 0;
}

leveldb::Status LevelDbEnv::NewSequentialFile(const std::string& path, leveldb::SequentialFile** result) {
  const leveldb::Status status = target()->NewSequentialFile(path, result);
  if (!status.ok() || options_.volume == nullptr || !holds_data(path)) return status;
  std::unique_ptr<leveldb::SequentialFile> host(std::exchange(*result, nullptr));
  const Cause cause = is_table(path) ? Cause::compaction : cause_of(path);
  auto file = options_.volume->open(path_key(path), host_size(path), cause, /*writer=*/false);
  if (!file) return to_leveldb_status(file.status(), path);
  *result = new SequentialFile(*this, path, std::move(host), std::move(*file), cause);  // NOLINT: LevelDB's to own
  return leveldb::Status::OK();
}

leveldb::Status LevelDbEnv::NewRandomAccessFile(const std::string& path, leveldb::RandomAccessFile** result) {
  const leveldb::Status status = target()->NewRandomAccessFile(path, result);
  if (!status.ok() || options_.volume == nullptr) return status;
  std::unique_ptr<leveldb::RandomAccessFile> host(std::exchange(*result, nullptr));
  auto file = options_.volume->open(path_key(path), host_size(path), Cause::compaction, /*writer=*/false);
  if (!file) return to_leveldb_status(file.status(), path);
  *result = new RandomAccessFile(*this, path, std::move(host), std::move(*file));  // NOLINT: LevelDB's to own
  return leveldb::Status::OK();
}

leveldb::Status LevelDbEnv::wrap_writer(const std::string& path, leveldb::WritableFile* made, std::uint64_t offset,
                                        leveldb::WritableFile** result) {
  std::unique_ptr<leveldb::WritableFile> host(made);
  std::unique_ptr<fs::File> file;
  if (options_.volume != nullptr && holds_data(path)) {
    auto opened = offset > 0 ? options_.volume->open(path_key(path), offset, cause_of(path), /*writer=*/true)
                             : options_.volume->create(path_key(path), cause_of(path));
    if (!opened) return to_leveldb_status(opened.status(), path);
    file = std::move(*opened);
  }
  const bool host_sync = options_.host_sync || options_.volume == nullptr;
  const Counted counted = {holds_data(path) ? options_.writes : nullptr, cause_of(path)};
  *result = new WritableFile(*this, path, std::move(host), std::move(file), counted, offset,  // NOLINT: as above
                             host_sync);
  return leveldb::Status::OK();
}

leveldb::Status LevelDbEnv::NewWritableFile(const std::string& path, leveldb::WritableFile** result) {
  if (is_log(path) && !in_background && options_.on_new_log) options_.on_new_log();
  leveldb::WritableFile* host = nullptr;
  const leveldb::Status status = target()->NewWritableFile(path, &host);
  return status.ok() ? wrap_writer(path, host, 0, result) : status;
}

leveldb::Status LevelDbEnv::NewAppendableFile(const std::string& path, leveldb::WritableFile** result) {
  const std::uint64_t offset = host_size(path);
  leveldb::WritableFile* host = nullptr;
  const leveldb::Status status = target()->NewAppendableFile(path, &host);
  return status.ok() ? wrap_writer(path, host, offset, result) : status;
}

// LevelDB lists its directory when it opens a database: the moment to learn what lies there already.
leveldb::Status LevelDbEnv::GetChildren(const std::string& directory, std::vector<std::string>* names) {
  leveldb::Status status = target()->GetChildren(directory, names);
  if (!status.ok() || options_.volume == nullptr) return status;
  for (const std::string& name : *names) {
    const std::string path = directory + "/" + name;
    const std::string key = path_key(path);
    if (!holds_data(name) || options_.volume->knows(key)) continue;
    if (Status known = options_.volume->adopt(key, host_size(path), cause_of(path)); !known)
      return to_leveldb_status(known, path);
  }
  return status;
}

leveldb::Status LevelDbEnv::RemoveFile(const std::string& path) {
  const std::uint64_t bytes = is_table(path) ? host_size(path) : 0;
  leveldb::Status status = target()->RemoveFile(path);
  if (!status.ok()) return status;
  add_table_bytes(-static_cast<std::int64_t>(bytes));
  return options_.volume == nullptr ? status : to_leveldb_status(options_.volume->remove(path_key(path)), path);
}

leveldb::Status LevelDbEnv::RenameFile(const std::string& from, const std::string& to) {
  leveldb::Status status = target()->RenameFile(from, to);
  if (!status.ok() || options_.volume == nullptr || !holds_data(to)) return status;
  return to_leveldb_status(options_.volume->rename(path_key(from), path_key(to)), to);
}

void LevelDbEnv::Schedule(void (*function)(void*), void* argument) {
  ++*scheduled_;
  target()->Schedule(&Task::run, new Task{function, argument, scheduled_});  // NOLINT: Task::run's to own
}

void LevelDbEnv::SleepForMicroseconds(int micros) {
  const bool delays_a_writer = !in_background && options_.on_delay_begin;
  if (delays_a_writer) options_.on_delay_begin();
  target()->SleepForMicroseconds(micros);
  if (delays_a_writer) options_.on_delay_end();
}

}  // namespace spillway::engine
