#include "engine/vlog/collector.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/steps.h"
#include "engine/vlog/record_reader.h"

namespace spillway::engine::vlog {

namespace {

// Records of a segment whose liveness is checked before it is collected. With 400 of them the standard deviation of the
// garbage share is at most 2.5 % (at a share of a half). Source: p(1-p)/n.
constexpr std::size_t kSampleRecords = 400;
// Bytes moved in one commit. Source: guess; writers wait for it no longer than for a group of their own.
constexpr std::uint64_t kChunkBytes = 256 << 10;
constexpr std::size_t kChunkRecords = 1024;
// Most bytes appended between two checks of the drive's free space; with small segments a quarter of one, so that the
// reserve is not used up in between. Source: guess.
constexpr std::uint64_t kMaxCheckIntervalBytes = 1 << 20;
// Writers wait when less is free: a segment for the collector's output, and as much for the tree meanwhile, but not
// less than this, because the size of its tables does not depend on that of a segment. Source: guess.
constexpr std::uint64_t kTreeReserveBytes = 256 << 10;
// If every segment has less garbage, collection frees little and costs much. Source: guess; twice the sample's error.
constexpr double kLeastGarbage = 0.05;
// Segments that are sampled for each new segment of the log: the tail, and the next one in turn.
constexpr std::size_t kSamplesPerSegment = 2;
// When the drive is short of space all segments are sampled. One in this many is collected before they are sampled
// again, because sampling a segment may read all of it. Source: the number of segments on a full drive by default.
constexpr std::size_t kSampledForEach = 8;
// Delay before a retry after the drive had no space for the moved records. It doubles with each retry up to the limit,
// because each may read part of all segments. Source: guess.
constexpr std::chrono::milliseconds kFirstRetry{100};
constexpr std::chrono::milliseconds kLastRetry{10'000};

// A record that owns its bytes.
class Copied {
 public:
  explicit Copied(const LocatedRecord& located)
      : key_(located.record.key), value_(located.record.value), located_(located) {}
  LocatedRecord located() const {
    LocatedRecord copy = located_;
    copy.record.key = key_;
    copy.record.value = value_;
    return copy;
  }

 private:
  std::string key_;
  std::string value_;
  LocatedRecord located_;
};

}  // namespace

Collector::Collector(Store& store, CollectorOptions options, std::function<StoreSpace()> space)
    : store_(store), options_(options), space_(std::move(space)) {}

void Collector::start() {
  if (!options_.gc) return;
  stop_now_ = false;
  wake_requested_ = true;
  retry_after_ = kFirstRetry;
  thread_ = std::thread([this] { run(); });
}

void Collector::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    stop_now_ = true;
    writers_must_wait_ = false;
    work_.notify_all();
    done_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Collector::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    idle_ = !wake_requested_;
    done_.notify_all();
    work_.wait(lock, [&] { return wake_requested_ || stopping_; });
    if (stopping_) return;
    wake_requested_ = false;
    retry_now_ = false;
    idle_ = false;
    lock.unlock();
    auto more = step();
    check_space();
    lock.lock();
    if (!more) {
      failed_ = more.status();
      writers_must_wait_ = false;  // the write itself returns that the drive is full
      idle_ = true;
      done_.notify_all();
      if (failed_.fault() != Fault::drive_full) return;
      wait_to_retry(lock);
      continue;
    }
    retry_after_ = kFirstRetry;
    // If nothing can be gained, writers that wait for space are released at once.
    if (*more || writers_must_wait_) wake_requested_ = true;
  }
}

// Failed writes wake the collector all the time. During this wait they have no effect.
void Collector::wait_to_retry(std::unique_lock<std::mutex>& lock) {
  work_.wait_for(lock, retry_after_, [&] { return retry_now_ || stopping_; });
  retry_after_ = std::min(2 * retry_after_, kLastRetry);
  if (stopping_) return;
  failed_ = Status::ok();
  wake_requested_ = true;
}

Status Collector::failure() const {
  const std::lock_guard lock(mutex_);
  return failed_.fault() == Fault::drive_full ? Status::ok() : failed_;
}

// --- When to collect

std::uint64_t Collector::reserve_bytes() const {
  const std::uint64_t segment_bytes = store_.log().segment_bytes();
  return segment_bytes + std::max(segment_bytes, kTreeReserveBytes);
}

bool Collector::is_short_of_space() const {
  const StoreSpace now = space_();
  return static_cast<double>(now.free_bytes) <
         std::max(options_.gc_free_ratio * static_cast<double>(now.capacity_bytes),
                  static_cast<double>(reserve_bytes()));
}

void Collector::check_space() {
  // The attempt samples all segments, so it is repeated only when there may be new garbage.
  const std::uint64_t due = std::max(store_.log().segment_bytes(), store_.log().bytes() / 8);
  if (no_gain_ && store_.appended_bytes() - no_gain_at_ >= due) no_gain_ = false;
  const bool hold = !no_gain_ && !stop_now_ && space_().free_bytes < reserve_bytes();
  if (writers_must_wait_ == hold) return;
  const std::lock_guard lock(mutex_);
  writers_must_wait_ = hold && !stopping_ && failed_.is_ok();
  done_.notify_all();
}

