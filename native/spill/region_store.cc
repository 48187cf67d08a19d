#include "spill/region_store.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "base/steps.h"
#include "spill/log_frame.h"
#include "spill/region_reads.h"

namespace spillway::spill {

using rocksdb::FileOptions;
using rocksdb::FileSystem;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr char kLive[] = ".spill";
constexpr char kDropped[] = ".dropped";
constexpr char kCopy[] = ".copy";

// What the file system is asked to set aside at a time, beyond the end of the file, so that the file's size stays what
// was written. Source: guess, so much that a log of the default size has few extents.
constexpr std::size_t kPreallocateBytes = 4 << 20;

// A buffer that grew beyond this for one large write is not kept. Source: guess.
constexpr std::size_t kKeptBufferBytes = 4 << 20;

FileOptions file_options() {
  FileOptions options;
  options.use_mmap_reads = false;   // a map ends where the file ended when it was opened
  options.use_mmap_writes = false;  // what was appended is the kernel's, not this process's, when append returns
  return options;
}

std::string name_of(GenerationId generation) {
  std::string digits = std::to_string(generation);
  if (digits.size() < 6) digits.insert(0, 6 - digits.size(), '0');
  return digits;
}

std::optional<GenerationId> generation_of(const std::string& name, const std::string& suffix) {
  if (!name.ends_with(suffix)) return std::nullopt;
  const char* const end = name.data() + name.size() - suffix.size();
  GenerationId generation = 0;
  const auto parsed = std::from_chars(name.data(), end, generation);
  if (parsed.ec != std::errc() || parsed.ptr != end || name_of(generation) + suffix != name) return std::nullopt;
  return generation;
}

std::uint64_t fresh_salt() {
  std::random_device random;
  return (static_cast<std::uint64_t>(random()) << 32) | random();
}

// The file system whose reads that were begun can be waited for by any thread, as an iterator's are. RocksDB's own
// waits only in the thread that began them, and only where it was built with io_uring: there all is read at once.
constexpr char kEmulatedFileSystem[] = "SpillwayFileSystem";

class RegionStore final : public Store {
 public:
  RegionStore(const RegionOptions& options, std::unique_ptr<rocksdb::FSDirectory> directory, rocksdb::FileLock* lock)
      : options_(options),
        files_(*options.file_system),
        polls_from_any_thread_(files_.IsInstanceOf(kEmulatedFileSystem)),
        directory_(std::move(directory)),
        lock_(lock) {}

  ~RegionStore() override {
    (void)close_writer();
    files_.UnlockFile(lock_, {}, nullptr).PermitUncheckedError();
  }
  RegionStore(const RegionStore&) = delete;
  RegionStore& operator=(const RegionStore&) = delete;

  Status recover(const Each& each) override {
    if (Status status = find_logs(); !status.ok()) return status;
    for (const auto& [generation, log] : logs_) {
      std::optional<std::uint64_t> torn_at;
      if (Status status = recover_log(*log, each, &torn_at); !status.ok()) return status;
      if (torn_at) return check_torn(*log, *torn_at);
    }
    return Status::OK();
  }

  Status cut(GenerationId generation, std::uint64_t offset) override {
    if (Status status = forget_from(generation + 1); !status.ok()) return status;
    const auto log = find(generation);
    if (!log) return Status::OK();
    if (offset <= log->last_record) {
      used_ -= log->bytes - std::max(offset, kLogHeaderBytes);
      log->bytes = std::max(offset, kLogHeaderBytes);
    }
    std::unique_ptr<rocksdb::FSWritableFile> file;
    IOStatus status = reopen_truncated(*log, &file);
    steps::reached("spill.region.cut.truncated");
    // The log may be what a killed process left in the page cache: from now on what comes after it relies on it.
    if (status.ok()) status = file->Fsync({}, nullptr);
    if (status.ok()) status = file->Close({}, nullptr);
    return status;
  }

  Status begin(GenerationId generation) override {
    if (Status status = seal(); !status.ok()) return status;
    // What is left of logs in which recover found nothing whole.
    if (Status status = forget_from(generation, Only::empty); !status.ok()) return status;
    if (const auto last = newest(); last && last->name.generation >= generation) {
      return Status::InvalidArgument("generation " + std::to_string(generation) + " is not newer than " +
                                     std::to_string(last->name.generation));
    }
    auto log = std::make_shared<RegionLog>();
    log->name = {.generation = generation, .salt = fresh_salt()};
    log->path = path_of(generation) + kLive;
    Status status = create(*log);
    if (!status.ok()) {
      writer_.reset();
      files_.DeleteFile(log->path, {}, nullptr).PermitUncheckedError();
      return status;
    }
    used_ += kLogHeaderBytes;
    durable_ = 0;
    const std::unique_lock lock(mutex_);
    logs_.emplace(generation, log);
    current_ = std::move(log);
    return status;
  }

