#include "spill/store/region/region_store.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <shared_mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/async_reads.h"
#include "base/steps.h"
#include "spill/store/binding_record.h"
#include "spill/store/region/durable_ends.h"
#include "spill/store/durable_file.h"
#include "spill/store/region/log_frame.h"
#include "spill/store/region/region_reads.h"

namespace spillway::spill {

using rocksdb::FileOptions;
using rocksdb::FileSystem;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr char kDropped[] = ".dropped";
constexpr char kCopy[] = ".copy";

// What the file system is asked to set aside at a time, beyond the end of the file, so that the file's size stays what
// was written. It counts as used; of a small capacity it is a small share, or nothing. Source: guess, so much that a
// log of the default size has few extents.
constexpr std::uint64_t kMostPreallocated = 4 << 20;
constexpr std::uint64_t kLeastPreallocated = 64 << 10;
constexpr std::uint64_t kPreallocatedShare = 256;  // of the capacity: one in so many

// A buffer that grew beyond this for one large write is not kept. Source: guess.
constexpr std::size_t kKeptBufferBytes = 4 << 20;

// Logs that take no more and are not durable yet; whoever would seal one more waits. Source: guess; with fewer the
// worst write of workload A waited for one (118 ms), and Linux lets a fifth of memory be dirty (vm.dirty_ratio).
constexpr std::size_t kMostSealed = 3;

// A writer who is faster than the drive pauses for so long at most, and not for less than this, on his way to where he
// would wait for a whole log's sync at once (300 ms in workload A, with logs of 64 MiB). Few pauses of some
// milliseconds, for many short ones are what one write in a hundred then takes (there 50 to 130 us in place of 25).
constexpr std::chrono::microseconds kLongestPause{5000};
constexpr std::chrono::microseconds kShortestPause{2000};

FileOptions file_options() {
  FileOptions options;
  options.use_mmap_reads = false;   // a map ends where the file ended when it was opened
  options.use_mmap_writes = false;  // what was appended is the kernel's, not this process's, when append returns
  return options;
}

std::optional<GenerationId> generation_of(const std::string& name, const std::string& suffix) {
  if (!name.ends_with(suffix)) return std::nullopt;
  const char* const end = name.data() + name.size() - suffix.size();
  GenerationId generation = 0;
  const auto parsed = std::from_chars(name.data(), end, generation);
  if (parsed.ec != std::errc() || parsed.ptr != end || digits_of(generation) + suffix != name) return std::nullopt;
  return generation;
}

std::uint64_t fresh_salt() {
  std::random_device random;
  return (static_cast<std::uint64_t>(random()) << 32) | random();
}

// An iterator's reads may be waited for by another thread than began them. RocksDB's own file system waits only in the
// thread that began them, so reads on it are synchronous.
bool any_thread_may_wait(const FileSystem& files) {
  const auto* const reads = files.GetOptions<AsyncReads>();
  return reads != nullptr && reads->any_thread_may_wait;
}

class RegionStore final : public Store {
  using Clock = std::chrono::steady_clock;

 public:
  RegionStore(const RegionOptions& options, std::unique_ptr<rocksdb::FSDirectory> directory, rocksdb::FileLock* lock)
      : options_(options),
        files_(*options.file_system),
        reads_asynchronously_(any_thread_may_wait(files_)),
        directory_(std::move(directory)),
        lock_(lock),
        ends_(files_, *directory_, options.directory + "/" + kEndsFile) {
    sealer_ = std::thread([this] { seal_in_background(); });
  }

  ~RegionStore() override {
    {
      const std::unique_lock lock(mutex_);
      stopping_ = true;
    }
    sealed_or_stopping_.notify_one();
    sealer_.join();
    while (!sealed_.empty()) close_oldest();
    close_current();
    files_.UnlockFile(lock_, {}, nullptr).PermitUncheckedError();
  }
  RegionStore(const RegionStore&) = delete;
  RegionStore& operator=(const RegionStore&) = delete;