void Collector::note_write() {
  if (!options_.gc) return;
  const std::uint64_t appended = store_.appended_bytes();
  std::uint64_t looked_at = space_checked_at_;
  if (appended - looked_at < std::min(kMaxCheckIntervalBytes, store_.log().segment_bytes() / 4) ||
      !space_checked_at_.compare_exchange_strong(looked_at, appended))
    return;
  check_space();
  const std::size_t segments = store_.log().segments()->size();
  if (segments_seen_.exchange(segments) == segments && !is_short_of_space()) return;
  const std::lock_guard lock(mutex_);
  wake_requested_ = true;
  work_.notify_one();
}

void Collector::wait_for_space() {
  std::unique_lock lock(mutex_);
  wake_requested_ = true;
  work_.notify_one();
  done_.wait(lock, [&] { return !writers_must_wait_; });
}

Status Collector::settle(const std::atomic<bool>& stop) {
  if (!options_.gc) return Status::ok();
  // All segments are sampled again. Everything is flushed first, so that no retired segment has to wait for the tree's
  // tables.
  if (Status status = store_.flush(); !status) return status;
  std::unique_lock lock(mutex_);
  sample_all_ = true;
  wake_requested_ = true;
  idle_ = false;
  if (failed_.fault() == Fault::drive_full) {
    failed_ = Status::ok();
    retry_now_ = true;
  }
  work_.notify_one();
  constexpr std::chrono::milliseconds kLook{10};
  while (!stop && !stopping_ && failed_ && !(idle_ && !wake_requested_)) done_.wait_for(lock, kLook);
  return failed_;
}

// --- What to collect

std::vector<std::shared_ptr<Segment>> Collector::candidates() const {
  const auto all = store_.log().segments();
  std::vector<std::shared_ptr<Segment>> found;
  for (const auto& [number, segment] : *all) {
    if (number == all->rbegin()->first) continue;
    const bool gone = std::any_of(retired_.begin(), retired_.end(), [&, &segment = segment](const Retired& one) {
      return one.segment == segment->number();
    });
    if (!gone) found.push_back(segment);
  }
  return found;
}

std::shared_ptr<Segment> Collector::next_to_sample() {
  const auto all = candidates();
  const std::uint32_t newest = store_.log().end().segment;
  if (const std::uint32_t begun = newest - std::exchange(newest_seen_, newest); begun > 0) {
    samples_left_ = std::min(all.size(), samples_left_ + begun * kSamplesPerSegment);
  }
  if (sample_all_.exchange(false)) samples_left_ = all.size();
  if (samples_left_ == 0 || all.empty()) return nullptr;
  --samples_left_;
  if (std::exchange(tail_is_next_, !tail_is_next_)) return all.front();
  const auto after = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one->number() > cursor_; });
  const auto& chosen = after == all.end() ? all.front() : *after;
  cursor_ = chosen->number();
  return chosen;
}

Result<bool> Collector::step() {
  release();
  if (!no_gain_ && is_short_of_space()) return step_short_of_space();
  const std::shared_ptr<Segment> segment = next_to_sample();
  if (!segment) return false;
  auto garbage = sample(segment);
  if (!garbage) return garbage.status();
  if (*garbage < options_.gc_garbage_ratio) return true;  // another one may have enough
  if (Status status = collect(segment); !status)
    return status.fault() == Fault::stopped ? Result<bool>(false) : Result<bool>(status);
  release();
  return true;
}

Result<bool> Collector::step_short_of_space() {
  struct Sampled {
    double garbage = 0;
    std::shared_ptr<Segment> segment;
  };
  std::vector<Sampled> worst;
  for (const auto& segment : candidates()) {
    auto garbage = sample(segment);
    if (!garbage) return garbage.status();
    if (stop_now_) return false;
    worst.push_back({.garbage = *garbage, .segment = segment});
  }
  const std::size_t most = (worst.size() + kSampledForEach - 1) / kSampledForEach;
  std::erase_if(worst, [](const Sampled& one) { return one.garbage <= kLeastGarbage; });
  if (worst.empty()) {
    note_no_gain();
    return false;
  }
  std::stable_sort(worst.begin(), worst.end(),
                   [](const Sampled& one, const Sampled& other) { return one.garbage > other.garbage; });
  if (worst.size() > most) worst.resize(most);
  for (Sampled& one : worst) {
    Status status = collect(one.segment);
    one.segment = nullptr;  // its file is removed when its last user is done
    // The space is needed now, not when the memtable is full.
    if (status) status = store_.flush();
    if (!status) return status.fault() == Fault::stopped ? Result<bool>(false) : Result<bool>(status);
    release();
    check_space();
    if (stop_now_ || !is_short_of_space()) break;
  }
  return true;
}