  Status append(std::span<const Slice> records, std::span<std::uint64_t> offsets) override {
    if (suspect_ || !writer_) return Status::IOError("the spill store takes no writes until it begins a generation");
    std::uint64_t bytes = 0;
    for (const Slice& record : records) {
      if (record.empty() || record.size() > std::numeric_limits<std::uint32_t>::max() - kFrameHeaderBytes) {
        return Status::InvalidArgument("a record of the spill store has between 1 byte and 4 GiB");
      }
      bytes += kFrameHeaderBytes + record.size();
    }
    if (used_ + bytes > options_.capacity_bytes) {
      return Status::NoSpace("the spill store's capacity is used up");
    }
    const std::uint64_t end = current_->bytes;
    buffer_.clear();
    for (std::size_t i = 0; i < records.size(); ++i) {
      offsets[i] = end + buffer_.size();
      append_frame(current_->name, records[i], durable_, &buffer_);
    }
    writer_->PrepareWrite(end, buffer_.size(), {}, nullptr);
    const IOStatus status = writer_->Append(buffer_, {}, nullptr);
    if (buffer_.capacity() > kKeptBufferBytes) buffer_ = {};
    if (!status.ok()) return after_failed_append(status);
    steps::reached("spill.region.append.written");
    current_->bytes.store(end + bytes, std::memory_order_release);
    used_ += bytes;
    return status;
  }

  Status sync() override {
    if (suspect_ || !writer_) return Status::IOError("the spill store cannot sync until it begins a generation");
    const IOStatus status = writer_->Sync({}, nullptr);
    suspect_ = !status.ok();
    if (status.ok()) durable_ = current_->bytes;
    return status;
  }

  std::vector<GenerationId> generations() const override {
    const std::shared_lock lock(mutex_);
    std::vector<GenerationId> result;
    for (const auto& [generation, log] : logs_) {
      if (!log->dropped) result.push_back(generation);
    }
    return result;
  }

  Status read(GenerationId generation, std::uint64_t offset, std::uint64_t from, std::uint64_t length,
              std::string* bytes) const override {
    ReadRequest request{generation, offset, from, length, std::move(*bytes), {}};
    read_one(find(generation).get(), &request);
    *bytes = std::move(request.bytes);
    return request.status;
  }

  void read_many(std::span<ReadRequest> requests) const override {
    std::vector<std::size_t> order(requests.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(requests[a].generation, requests[a].offset) <
             std::pair(requests[b].generation, requests[b].offset);
    });
    for (auto first = order.begin(); first != order.end();) {
      const GenerationId generation = requests[*first].generation;
      const auto last =
          std::find_if(first, order.end(), [&](std::size_t i) { return requests[i].generation != generation; });
      read_together(find(generation).get(), requests, {first, last});
      first = last;
    }
  }

  std::unique_ptr<ReadsInFlight> begin_reads(std::span<ReadRequest> requests) const override {
    if (!polls_from_any_thread_) return Store::begin_reads(requests);
    auto flight = std::make_unique<RegionReads>(files_);
    for (ReadRequest& request : requests) flight->begin(find(request.generation), &request);
    return flight;
  }

  Status scan(GenerationId generation, const Each& each) const override {
    const auto log = find(generation);
    if (!log) return no_such_generation(generation);
    LogReader reader(*log->reader, log->name, log->bytes.load(std::memory_order_acquire));
    for (;;) {
      switch (reader.next()) {
        case LogReader::Next::record:
          if (Status status = each({generation, reader.offset(), reader.record()}); !status.ok()) return status;
          break;
        case LogReader::Next::end:
          return Status::OK();
        case LogReader::Next::torn:
          return damaged(*log, reader.offset());
        case LogReader::Next::error:
          return reader.status();
      }
    }
  }

