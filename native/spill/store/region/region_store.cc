#include "spill/store/region/region_store.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "base/async_reads.h"
#include "base/steps.h"
#include "spill/store/binding_record.h"
#include "spill/store/region/durable_ends.h"
#include "spill/store/region/log_files.h"
#include "spill/store/region/log_frame.h"
#include "spill/store/region/open_logs.h"
#include "spill/store/region/region_directory.h"
#include "spill/store/region/region_logs.h"
#include "spill/store/region/region_reads.h"
#include "spill/store/region/region_recovery.h"
#include "spill/store/replaced_file.h"

namespace spillway::spill {

using rocksdb::IOStatus;
using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Bytes that the file system preallocates at a time, beyond the end of the file, whose size does not change. They count
// as used; of a small capacity they are a small share, or none. Source: guess, enough for few extents of a log of the
// default size.
constexpr std::uint64_t kMostPreallocated = 4 << 20;
constexpr std::uint64_t kLeastPreallocated = 64 << 10;
constexpr std::uint64_t kPreallocatedShare = 256;  // one in this many of the capacity

// What takes longer has waited for the drive: neither a copy nor another process takes that long. Source: guess
constexpr std::chrono::milliseconds kLong{20};

// A buffer that grew beyond this for one large write is not kept. Source: guess.
constexpr std::size_t kKeptBufferBytes = 4 << 20;

std::uint64_t preallocation_of(std::uint64_t capacity_bytes) {
  const std::uint64_t share = std::min(capacity_bytes / kPreallocatedShare, kMostPreallocated);
  return share < kLeastPreallocated ? 0 : share;
}

std::uint64_t fresh_salt() {
  std::random_device random;
  return (static_cast<std::uint64_t>(random()) << 32) | random();
}

// An iterator's reads may be waited for by another thread than began them. RocksDB's own file system waits only in the
// thread that began them, so reads on it are synchronous.
bool any_thread_may_wait(const rocksdb::FileSystem& files) {
  const auto* const reads = files.GetOptions<AsyncReads>();
  return reads != nullptr && reads->any_thread_may_wait;
}

class RegionStore final : public Store {
 public:
  RegionStore(std::unique_ptr<RegionDirectory> directory, std::uint64_t capacity_bytes)
      : capacity_bytes_(capacity_bytes),
        preallocation_(preallocation_of(capacity_bytes)),
        directory_(std::move(directory)),
        reads_asynchronously_(any_thread_may_wait(directory_->files())),
        ends_(directory_->files(), directory_->handle(), directory_->path_of(kEndsFile)),
        open_(*directory_, logs_, ends_, preallocation_, capacity_bytes) {}

  Status recover(const Each& each) override {
    const Status status = recover_logs(*directory_, logs_, ends_, each);
    is_recovered_ = status.ok();
    return status;
  }

  Status cut(GenerationId generation, std::uint64_t offset) override {
    if (!logs_.newest() && ends_.found().ends.empty() && !ends_.found().was_closed) return Status::OK();
    if (Status status = reopen_ends(generation, offset); !status.ok()) return status;
    if (Status status = remove_from(generation + 1, Only::all); !status.ok()) return status;
    const auto log = logs_.find(generation);
    if (!log) return Status::OK();
    if (offset <= log->last_record) logs_.resize(*log, std::max(offset, kLogHeaderBytes));
    return truncate_durably(*directory_, *log);
  }

  Status begin(GenerationId generation) override {
    if (Status status = reopen_ends(); !status.ok()) return status;
    if (Status status = open_.seal(); !status.ok()) return status;
    // What is left of logs in which recover found nothing whole.
    if (Status status = remove_from(generation, Only::empty); !status.ok()) return status;
    if (const auto last = logs_.newest(); last && last->name.generation >= generation) {
      return Status::InvalidArgument("generation " + std::to_string(generation) + " is not newer than " +
                                     std::to_string(last->name.generation));
    }
    auto log = std::make_shared<RegionLog>();
    log->name = {.generation = generation, .salt = fresh_salt(), .durable_before = generation};
    log->base = directory_->log_base(generation);
    if (const auto sealed = open_.sealed(); !sealed.empty()) {
      log->name.after = sealed.back()->log->name.generation;
      log->name.after_bytes = sealed.back()->log->bytes;
      log->name.durable_before = sealed.front()->log->name.generation;
    }
    auto open = std::make_shared<OpenLog>();
    const auto began = std::chrono::steady_clock::now();
    open->file = open_.take_spare(generation);
    Status status = create_log(*directory_, preallocation_, *log, &open->file);
    add_if_long(began);
    if (!status.ok()) {
      open.reset();
      directory_->files().DeleteFile(log->path(), {}, nullptr).PermitUncheckedError();
      return status;
    }
    logs_.resize(*log, kLogHeaderBytes);
    open->log = log;
    logs_.put(std::move(log));
    open_.begin(std::move(open));
    return status;
  }

