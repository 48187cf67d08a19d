#include "spill/store/region/open_logs.h"

#include <algorithm>
#include <utility>

#include "base/steps.h"
#include "spill/store/region/log_files.h"

namespace spillway::spill {

using rocksdb::IOStatus;
using rocksdb::Status;

namespace {

// What may be on its way to the drive, of a region of this capacity. Source: guess; a drive's write of a second or
// less, and well below what Linux lets be dirty (vm.dirty_ratio: a fifth of memory).
std::int64_t most_unwritten(std::uint64_t capacity_bytes) {
  return static_cast<std::int64_t>(std::clamp<std::uint64_t>(capacity_bytes / 4, 16 << 20, 256 << 20));
}
// It leaves in parts of this at least. Of the drive's rate they show enough, and are few. Source: guess
constexpr std::int64_t kChunks = 16;
// Open files. Logs are small then.
constexpr std::size_t kMostSealed = 16;

Status cannot_sync() { return Status::IOError("the spill store cannot sync until it begins a generation"); }

void close(OpenLog& open) {
  if (const auto file = std::move(open.file)) file->Close({}, nullptr).PermitUncheckedError();
}

}  // namespace

OpenLogs::OpenLogs(const RegionDirectory& directory, RegionLogs& logs, DurableEnds& ends, std::uint64_t preallocation,
                   std::uint64_t capacity_bytes)
    : directory_(directory),
      logs_(logs),
      ends_(ends),
      spares_(directory),
      preallocation_(preallocation),
      most_unwritten_(most_unwritten(capacity_bytes)),
      pacer_(static_cast<std::uint64_t>(most_unwritten_), static_cast<std::uint64_t>(most_unwritten_ / 8)) {}

OpenLogs::~OpenLogs() {
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  work_or_stopping_.notify_one();
  spares_wanted_or_stopping_.notify_one();
  if (thread_.joinable()) thread_.join();
  if (spares_thread_.joinable()) spares_thread_.join();
  const MutexLock no_sync(sync_mutex_);
  while (!sealed().empty()) close_oldest_sealed();
  close_current();
}

std::shared_ptr<OpenLog> OpenLogs::current() const {
  const MutexLock lock(mutex_);
  return current_;
}

void OpenLogs::count_logs() {
  sealed_count_.store(sealed_.size(), std::memory_order_release);
  count_.store(sealed_.size() + (current_ ? 1 : 0), std::memory_order_release);
}

std::deque<std::shared_ptr<OpenLog>> OpenLogs::sealed() const {
  const MutexLock lock(mutex_);
  return sealed_;
}

void OpenLogs::begin(std::shared_ptr<OpenLog> log) {
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { write_out_in_background(); });
    spares_thread_ = std::thread([this] { make_spares_in_background(); });
  }
  log->written = log->log->bytes.load();
  const MutexLock lock(mutex_);
  current_ = std::move(log);
  appended_to_ = current_.get();
  spares_after_ = current_->log->name.generation;
  count_logs();
  spares_wanted_or_stopping_.notify_one();
}

Status OpenLogs::seal() {
  if (has_failed() || unwritten_ >= most_unwritten_ || sealed_count_.load(std::memory_order_acquire) >= kMostSealed) {
    const AppendWait::Measure measure(wait_);
    const MutexLock no_sync(sync_mutex_);
    const Status status = has_failed() ? replace_by_copies() : wait_for_the_drive();
    if (!status.ok()) return status;
  }
  const std::shared_ptr<OpenLog> current = this->current();
  if (!current) return {};
  if (sync_mutex_.try_lock()) {
    const bool is_durable = sealed().empty() && current->durable == current->log->bytes;
    if (is_durable) close_current();
    sync_mutex_.unlock();
    if (is_durable) return {};
  }
  const MutexLock lock(mutex_);
  seal_current();
  return {};
}

void OpenLogs::end() {
  if (has_failed() || appended_to_ == nullptr || sealed_count_.load(std::memory_order_acquire) >= kMostSealed) return;
  const MutexLock lock(mutex_);
  seal_current();
}

void OpenLogs::seal_current() {
  sealed_.push_back(std::move(current_));
  appended_to_ = nullptr;
  count_logs();
  work_or_stopping_.notify_one();
}