  Status recover(const Each& each) override {
    if (Status status = find_logs(); !status.ok()) return status;
    if (Status status = ends_.read(); !status.ok()) return status;
    if (Status status = check_none_missing(); !status.ok()) return status;
    for (const auto& [generation, log] : logs_) {
      std::optional<std::uint64_t> torn_at;
      if (Status status = recover_log(*log, each, &torn_at); !status.ok()) return status;
      const auto before = torn_at && *torn_at == 0 ? find_before(log->name) : nullptr;
      const RegionLog& torn = before ? *before : *log;
      const std::uint64_t at = before ? before->bytes.load() : torn_at.value_or(log->bytes);
      if (was_longer(ends_.found(), generation, log->name.salt, torn_at.value_or(log->bytes)))
        return lost_durable(damage_at(torn, at));
      if (!torn_at) continue;
      const Status checked = check_torn(torn, at);
      return checked.ok() ? finish_recovery(log.get()) : checked;
    }
    return finish_recovery(newest().get());
  }

  Status cut(GenerationId generation, std::uint64_t offset) override {
    if (logs_.empty() && ends_.found().ends.empty() && !ends_.found().was_closed) return Status::OK();
    if (Status status = reopen_ends(generation, offset); !status.ok()) return status;
    if (Status status = forget_from(generation + 1); !status.ok()) return status;
    const auto log = find(generation);
    if (!log) return Status::OK();
    if (offset <= log->last_record) {
      used_ -= log->bytes - std::max(offset, kLogHeaderBytes);
      log->bytes = std::max(offset, kLogHeaderBytes);
    }
    return truncate_durably(*log);
  }

  Status begin(GenerationId generation) override {
    if (Status status = reopen_ends(); !status.ok()) return status;
    if (Status status = seal(); !status.ok()) return status;
    // What is left of logs in which recover found nothing whole.
    if (Status status = forget_from(generation, Only::empty); !status.ok()) return status;
    if (const auto last = newest(); last && last->name.generation >= generation) {
      return Status::InvalidArgument("generation " + std::to_string(generation) + " is not newer than " +
                                     std::to_string(last->name.generation));
    }
    auto log = std::make_shared<RegionLog>();
    log->name = {.generation = generation, .salt = fresh_salt(), .durable_before = generation};
    if (const auto unsure = sealed(); !unsure.empty()) {
      log->name.after = unsure.back()->log->name.generation;
      log->name.after_bytes = unsure.back()->log->bytes;
      log->name.durable_before = unsure.front()->log->name.generation;
    }
    log->path = path_of(generation) + kLogSuffix;
    auto open = std::make_shared<OpenLog>();
    Status status = create(*log, &open->file);
    if (!status.ok()) {
      open.reset();
      files_.DeleteFile(log->path, {}, nullptr).PermitUncheckedError();
      return status;
    }
    used_ += kLogHeaderBytes;
    open->log = log;
    const std::unique_lock lock(mutex_);
    logs_.emplace(generation, std::move(log));
    current_ = std::move(open);
    return status;
  }

  Status append(std::span<const Slice> records, std::span<std::uint64_t> offsets) override {
    if (suspect_ || !current_) return Status::IOError("the spill store takes no writes until it begins a generation");
    RegionLog& log = *current_->log;
    rocksdb::FSWritableFile& file = *current_->file;
    std::uint64_t bytes = 0;
    for (const Slice& record : records) {
      if (record.empty()) return Status::InvalidArgument("an empty record");
      if (record.size() > std::numeric_limits<std::uint32_t>::max() - kFrameHeaderBytes) {
        return Status::NoSpace("the spill store takes no record that is so long");
      }
      bytes += kFrameHeaderBytes + record.size();
    }
    if (used_bytes() + bytes > options_.capacity_bytes) {
      return Status::NoSpace("the spill store's capacity is used up");
    }
    const std::uint64_t end = log.bytes;
    const std::uint64_t durable = current_->durable.load(std::memory_order_acquire);
    buffer_.clear();
    for (std::size_t i = 0; i < records.size(); ++i) {
      offsets[i] = end + buffer_.size();
      append_frame(log.name, records[i], durable, &buffer_);
    }
    file.PrepareWrite(end, buffer_.size(), {}, nullptr);
    const IOStatus status = file.Append(buffer_, {}, nullptr);
    if (buffer_.capacity() > kKeptBufferBytes) buffer_ = {};
    if (!status.ok()) return after_failed_append(status);
    steps::reached("spill.region.append.written");
    log.bytes.store(end + bytes, std::memory_order_release);
    used_ += bytes;
    keep_pace(bytes);
    return status;
  }