  Status append(std::span<const Slice> records, std::span<std::uint64_t> offsets) override {
    OpenLog* const open = open_.appended_to();
    if (open_.has_failed() || open == nullptr) {
      return Status::IOError("the spill store takes no writes until it begins a generation");
    }
    std::uint64_t bytes = 0;
    if (Status status = check_size(records, &bytes); !status.ok()) return status;
    RegionLog& log = *open->log;
    const std::uint64_t end = log.bytes;
    const std::uint64_t durable = open->durable.load(std::memory_order_acquire);
    buffer_.clear();
    for (std::size_t i = 0; i < records.size(); ++i) {
      offsets[i] = end + buffer_.size();
      append_frame(log.name, records[i], durable, &buffer_);
    }
    open->file->PrepareWrite(end, buffer_.size(), {}, nullptr);
    const auto began = std::chrono::steady_clock::now();
    const IOStatus status = open->file->Append(buffer_, {}, nullptr);
    add_if_long(began);
    if (buffer_.capacity() > kKeptBufferBytes) buffer_ = {};
    if (!status.ok()) return open_.handle_failed_append(status);
    steps::reached("spill.region.append.written");
    logs_.resize(log, end + bytes);
    open_.pause_after(bytes);
    return status;
  }

  void end() override { open_.end(); }
  std::chrono::nanoseconds append_wait() const override { return open_.append_wait().total(); }
  void note_paced(std::chrono::nanoseconds paced) override { open_.note_paced(paced); }
  Status sync() override { return open_.sync(); }

  std::vector<GenerationId> generations() const override {
    std::vector<GenerationId> result;
    for (const auto& log : logs_.all()) {
      if (!log->is_dropped) result.push_back(log->name.generation);
    }
    return result;
  }

  Status read(GenerationId generation, std::uint64_t offset, std::uint64_t from, std::uint64_t length,
              std::string* bytes) const override {
    ReadRequest request{generation, offset, from, length, std::move(*bytes), {}};
    read_one(logs_.find(generation).get(), &request);
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
      read_together(logs_.find(generation).get(), requests, {first, last});
      first = last;
    }
  }

  std::unique_ptr<ReadsInFlight> begin_reads(std::span<ReadRequest> requests) const override {
    if (!reads_asynchronously_) return Store::begin_reads(requests);
    auto flight = std::make_unique<RegionReads>(directory_->files());
    for (ReadRequest& request : requests) flight->begin(logs_.find(request.generation), &request);
    return flight;
  }

  Status damaged(GenerationId generation, std::uint64_t offset) const override {
    const auto log = logs_.find(generation);
    return log ? spill::damaged(*log, offset) : no_such_generation(generation);
  }