bool OpenLogs::has_work() const {
  return !has_failed() && (!sealed_.empty() || (current_ && !is_current_written_.load(std::memory_order_acquire)));
}

void OpenLogs::write_out_in_background() {
  MutexLock lock(mutex_);
  for (;;) {
    while (!is_stopping_ && !has_work()) work_or_stopping_.wait(mutex_);
    if (is_stopping_) return;
    const bool has_sealed = !sealed_.empty();
    lock.unlock();
    {
      const MutexLock no_sync(sync_mutex_);
      const Status status = has_sealed ? sync_oldest_sealed() : write_out_current();
      status.PermitUncheckedError();  // the next append or sync returns the error
    }
    lock.lock();
  }
}

void OpenLogs::make_spares_in_background() {
  MutexLock lock(mutex_);
  for (;;) {
    while (!is_stopping_ && spares_after_ == 0) spares_wanted_or_stopping_.wait(mutex_);
    if (is_stopping_) return;
    const GenerationId begun = std::exchange(spares_after_, 0);
    for (GenerationId ahead = 1; ahead <= SpareLogs::kAhead && !is_stopping_ && spares_after_ == 0; ++ahead) {
      lock.unlock();
      spares_.make(begun + ahead);
      lock.lock();
    }
  }
}

Status OpenLogs::sync() {
  const MutexLock one_at_a_time(sync_mutex_);
  for (;;) {
    std::shared_ptr<OpenLog> open;
    bool has_sealed = false;
    {
      // Both at once: the current one may be sealed at any moment.
      const MutexLock lock(mutex_);
      has_sealed = !sealed_.empty();
      open = current_;
    }
    if (has_failed()) return cannot_sync();
    if (!has_sealed) return open ? sync_file(*open) : Status::OK();
    if (Status status = sync_oldest_sealed(); !status.ok()) return status;
  }
}

Status OpenLogs::wait_for_the_drive() {
  while (count() > 0 && (unwritten_ >= most_unwritten_ || sealed().size() >= kMostSealed)) {
    const Status status = sealed().empty() ? write_out_current() : sync_oldest_sealed();
    if (!status.ok()) return status;
  }
  return has_failed() ? cannot_sync() : Status::OK();
}

Status OpenLogs::sync_oldest_sealed() {
  if (has_failed()) return cannot_sync();
  const auto sealed = this->sealed();
  if (sealed.empty()) return {};
  if (Status status = sync_file(*sealed.front()); !status.ok()) return status;
  steps::reached("spill.region.seal.synced");
  close_oldest_sealed();
  return {};
}

// To the drive, and not made durable: a sync that comes later has little left to do.
Status OpenLogs::write_out_current() {
  if (has_failed()) return cannot_sync();
  const auto current = this->current();
  is_current_written_.store(true, std::memory_order_release);
  if (!current) return {};
  const std::uint64_t end = current->log->bytes.load(std::memory_order_acquire);
  IOStatus status = current->file->RangeSync(0, end, {}, nullptr);
  if (status.IsNotSupported()) status = current->file->Sync({}, nullptr);
  if (status.ok()) {
    note_written(*current, end);
  } else {
    has_failed_ = true;
  }
  return status;
}

void OpenLogs::note_written(OpenLog& open, std::uint64_t end) {
  const std::uint64_t before = open.written.exchange(end, std::memory_order_relaxed);
  unwritten_.fetch_sub(static_cast<std::int64_t>(end - before), std::memory_order_release);
}

Status OpenLogs::sync_file(OpenLog& open) {
  const std::uint64_t end = open.log->bytes.load(std::memory_order_acquire);
  const IOStatus status = open.file->Sync({}, nullptr);
  if (status.ok()) {
    open.durable.store(end, std::memory_order_release);
    ends_.add({open.log->name.generation, open.log->name.salt, end});
    note_written(open, end);
  } else {
    has_failed_ = true;
  }
  return status;
}

void OpenLogs::close_oldest_sealed() {
  std::shared_ptr<OpenLog> oldest;
  {
    const MutexLock lock(mutex_);
    oldest = std::move(sealed_.front());
    sealed_.pop_front();
    count_logs();
  }
  note_written(*oldest, oldest->log->bytes);  // or nobody needs it any more
  close(*oldest);
}