  Status drop(GenerationId generation) override {
    const auto log = find(generation);
    if (!log) return no_such_generation(generation);
    if (log == current_) {
      (void)close_writer();  // what it holds is not wanted any more
      current_.reset();
    }
    if (!std::exchange(log->dropped, true)) {
      const std::string dropped = path_of(generation) + kDropped;
      if (IOStatus status = files_.RenameFile(log->path, dropped, {}, nullptr); !status.ok()) {
        log->dropped = false;
        return status;
      }
      log->path = dropped;
    }
    steps::reached("spill.region.drop.renamed");
    return sync_directory(rocksdb::DirFsyncOptions(log->path));
  }

  void release(GenerationId generation) override {
    const auto log = find(generation);
    if (!log) return;
    // A file that cannot be removed goes on using its space; the next recovery tries again.
    if (files_.DeleteFile(log->path, {}, nullptr).ok()) used_ -= log->bytes;
    steps::reached("spill.region.release.removed");
    const std::unique_lock lock(mutex_);
    logs_.erase(generation);
  }

  std::uint64_t used_bytes() const override { return used_; }
  std::uint64_t capacity_bytes() const override { return options_.capacity_bytes; }

 private:
  enum class Only : std::uint8_t { empty, all };

  std::string path_of(GenerationId generation) const { return options_.directory + "/" + name_of(generation); }

  std::shared_ptr<RegionLog> find(GenerationId generation) const {
    const std::shared_lock lock(mutex_);
    const auto found = logs_.find(generation);
    return found == logs_.end() ? nullptr : found->second;
  }

  std::shared_ptr<RegionLog> newest() const {
    const std::shared_lock lock(mutex_);
    return logs_.empty() ? nullptr : logs_.rbegin()->second;
  }

  Status sync_directory(const rocksdb::DirFsyncOptions& why) {
    return directory_->FsyncWithDirOptions({}, nullptr, why);
  }

  // --- Recovery

  Status find_logs() {
    std::vector<std::string> names;
    if (IOStatus status = files_.GetChildren(options_.directory, {}, &names, nullptr); !status.ok()) return status;
    for (const std::string& name : names) {
      if (generation_of(name, kDropped) || generation_of(name, std::string(kLive) + kCopy)) {
        const std::string path = options_.directory + "/" + name;
        if (IOStatus status = files_.DeleteFile(path, {}, nullptr); !status.ok()) return status;
      } else if (const auto generation = generation_of(name, kLive)) {
        if (Status status = open_log(*generation); !status.ok()) return status;
      }
    }
    // What a killed process renamed or removed may not be durable yet, and everything from now on relies on it.
    return sync_directory(rocksdb::DirFsyncOptions(rocksdb::DirFsyncOptions::kFileDeleted));
  }

  Status open_log(GenerationId generation) {
    auto log = std::make_shared<RegionLog>();
    log->name.generation = generation;
    log->path = path_of(generation) + kLive;
    if (Status status = open_reader(*log); !status.ok()) return status;
    logs_.emplace(generation, std::move(log));
    return Status::OK();
  }

  Status open_reader(RegionLog& log) {
    return files_.NewRandomAccessFile(log.path, file_options(), &log.reader, nullptr);
  }

  // `torn_at`: where what is not whole begins, if anything is not.
  Status recover_log(RegionLog& log, const Each& each, std::optional<std::uint64_t>* torn_at) {
    std::uint64_t file_bytes = 0;
    if (IOStatus status = files_.GetFileSize(log.path, {}, &file_bytes, nullptr); !status.ok()) return status;
    if (file_bytes == 0) return Status::OK();  // nothing was ever in it, or a cut left nothing
    char header[kLogHeaderBytes];
    std::uint64_t got = 0;
    if (IOStatus status = read_at(*log.reader, {}, 0, sizeof header, header, &got); !status.ok()) return status;
    LogName name;
    const HeaderFault fault = decode_log_header({header, got}, &name);
    if (fault == HeaderFault::newer_version) {
      return Status::NotSupported(log.path + " was written by a newer version of Spillway; open it with that");
    }
    if (fault == HeaderFault::torn || name.generation != log.name.generation) {
      // One that could not be begun, and not be removed, is no more than that.
      if (file_bytes > kLogHeaderBytes || is_newest(log)) *torn_at = 0;
      return Status::OK();
    }
    log.name = name;
    LogReader reader(*log.reader, name, file_bytes);
    used_ += kLogHeaderBytes;
    log.bytes = kLogHeaderBytes;
    for (;;) {
      const LogReader::Next next = reader.next();
      if (next == LogReader::Next::error) return reader.status();
      if (next == LogReader::Next::torn) *torn_at = reader.offset();
      if (next != LogReader::Next::record) return Status::OK();
      used_ += reader.whole_bytes() - log.bytes;
      log.bytes = reader.whole_bytes();
      log.last_record = reader.offset();
      if (Status status = each({name.generation, reader.offset(), reader.record()}); !status.ok()) return status;
    }
  }