  Status scan(GenerationId generation, const Each& each) const override {
    const auto log = logs_.find(generation);
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

  void prepare_drop(GenerationId generation) override {
    const auto log = logs_.find(generation);
    // Its end is said to be somewhere, or it takes records: that is the appending thread's to change, before the name.
    if (!log || !ends_.is_begun() || !open_.close_sealed(*log)) return;
    if (rename_dropped(*log).ok()) sync_drop(*log).PermitUncheckedError();
    steps::reached("spill.region.drop.prepared");
  }

  Status drop(GenerationId generation) override {
    const auto log = logs_.find(generation);
    if (!log) return no_such_generation(generation);
    if (Status status = reopen_ends(); !status.ok()) return status;
    open_.close_dropped(*log);
    if (Status status = rename_dropped(*log); !status.ok()) return status;
    ends_.remove(generation);
    return sync_drop(*log);
  }

  void release(GenerationId generation) override {
    const auto log = logs_.find(generation);
    if (!log || !directory_->is_locked()) return;
    // A file that cannot be removed still counts as used. The next recovery tries again.
    const bool is_freed = directory_->files().DeleteFile(log->path(), {}, nullptr).ok();
    steps::reached("spill.region.release.removed");
    logs_.remove(*log, is_freed);
  }

  Status read_binding(std::string* bytes) const override {
    return read_file_if_any(directory_->files(), binding_path(), bytes);
  }
  Status write_binding(const std::string& bytes) override {
    return replace_file(directory_->files(), directory_->handle(), binding_path(), bytes);
  }
  std::string binding_place() const override { return binding_path() + " from byte 0 on"; }

  Status close() override {
    if (Status status = sync(); !status.ok()) return status;
    if (!ends_.is_begun()) return Status::OK();  // nothing was changed
    return ends_.replace(logs_.ends(), /*closed=*/true, /*durably=*/true);
  }

  void unlock() override { directory_->unlock(); }

  // With what is preallocated behind the ends of the logs that are open: a block of each at most.
  std::uint64_t used_bytes() const override {
    return logs_.used_bytes() + (preallocation_ == 0 ? 0 : open_.count() * preallocation_);
  }
  std::uint64_t held_bytes() const override { return logs_.held_bytes(); }
  std::uint64_t capacity_bytes() const override { return capacity_bytes_; }

 private:
  enum class Only : std::uint8_t { empty, all };

  void add_if_long(std::chrono::steady_clock::time_point began) {
    if (const auto took = std::chrono::steady_clock::now() - began; took > kLong) open_.append_wait().add(took);
  }

  std::string binding_path() const { return directory_->path_of(kBindingFile); }

  // `bytes`: of the records with their frames.
  Status check_size(std::span<const Slice> records, std::uint64_t* bytes) const {
    for (const Slice& record : records) {
      if (record.empty()) return Status::InvalidArgument("an empty record");
      if (record.size() > std::numeric_limits<std::uint32_t>::max() - kFrameHeaderBytes) {
        return Status::NoSpace("the spill store takes no record that is so long");
      }
      *bytes += kFrameHeaderBytes + record.size();
    }
    if (used_bytes() + *bytes <= capacity_bytes_) return {};
    return Status::NoSpace("the spill store's capacity is used up");
  }

  // What an earlier process said of its end ceases to be true with the first change. In its place comes what recover
  // has made durable, but for what is about to be cut.
  Status reopen_ends(GenerationId last = ~GenerationId{0}, std::uint64_t offset = ~std::uint64_t{0}) {
    if (ends_.is_begun()) return Status::OK();
    std::vector<DurableEnd> kept = is_recovered_ ? logs_.ends() : std::vector<DurableEnd>();
    std::erase_if(kept, [&](const DurableEnd& end) { return end.generation > last; });
    if (!kept.empty() && kept.back().generation == last) {
      kept.back().bytes = std::min(kept.back().bytes, std::max(offset, kLogHeaderBytes));
    }
    // Where there was nothing that could become wrong, nothing has to reach the drive: in workload A the first write of
    // a burst waited 340 ms for it (plans/kvaccel-a.toml, on files).
    const FoundEnds& found = ends_.found();
    return ends_.replace(kept, /*closed=*/false, /*durably=*/!found.ends.empty() || found.was_closed);
  }

  // Removes the logs from `first` on, the newest first, each durably, so that no power loss leaves a gap.
  Status rename_dropped(RegionLog& log) {
    if (log.is_dropped) return Status::OK();
    const std::string from = log.path();
    logs_.set_dropped(log, true);
    const IOStatus status = directory_->files().RenameFile(from, log.path(), {}, nullptr);
    if (!status.ok()) logs_.set_dropped(log, false);
    if (status.ok()) steps::reached("spill.region.drop.renamed");
    return status;
  }

  Status sync_drop(RegionLog& log) {
    if (log.is_drop_durable) return Status::OK();
    const Status status = directory_->sync(rocksdb::DirFsyncOptions(log.path()));
    log.is_drop_durable = status.ok();
    return status;
  }

  Status remove_from(GenerationId first, Only only) {
    for (auto log = logs_.newest(); log && log->name.generation >= first; log = logs_.newest()) {
      if (only == Only::empty && log->bytes > kLogHeaderBytes) break;
      const IOStatus status = directory_->files().DeleteFile(log->path(), {}, nullptr);
      if (!status.ok() && !status.IsNotFound()) return status;
      const rocksdb::DirFsyncOptions why(rocksdb::DirFsyncOptions::kFileDeleted);
      if (Status synced = directory_->sync(why); !synced.ok()) return synced;
      logs_.remove(*log, /*is_freed=*/true);
    }
    return Status::OK();
  }

  const std::uint64_t capacity_bytes_;
  const std::uint64_t preallocation_;
  const std::unique_ptr<RegionDirectory> directory_;
  const bool reads_asynchronously_;
  RegionLogs logs_;
  DurableEnds ends_;
  OpenLogs open_;
  bool is_recovered_ = false;  // and what was found is durable
  std::string buffer_;         // of the thread that appends
};

}  // namespace

Status open_region_store(const RegionOptions& options, std::unique_ptr<Store>* store) {
  std::unique_ptr<RegionDirectory> directory;
  const Status status = RegionDirectory::open(options.file_system, options.directory, &directory);
  if (status.ok()) *store = std::make_unique<RegionStore>(std::move(directory), options.capacity_bytes);
  return status;
}

}  // namespace spillway::spill