void OpenLogs::close_current() {
  std::shared_ptr<OpenLog> closed;
  {
    const MutexLock lock(mutex_);
    closed = std::exchange(current_, nullptr);
    appended_to_ = nullptr;
    count_logs();
  }
  if (!closed) return;
  note_written(*closed, closed->log->bytes);
  close(*closed);
}

bool OpenLogs::has(const RegionLog& log) const {
  const auto is_of = [&](const auto& open) { return open && open->log.get() == &log; };
  return is_of(current()) || std::ranges::any_of(sealed(), is_of);
}

bool OpenLogs::close_sealed(const RegionLog& log) {
  const MutexLock one_at_a_time(sync_mutex_);
  while (has(log)) {
    const auto current = this->current();
    if ((current && current->log.get() == &log) || !sync_oldest_sealed().ok()) return false;
  }
  return true;
}

void OpenLogs::close_dropped(const RegionLog& log) {
  const auto current = this->current();
  const bool is_current = current && current->log.get() == &log;
  if (!has(log)) return;
  const MutexLock no_sync(sync_mutex_);
  for (;;) {
    const auto left = this->sealed();
    if (left.empty() || left.front()->log->name.generation > log.name.generation) break;
    close_oldest_sealed();
  }
  if (is_current) close_current();
}

void OpenLogs::pause_after(std::uint64_t bytes) {
  const auto more = static_cast<std::int64_t>(bytes);
  const std::int64_t unwritten = unwritten_.fetch_add(more, std::memory_order_acq_rel) + more;
  const OpenLog& current = *appended_to_;
  const auto its = static_cast<std::int64_t>(current.log->bytes.load(std::memory_order_relaxed) -
                                             current.written.load(std::memory_order_relaxed));
  if (its >= most_unwritten_ / kChunks && is_current_written_.exchange(false, std::memory_order_acq_rel)) {
    const MutexLock lock(mutex_);
    work_or_stopping_.notify_one();
  }
  const double free = 1 - static_cast<double>(unwritten) / static_cast<double>(most_unwritten_);
  if (pacer_.is_idle({free})) return;
  const auto pause = pacer_.pause({free}, bytes, WritePacer::Clock::now()) - paced_;
  if (pause < WritePacer::kShortest) return;
  const AppendWait::Measure measure(wait_);
  std::this_thread::sleep_for(pause);
}

// --- After a failure

Status OpenLogs::replace_by_copies() {
  for (auto sealed = this->sealed(); !sealed.empty(); sealed = this->sealed()) {
    if (Status status = replace(*sealed.front()); !status.ok()) return status;
    close_oldest_sealed();
  }
  if (const auto current = this->current()) {
    if (Status status = replace(*current); !status.ok()) return status;
  }
  close_current();
  has_failed_ = false;
  return {};
}

Status OpenLogs::replace(OpenLog& open) {
  close(open);
  std::shared_ptr<RegionLog> copy;
  if (Status status = replace_by_copy(directory_, *open.log, &copy); !status.ok()) return status;
  logs_.put(std::move(copy));
  return {};
}

Status OpenLogs::handle_failed_append(const IOStatus& failed) {
  const MutexLock no_sync(sync_mutex_);
  const std::shared_ptr<OpenLog> current = this->current();
  IOStatus status = failed;
  if (failed.IsNoSpace()) {
    // The drive is full. What it has is whole, but the beginning of what it could not take may be there.
    const RegionLog& log = *current->log;
    std::uint64_t file_bytes = 0;
    status = directory_.files().GetFileSize(log.path(), {}, &file_bytes, nullptr);
    if (status.ok() && file_bytes != log.bytes) status = truncate_to_end(*current);
    if (status.ok()) return failed;
  }
  has_failed_ = true;
  return status;
}

IOStatus OpenLogs::truncate_to_end(OpenLog& open) {
  close(open);
  std::unique_ptr<rocksdb::FSWritableFile> file;
  IOStatus status = reopen_truncated(directory_, *open.log, &file);
  if (!status.ok()) return status;
  file->SetPreallocationBlockSize(preallocation_);
  open.file = std::move(file);
  return status;
}

}  // namespace spillway::spill