  bool is_newest(const RegionLog& log) const { return logs_.rbegin()->second.get() == &log; }

  // A loss of power tears what was not durable: only the newest log has that (begin), behind what its last frames know
  // to be durable. Anything else is damage, and what was acknowledged as durable would be lost with it. (Without its
  // header nothing is known of the newest log's frames.)
  Status check_torn(const RegionLog& log, std::uint64_t at) const {
    bool durable = !is_newest(log);
    if (!durable && at >= kLogHeaderBytes) {
      std::uint64_t file_bytes = 0;
      IOStatus status = files_.GetFileSize(log.path, {}, &file_bytes, nullptr);
      if (status.ok()) status = was_durable(*log.reader, log.name, at, file_bytes, &durable);
      if (!status.ok()) return status;
    }
    if (!durable) return Status::OK();
    return Status::Corruption(log.path + " is damaged at byte " + std::to_string(at) +
                              ", in what was durable; put a copy of it there, or take it and all logs of higher " +
                              "numbers out of the directory, and lose the writes in them");
  }

  // Removes the logs from `first` on, the newest first, each durably, so that no power loss leaves a gap.
  Status forget_from(GenerationId first, Only only = Only::all) {
    for (auto log = newest(); log && log->name.generation >= first; log = newest()) {
      if (only == Only::empty && log->bytes > kLogHeaderBytes) break;
      IOStatus status = files_.DeleteFile(log->path, {}, nullptr);
      if (!status.ok() && !status.IsNotFound()) return status;
      if (Status synced = sync_directory(rocksdb::DirFsyncOptions(rocksdb::DirFsyncOptions::kFileDeleted));
          !synced.ok()) {
        return synced;
      }
      used_ -= log->bytes;
      const std::unique_lock lock(mutex_);
      logs_.erase(log->name.generation);
    }
    return Status::OK();
  }

  // --- Writing

  Status create(RegionLog& log) {
    std::unique_ptr<rocksdb::FSWritableFile> writer;
    IOStatus status = files_.NewWritableFile(log.path, file_options(), &writer, nullptr);
    if (!status.ok()) return status;
    adopt_writer(std::move(writer));
    status = writer_->Append(encode_log_header(log.name), {}, nullptr);
    if (!status.ok()) return status;
    steps::reached("spill.region.begin.created");
    if (Status synced = sync_directory(rocksdb::DirFsyncOptions(rocksdb::DirFsyncOptions::kNewFileSynced));
        !synced.ok()) {
      return synced;
    }
    log.bytes = kLogHeaderBytes;
    return open_reader(log);
  }

  void adopt_writer(std::unique_ptr<rocksdb::FSWritableFile> writer) {
    writer_ = std::move(writer);
    writer_->SetPreallocationBlockSize(kPreallocateBytes);
  }

  IOStatus close_writer() {
    if (!writer_) return IOStatus::OK();
    const IOStatus status = writer_->Close({}, nullptr);
    writer_.reset();
    return status;
  }

  // Makes the current log durable and as it was acknowledged, and closes it.
  Status seal() {
    if (!current_) return Status::OK();
    if (suspect_) {
      if (Status status = rewrite(); !status.ok()) return status;
    } else if (Status status = sync(); !status.ok()) {
      return status;
    }
    (void)close_writer();  // all of it is durable
    current_.reset();
    suspect_ = false;
    return Status::OK();
  }

  // A copy of what was acknowledged takes the log's place: of a write that failed part may be there, and of a sync that
  // failed the kernel may have forgotten what it could not write, without a second sync that says so.
  Status rewrite() {
    (void)close_writer();
    auto copy = std::make_shared<RegionLog>();
    copy->name = current_->name;
    copy->path = current_->path + kCopy;
    if (Status status = write_copy(*current_, copy->path); !status.ok()) return status;
    IOStatus status = files_.RenameFile(copy->path, current_->path, {}, nullptr);
    if (!status.ok()) return status;
    copy->path = current_->path;
    if (Status synced = sync_directory(rocksdb::DirFsyncOptions(copy->path)); !synced.ok()) return synced;
    if (Status opened = open_reader(*copy); !opened.ok()) return opened;
    copy->bytes.store(current_->bytes);
    const std::unique_lock lock(mutex_);
    logs_[copy->name.generation] = copy;
    current_ = std::move(copy);
    return Status::OK();
  }