void Collector::note_no_gain() {
  no_gain_at_ = store_.appended_bytes();
  no_gain_ = true;
}

Result<std::vector<std::size_t>> Collector::find_live(const std::vector<LocatedRecord>& chunk) const {
  // In key order, so that each block of the tree is read once for all keys in it.
  std::vector<std::size_t> asked;
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    if (chunk[i].record.kind == RecordKind::put) asked.push_back(i);
  }
  std::sort(asked.begin(), asked.end(),
            [&](std::size_t a, std::size_t b) { return chunk[a].record.key < chunk[b].record.key; });
  std::vector<std::size_t> live;
  TreeView tree = store_.view();
  for (const std::size_t i : asked) {
    auto lives = tree.is_live(chunk[i].record.key, chunk[i].address);
    if (!lives) return lives.status();
    if (*lives) live.push_back(i);
  }
  std::sort(live.begin(), live.end());
  return live;
}

Result<double> Collector::sample(const std::shared_ptr<Segment>& segment) {
  RecordReader reader(segment, kHeaderBytes, segment->end(), fs::Cause::blob);
  TreeView tree = store_.view();
  std::uint64_t all_bytes = 0;
  std::uint64_t live_bytes = 0;
  for (std::size_t i = 0; i < kSampleRecords && !stop_now_; ++i) {
    auto located = reader.next();
    if (!located) return located.status();
    if (!*located) break;
    const auto& [record, address] = **located;
    auto live = record.kind == RecordKind::put ? tree.is_live(record.key, address) : Result<bool>(false);
    if (!live) return live.status();
    all_bytes += address.length;
    if (*live) live_bytes += address.length;
  }
  const double garbage = all_bytes == 0 ? 1.0 : 1.0 - static_cast<double>(live_bytes) / static_cast<double>(all_bytes);
  garbage_permille_ = static_cast<std::uint64_t>(std::llround(garbage * 1000));
  return garbage;
}

Status Collector::relocate_chunk(const std::vector<LocatedRecord>& chunk) {
  // The watch begins before the tree is read, so that every later overwrite is noticed.
  std::unordered_set<std::string> keys;
  for (const LocatedRecord& one : chunk) {
    if (one.record.kind == RecordKind::put) keys.emplace(one.record.key);
  }
  store_.watch(std::move(keys));
  steps::reached("vlog.gc.watching");
  auto live = find_live(chunk);
  if (!live) {
    (void)store_.move({});  // ends the watch
    return live.status();
  }
  steps::reached("vlog.gc.asked");
  std::vector<Write> moves;
  for (const std::size_t i : *live) {
    moves.push_back({.kind = Write::Kind::put, .key = chunk[i].record.key, .value = chunk[i].record.value});
  }
  Status status = store_.move(moves);
  steps::reached("vlog.gc.moved");
  return status;
}

Status Collector::collect(const std::shared_ptr<Segment>& segment) {
  is_collecting_ = true;
  Status status = relocate_live(segment);
  is_collecting_ = false;
  if (status) retired_.push_back({.segment = segment->number(), .moved_to = store_.log().end()});
  return status;
}

Status Collector::relocate_live(const std::shared_ptr<Segment>& segment) {
  RecordReader reader(segment, kHeaderBytes, segment->end(), fs::Cause::blob);
  for (bool more = true; more;) {
    if (stop_now_) return Status::error(Fault::stopped, "garbage collection was asked to end");
    std::deque<Copied> copies;
    std::vector<LocatedRecord> chunk;
    for (std::uint64_t bytes = 0; bytes < kChunkBytes && copies.size() < kChunkRecords;) {
      auto located = reader.next();
      if (!located) return located.status();
      more = located->has_value();
      if (!more) break;
      bytes += (*located)->address.length;
      copies.emplace_back(**located);
      chunk.push_back(copies.back().located());
    }
    for (const LocatedRecord& one : chunk) read_bytes_ += one.address.length;
    if (Status status = relocate_chunk(chunk); !status) return status;
  }
  if (reader.at() == segment->end()) return Status::ok();
  return Status::io_error("the value log is damaged: there is no record at byte " + std::to_string(reader.at()) +
                          " of " + segment_name(segment->number()) + ", which is therefore not collected");
}

void Collector::release() {
  const Position durable = store_.durable();
  while (!retired_.empty() && retired_.front().moved_to <= durable) {
    const auto all = store_.log().segments();
    const auto one = all->find(retired_.front().segment);
    if (one != all->end()) removed_bytes_ += one->second->file_bytes();
    ++removed_segments_;
    steps::reached("vlog.gc.removing");
    store_.log().remove(retired_.front().segment);
    retired_.pop_front();
  }
}

void Collector::add_statistics(std::map<std::string, std::uint64_t>& figures) const {
  figures["vlog.gc_read_bytes"] = read_bytes_;
  figures["vlog.gc_removed_bytes"] = removed_bytes_;
  figures["vlog.gc_removed_segments"] = removed_segments_;
}

}  // namespace spillway::engine::vlog