  Status sync() override {
    const std::lock_guard one_at_a_time(sync_mutex_);
    for (;;) {
      std::shared_ptr<OpenLog> open;
      bool is_settled = false;
      {
        // Both at once: the current one may be sealed at any moment.
        const std::shared_lock lock(mutex_);
        is_settled = sealed_.empty();
        open = current_;
      }
      if (suspect_) return is_suspect();
      if (is_settled) return open ? sync(*open) : Status::OK();
      if (Status status = settle_oldest(); !status.ok()) return status;
    }
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
    if (!reads_asynchronously_) return Store::begin_reads(requests);
    auto flight = std::make_unique<RegionReads>(files_);
    for (ReadRequest& request : requests) flight->begin(find(request.generation), &request);
    return flight;
  }

  Status damaged(GenerationId generation, std::uint64_t offset) const override {
    const auto log = find(generation);
    return log ? spill::damaged(*log, offset) : no_such_generation(generation);
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
          return spill::damaged(*log, reader.offset());
        case LogReader::Next::error:
          return reader.status();
      }
    }
  }

  Status drop(GenerationId generation) override {
    const auto log = find(generation);
    if (!log) return no_such_generation(generation);
    if (Status status = reopen_ends(); !status.ok()) return status;
    if (is_open(*log)) {  // what it holds is not wanted any more
      const std::lock_guard no_sync(sync_mutex_);
      while (!sealed_.empty() && sealed_.front()->log->name.generation <= generation) close_oldest();
      if (current_ && current_->log == log) close_current();
    }
    if (!std::exchange(log->dropped, true)) {
      held_ += log->bytes;
      const std::string dropped = path_of(generation) + kDropped;
      if (IOStatus status = files_.RenameFile(log->path, dropped, {}, nullptr); !status.ok()) {
        log->dropped = false;
        held_ -= log->bytes;
        return status;
      }
      log->path = dropped;
    }
    steps::reached("spill.region.drop.renamed");
    ends_.forget(generation);
    return sync_directory(rocksdb::DirFsyncOptions(log->path));
  }

  void release(GenerationId generation) override {
    const auto log = find(generation);
    if (!log) return;
    // A file that cannot be removed goes on using its space; the next recovery tries again.
    if (files_.DeleteFile(log->path, {}, nullptr).ok()) used_ -= log->bytes;
    if (log->dropped) held_ -= log->bytes;
    steps::reached("spill.region.release.removed");
    const std::unique_lock lock(mutex_);
    logs_.erase(generation);
  }

  Status read_binding(std::string* bytes) const override { return read_file_if_any(files_, binding_path(), bytes); }
  Status write_binding(const std::string& bytes) override {
    return replace_file(files_, *directory_, binding_path(), bytes);
  }
  std::string binding_place() const override { return binding_path() + " from byte 0 on"; }

  Status close() override {
    if (Status status = sync(); !status.ok()) return status;
    return ends_.is_begun() ? ends_.replace(ends(), /*closed=*/true, /*durably=*/true)
                            : Status::OK();  // else nothing was changed
  }

  std::uint64_t used_bytes() const override { return used_ + preallocated_bytes(); }
  std::uint64_t held_bytes() const override { return held_; }
  std::uint64_t capacity_bytes() const override { return options_.capacity_bytes; }

 private:
  enum class Only : std::uint8_t { empty, all };

  std::string binding_path() const { return options_.directory + "/" + kBindingFile; }
  std::string path_of(GenerationId generation) const { return options_.directory + "/" + digits_of(generation); }

  std::shared_ptr<RegionLog> find(GenerationId generation) const {
    const std::shared_lock lock(mutex_);
    const auto found = logs_.find(generation);
    return found == logs_.end() ? nullptr : found->second;
  }

  // The log before this one, where that one's end has to be there; null if it does not, or was dropped.
  std::shared_ptr<RegionLog> find_before(const LogName& name) const {
    return name.after_bytes > 0 ? find(name.after) : nullptr;
  }

  std::shared_ptr<RegionLog> newest() const {
    const std::shared_lock lock(mutex_);
    return logs_.empty() ? nullptr : logs_.rbegin()->second;
  }

  // A log that takes records, or took them until it was sealed.
  struct OpenLog {
    std::shared_ptr<RegionLog> log;
    std::unique_ptr<rocksdb::FSWritableFile> file;  // replaced and closed with sync_mutex_ held
    std::atomic<std::uint64_t> durable{0};          // bytes
  };

  bool is_open(const RegionLog& log) const {
    const std::shared_lock lock(mutex_);
    return (current_ && current_->log.get() == &log) ||
           std::ranges::any_of(sealed_, [&](const auto& open) { return open->log.get() == &log; });
  }

  std::deque<std::shared_ptr<OpenLog>> sealed() const {
    const std::shared_lock lock(mutex_);
    return sealed_;
  }

  Status sync_directory(const rocksdb::DirFsyncOptions& why) {
    return directory_->FsyncWithDirOptions({}, nullptr, why);
  }

  // --- Recovery

  Status find_logs() {
    std::vector<std::string> names;
    if (IOStatus status = files_.GetChildren(options_.directory, {}, &names, nullptr); !status.ok()) return status;
    for (const std::string& name : names) {
      if (generation_of(name, kDropped) || generation_of(name, std::string(kLogSuffix) + kCopy)) {
        const std::string path = options_.directory + "/" + name;
        if (IOStatus status = files_.DeleteFile(path, {}, nullptr); !status.ok()) return status;
      } else if (const auto generation = generation_of(name, kLogSuffix)) {
        if (Status status = open_log(*generation); !status.ok()) return status;
      }
    }
    // What a killed process renamed or removed may not be durable yet, and everything from now on relies on it.
    return sync_directory(rocksdb::DirFsyncOptions(rocksdb::DirFsyncOptions::kFileDeleted));
  }

  Status open_log(GenerationId generation) {
    auto log = std::make_shared<RegionLog>();
    log->name.generation = generation;
    log->path = path_of(generation) + kLogSuffix;
    if (Status status = open_reader(*log); !status.ok()) return status;
    logs_.emplace(generation, std::move(log));
    return Status::OK();
  }

  Status open_reader(RegionLog& log) {
    return files_.NewRandomAccessFile(log.path, file_options(), &log.reader, nullptr);
  }

  static Status read_header(const RegionLog& log, LogName* name, HeaderFault* fault) {
    char header[kLogHeaderBytes];
    std::uint64_t got = 0;
    const IOStatus status = read_at(*log.reader, {}, 0, sizeof header, header, &got);
    if (status.ok()) *fault = decode_log_header({header, got}, name);
    return status;
  }

  // `torn_at`: where what is not whole begins, if anything is not; 0 where that is in the log before.
  Status recover_log(RegionLog& log, const Each& each, std::optional<std::uint64_t>* torn_at) {
    std::uint64_t file_bytes = 0;
    if (IOStatus status = files_.GetFileSize(log.path, {}, &file_bytes, nullptr); !status.ok()) return status;
    if (file_bytes == 0) return Status::OK();  // nothing was ever in it, or a cut left nothing
    LogName name;
    HeaderFault fault = HeaderFault::none;
    if (Status status = read_header(log, &name, &fault); !status.ok()) return status;
    if (fault == HeaderFault::other_version) {
      return Status::NotSupported(log.path +
                                  " was written by another version of Spillway (its byte 7); open it with that");
    }
    if (fault == HeaderFault::torn || name.generation != log.name.generation) {
      // One that could not be begun, and not be removed, is no more than that.
      if (file_bytes > kLogHeaderBytes || is_newest(log)) *torn_at = 0;
      return Status::OK();
    }
    log.name = name;
    if (const auto before = find_before(name); before && before->bytes < name.after_bytes) {
      *torn_at = 0;  // though its own header is whole
      return Status::OK();
    }
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

  // A loss of power tears what was not durable: of the newest log, or of one before it that it does not know to be
  // durable, that of which no frame behind it knows. Anything else is damage, and what was acknowledged as durable
  // would be lost with it.
  Status check_torn(const RegionLog& log, std::uint64_t at) const {
    bool durable = false;
    Status status;
    // (Without its header nothing is known of a log's frames.)
    if (at >= kLogHeaderBytes) status = knows_durable(log, at, &durable);
    for (auto later = logs_.upper_bound(log.name.generation); later != logs_.end() && status.ok() && !durable;
         ++later) {
      status = says_durable(*later->second, log.name.generation, &durable);
    }
    return status.ok() && durable ? lost_durable(damage_at(log, at)) : status;
  }

  static Status lost_durable(const std::string& what) {
    return Status::Corruption(what +
                              ", in what was durable; put a copy of it there, or take it and all logs of higher " +
                              "numbers out of the directory, with " + kEndsFile + ", and lose the writes in them");
  }

  static std::string damage_at(const RegionLog& log, std::uint64_t at) {
    return log.path + " is damaged at byte " + std::to_string(at);
  }

  // After a close all logs are there; after any other end those that were not the oldest with something in it.
  Status check_none_missing() const {
    const bool was_closed = ends_.found().was_closed;
    bool has_older = was_closed;
    for (const auto& [generation, end] : ends_.found().ends) {
      if (find(generation)) {
        has_older = has_older || end.bytes > kLogHeaderBytes;
      } else if (has_older && (was_closed || end.bytes > kLogHeaderBytes)) {
        return lost_durable(path_of(generation) + kLogSuffix + " is missing");
      }
    }
    return Status::OK();
  }

  // Of the logs that were not dropped.
  std::vector<DurableEnd> ends() const {
    const std::shared_lock lock(mutex_);
    std::vector<DurableEnd> all;
    for (const auto& [generation, log] : logs_) {
      if (!log->dropped && log->bytes > 0) all.push_back({generation, log->name.salt, log->bytes});
    }
    return all;
  }

  // What an earlier process said of its end ceases to be true with the first change. In its place comes what recover
  // has made durable, but for what is about to be cut.
  Status reopen_ends(GenerationId last = ~GenerationId{0}, std::uint64_t offset = ~std::uint64_t{0}) {
    if (ends_.is_begun()) return Status::OK();
    std::vector<DurableEnd> kept = is_recovered_ ? ends() : std::vector<DurableEnd>();
    std::erase_if(kept, [&](const DurableEnd& end) { return end.generation > last; });
    if (!kept.empty() && kept.back().generation == last) {
      kept.back().bytes = std::min(kept.back().bytes, std::max(offset, kLogHeaderBytes));
    }
    // Where there was nothing that could become wrong, nothing has to reach the drive: in workload A the first write of
    // a burst waited 340 ms for it (plans/kvaccel-a.toml, on files).
    const FoundEnds& found = ends_.found();
    return ends_.replace(kept, /*closed=*/false, /*durably=*/!found.ends.empty() || found.was_closed);
  }

  // Whether a frame of the log knows more than `at` bytes of it to be durable.
  Status knows_durable(const RegionLog& log, std::uint64_t at, bool* durable) const {
    std::uint64_t file_bytes = 0;
    const IOStatus status = files_.GetFileSize(log.path, {}, &file_bytes, nullptr);
    return status.ok() ? was_durable(*log.reader, log.name, at, file_bytes, durable) : status;
  }

  // Whether a later log says that all of generation `before` was durable: when it was begun, or by a frame that knows
  // something of itself to be.
  Status says_durable(const RegionLog& later, GenerationId before, bool* durable) const {
    LogName name;
    HeaderFault fault = HeaderFault::none;
    if (Status status = read_header(later, &name, &fault); !status.ok() || fault != HeaderFault::none) return status;
    *durable = before < name.durable_before;
    if (*durable) return Status::OK();
    std::uint64_t file_bytes = 0;
    const IOStatus status = files_.GetFileSize(later.path, {}, &file_bytes, nullptr);
    return status.ok() ? was_durable(*later.reader, name, 0, file_bytes, durable) : status;
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

  Status create(RegionLog& log, std::unique_ptr<rocksdb::FSWritableFile>* file) {
    IOStatus status = files_.NewWritableFile(log.path, file_options(), file, nullptr);
    if (!status.ok()) return status;
    (*file)->SetPreallocationBlockSize(preallocation_);
    status = (*file)->Append(encode_log_header(log.name), {}, nullptr);
    if (!status.ok()) return status;
    steps::reached("spill.region.begin.created");
    if (Status synced = sync_directory(rocksdb::DirFsyncOptions(rocksdb::DirFsyncOptions::kNewFileSynced));
        !synced.ok()) {
      return synced;
    }
    log.bytes = kLogHeaderBytes;
    return open_reader(log);
  }

  // The current log takes no more. It is made durable while later ones are appended to, or whoever appends would wait
  // for the drive's cache, which compactions fill.
  Status seal() {
    if (suspect_ || sealed().size() >= kMostSealed) {
      const std::lock_guard no_sync(sync_mutex_);
      if (Status status = suspect_ ? rewrite() : settle(kMostSealed - 1); !status.ok()) return status;
    }
    if (!current_) return Status::OK();
    {
      const std::unique_lock no_sync(sync_mutex_, std::try_to_lock);
      if (no_sync && sealed().empty() && current_->durable == current_->log->bytes) {
        close_current();
        return Status::OK();
      }
    }
    const std::unique_lock lock(mutex_);
    sealed_.push_back(std::move(current_));
    sealed_or_stopping_.notify_one();
    return Status::OK();
  }

  void seal_in_background() {
    std::unique_lock lock(mutex_);
    for (;;) {
      sealed_or_stopping_.wait(lock, [this] { return stopping_ || (!sealed_.empty() && !suspect_); });
      if (stopping_) return;
      lock.unlock();
      {
        const std::lock_guard no_sync(sync_mutex_);
        settle_oldest().PermitUncheckedError();  // whoever appends or syncs next is told
      }
      lock.lock();
    }
  }

  // Of the sealed logs so many are left; the others are durable, and closed. REQUIRES: sync_mutex_ is held
  Status settle(std::size_t left) {
    while (sealed().size() > left) {
      if (Status status = settle_oldest(); !status.ok()) return status;
    }
    return suspect_ ? is_suspect() : Status::OK();
  }

  // What is left of the oldest log's sync is spread over what is left of the newest one. After an append of so many
  // bytes.
  void keep_pace(std::uint64_t bytes) {
    std::uint64_t full = 0;
    {
      const std::shared_lock lock(mutex_);
      if (sealed_.size() < kMostSealed || !current_) {
        owed_pause_ = {};
        return;
      }
      full = sealed_.back()->log->bytes;  // as the newest will be
    }
    const std::chrono::duration<double> took{settle_took_s_.load(std::memory_order_relaxed)};
    const auto since = settling_since_.load(std::memory_order_acquire);
    const auto elapsed = since == Clock::time_point() ? Clock::duration{} : Clock::now() - since;
    // One that takes longer than the last did takes some time more: a quarter. Source: guess.
    const auto left = std::max<std::chrono::duration<double>>(took - elapsed, elapsed / 4);
    const std::uint64_t end = current_->log->bytes;
    const double share = end < full ? std::min(1.0, static_cast<double>(bytes) / static_cast<double>(full - end)) : 1.0;
    owed_pause_ += left * share;
    if (owed_pause_ < kShortestPause) return;
    const auto pause = std::min<std::chrono::duration<double>>(owed_pause_, kLongestPause);
    owed_pause_ = std::min<std::chrono::duration<double>>(owed_pause_ - pause, kLongestPause);
    std::this_thread::sleep_for(pause);
  }

  static Status is_suspect() { return Status::IOError("the spill store cannot sync until it begins a generation"); }

  Status settle_oldest() {
    if (suspect_) return is_suspect();
    const auto unsure = sealed();
    if (unsure.empty()) return Status::OK();
    const auto began = Clock::now();
    settling_since_.store(began, std::memory_order_release);
    const Status status = sync(*unsure.front());
    settling_since_.store({}, std::memory_order_release);
    if (!status.ok()) return status;
    settle_took_s_.store(std::chrono::duration<double>(Clock::now() - began).count(), std::memory_order_relaxed);
    steps::reached("spill.region.seal.synced");
    close_oldest();
    return Status::OK();
  }

  // REQUIRES: sync_mutex_ is held
  Status sync(OpenLog& open) {
    const std::uint64_t end = open.log->bytes.load(std::memory_order_acquire);
    const IOStatus status = open.file->Sync({}, nullptr);
    if (status.ok()) {
      open.durable.store(end, std::memory_order_release);
      ends_.note({open.log->name.generation, open.log->name.salt, end});
    } else {
      suspect_ = true;
    }
    return status;
  }

  // REQUIRES: sync_mutex_ is held, and there is one
  void close_oldest() {
    std::shared_ptr<OpenLog> oldest;
    {
      const std::unique_lock lock(mutex_);
      oldest = std::move(sealed_.front());
      sealed_.pop_front();
    }
    close(*oldest);
  }

  // REQUIRES: sync_mutex_ is held
  void close_current() {
    const std::shared_ptr<OpenLog> closed = current_;
    {
      const std::unique_lock lock(mutex_);
      current_.reset();
    }
    if (closed) close(*closed);
  }

  static void close(OpenLog& open) {
    if (const auto file = std::move(open.file)) file->Close({}, nullptr).PermitUncheckedError();
  }

  // A copy of what was acknowledged takes the place of each log that may not be durable: of a write that failed part
  // may be there, and of a sync that failed the kernel may have forgotten what it could not write, without a second
  // sync that says so. REQUIRES: sync_mutex_ is held
  Status rewrite() {
    for (; !sealed_.empty(); close_oldest()) {
      if (Status status = rewrite(*sealed_.front()); !status.ok()) return status;
    }
    if (current_) {
      if (Status status = rewrite(*current_); !status.ok()) return status;
    }
    close_current();
    suspect_ = false;
    return Status::OK();
  }

  Status rewrite(OpenLog& open) {
    close(open);
    const RegionLog& log = *open.log;
    auto copy = std::make_shared<RegionLog>();
    copy->name = log.name;
    copy->path = log.path + kCopy;
    if (Status status = write_copy(log, copy->path); !status.ok()) return status;
    IOStatus status = files_.RenameFile(copy->path, log.path, {}, nullptr);
    if (!status.ok()) return status;
    copy->path = log.path;
    if (Status synced = sync_directory(rocksdb::DirFsyncOptions(copy->path)); !synced.ok()) return synced;
    if (Status opened = open_reader(*copy); !opened.ok()) return opened;
    copy->bytes.store(log.bytes);
    const std::unique_lock lock(mutex_);
    logs_[copy->name.generation] = copy;
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
      if (next == LogReader::Next::torn) return spill::damaged(log, reader.offset());
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
    const std::lock_guard no_sync(sync_mutex_);
    IOStatus status = failed;
    if (failed.IsNoSpace()) {
      // The drive is full: nothing is wrong with what it has, but the beginning of what it could not take may be there.
      const RegionLog& log = *current_->log;
      std::uint64_t file_bytes = 0;
      status = files_.GetFileSize(log.path, {}, &file_bytes, nullptr);
      if (status.ok() && file_bytes != log.bytes) status = truncate_to_end();
      if (status.ok()) return failed;
    }
    suspect_ = true;
    return status;
  }

  IOStatus truncate_to_end() {
    current_->file->Close({}, nullptr).PermitUncheckedError();
    current_->file.reset();
    std::unique_ptr<rocksdb::FSWritableFile> file;
    IOStatus status = reopen_truncated(*current_->log, &file);
    if (!status.ok()) return status;
    file->SetPreallocationBlockSize(preallocation_);
    current_->file = std::move(file);
    return status;
  }

  // By way of the open file, for RocksDB's own file system truncates no other.
  IOStatus reopen_truncated(const RegionLog& log, std::unique_ptr<rocksdb::FSWritableFile>* file) {
    IOStatus status = files_.ReopenWritableFile(log.path, file_options(), file, nullptr);
    return status.ok() ? (*file)->Truncate(log.bytes, {}, nullptr) : status;
  }

  Status finish_recovery(const RegionLog* last) {
    const Status status = last == nullptr ? Status::OK() : make_durable(*last);
    is_recovered_ = status.ok();
    return status;
  }

  // The log, and those before it that it does not know to be durable, may be what a killed process left in the page
  // cache: what RocksDB keeps of its own log from now on relies on them.
  Status make_durable(const RegionLog& log) {
    for (auto one = logs_.lower_bound(log.name.durable_before);; ++one) {
      std::unique_ptr<rocksdb::FSWritableFile> file;
      IOStatus status = files_.ReopenWritableFile(one->second->path, file_options(), &file, nullptr);
      if (status.ok()) status = file->Fsync({}, nullptr);
      if (status.ok()) status = file->Close({}, nullptr);
      if (!status.ok() || one->second.get() == &log) return status;
    }
  }

  IOStatus truncate_durably(const RegionLog& log) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    IOStatus status = reopen_truncated(log, &file);
    steps::reached("spill.region.cut.truncated");
    if (status.ok()) status = file->Fsync({}, nullptr);
    if (status.ok()) status = file->Close({}, nullptr);
    return status;
  }

  static std::uint64_t preallocation_of(std::uint64_t capacity_bytes) {
    const std::uint64_t share = std::min(capacity_bytes / kPreallocatedShare, kMostPreallocated);
    return share < kLeastPreallocated ? 0 : share;
  }

  // Behind the ends of the logs that are open: a block of each at most.
  std::uint64_t preallocated_bytes() const {
    if (preallocation_ == 0) return 0;
    const std::shared_lock lock(mutex_);
    return (sealed_.size() + (current_ ? 1 : 0)) * preallocation_;
  }

  const RegionOptions options_;
  const std::uint64_t preallocation_ = preallocation_of(options_.capacity_bytes);
  FileSystem& files_;
  const bool reads_asynchronously_;
  const std::unique_ptr<rocksdb::FSDirectory> directory_;
  rocksdb::FileLock* const lock_;
  DurableEnds ends_;
  bool is_recovered_ = false;  // and what was found is durable

  mutable std::shared_mutex mutex_;  // of the map; only the thread that appends changes it, or whoever releases
  std::map<GenerationId, std::shared_ptr<RegionLog>> logs_;
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> held_{0};  // of them, in dropped logs

  std::string buffer_;  // of the thread that appends

  // Held for the length of a sync, and by whoever replaces or closes the files of what is open. Taken before mutex_.
  std::mutex sync_mutex_;
  // Guarded by mutex_, but for the thread that appends, which alone changes the current one.
  std::shared_ptr<OpenLog> current_;
  std::deque<std::shared_ptr<OpenLog>> sealed_;  // oldest first; not known to be durable yet
  std::atomic<bool> suspect_ = false;            // the drive failed a write or a sync of one of them
  std::condition_variable_any sealed_or_stopping_;
  bool stopping_ = false;
  // Of the oldest sealed log, for keep_pace.
  std::atomic<Clock::time_point> settling_since_{Clock::time_point()};
  std::atomic<double> settle_took_s_{0};        // the last
  std::chrono::duration<double> owed_pause_{};  // the appending thread's

  std::thread sealer_;  // the last: it uses what is above
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