  Status write_copy(const RegionLog& log, const std::string& path) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    if (IOStatus status = files_.NewWritableFile(path, file_options(), &file, nullptr); !status.ok()) return status;
    std::string piece = encode_log_header(log.name);
    LogReader reader(*log.reader, log.name, log.bytes);
    for (;;) {
      const LogReader::Next next = reader.next();
      if (next == LogReader::Next::error) return reader.status();
      if (next == LogReader::Next::torn) return damaged(log, reader.offset());
      if (next == LogReader::Next::record) piece.append(reader.frame().data(), reader.frame().size());
      if (piece.size() < kScanReadBytes && next != LogReader::Next::end) continue;
      if (IOStatus status = file->Append(piece, {}, nullptr); !status.ok()) return status;
      piece.clear();
      if (next == LogReader::Next::end) break;
    }
    if (IOStatus status = file->Sync({}, nullptr); !status.ok()) return status;
    return file->Close({}, nullptr);
  }

  Status after_failed_append(const IOStatus& failed) {
    suspect_ = true;
    if (!failed.IsNoSpace()) return failed;
    // The drive is full: nothing is wrong with what it has, but the beginning of what it could not take may be there.
    std::uint64_t file_bytes = 0;
    IOStatus status = files_.GetFileSize(current_->path, {}, &file_bytes, nullptr);
    if (status.ok() && file_bytes != current_->bytes) status = truncate_to_end();
    if (!status.ok()) return status;
    suspect_ = false;
    return failed;
  }

  IOStatus truncate_to_end() {
    (void)close_writer();
    std::unique_ptr<rocksdb::FSWritableFile> writer;
    IOStatus status = reopen_truncated(*current_, &writer);
    if (status.ok()) adopt_writer(std::move(writer));
    return status;
  }

  // By way of the open file, for RocksDB's own file system truncates no other.
  IOStatus reopen_truncated(const RegionLog& log, std::unique_ptr<rocksdb::FSWritableFile>* file) {
    IOStatus status = files_.ReopenWritableFile(log.path, file_options(), file, nullptr);
    return status.ok() ? (*file)->Truncate(log.bytes, {}, nullptr) : status;
  }

  const RegionOptions options_;
  FileSystem& files_;
  const bool polls_from_any_thread_;
  const std::unique_ptr<rocksdb::FSDirectory> directory_;
  rocksdb::FileLock* const lock_;

  mutable std::shared_mutex mutex_;  // of the map; only the thread that appends changes it, or whoever releases
  std::map<GenerationId, std::shared_ptr<RegionLog>> logs_;
  std::atomic<std::uint64_t> used_{0};

  // Of the thread that appends.
  std::shared_ptr<RegionLog> current_;
  std::unique_ptr<rocksdb::FSWritableFile> writer_;
  std::uint64_t durable_ = 0;  // bytes of the current log that the last sync made so
  bool suspect_ = false;       // the drive failed a write or a sync of the current log
  std::string buffer_;
};

Status cannot_use(const std::string& directory, const Status& why) {
  return Status::IOError("the spill store cannot use " + directory + " (" + why.ToString() +
                         "); give it a directory that can be written and that no other database uses");
}

}  // namespace

Status open_region_store(const RegionOptions& options, std::unique_ptr<Store>* store) {
  FileSystem& files = *options.file_system;
  IOStatus status = files.CreateDirIfMissing(options.directory, {}, nullptr);
  std::unique_ptr<rocksdb::FSDirectory> directory;
  if (status.ok()) status = files.NewDirectory(options.directory, {}, &directory, nullptr);
  rocksdb::FileLock* lock = nullptr;
  if (status.ok()) status = files.LockFile(options.directory + "/LOCK", {}, &lock, nullptr);
  if (!status.ok()) return cannot_use(options.directory, status);
  *store = std::make_unique<RegionStore>(options, std::move(directory), lock);
  return Status::OK();
}

}  // namespace spillway::spill
