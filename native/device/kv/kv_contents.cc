#include "device/kv/kv_contents.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/steps.h"
#include "base/store_last.h"

namespace spillway::device {
namespace {

using ssd::KvKey;

constexpr std::array<char, 16> kContentsMagic = {'S', 'P', 'I', 'L', 'L', 'W', 'A', 'Y', '-', 'K', 'V', 0, 0, 0, 0, 1};
constexpr std::uint64_t kHeadBytes = 4096;       // of the file; segments follow
constexpr std::uint64_t kSegmentHeadBytes = 64;  // of a segment; records follow
constexpr std::uint64_t kLeastSegmentBytes = 1 << 20;
// Bytes of the file that are allocated at once. Source: guess
constexpr std::uint64_t kSpaceStep = 1 << 20;
// The first word of a record includes its segment's epoch, so remains of an earlier use of the segment do not match.
constexpr std::uint64_t kCommitted = 0x5350'4C57'4B56'0000;
constexpr std::uint64_t kInFlight = 0xD350'4C57'4B56'0000;
constexpr std::uint64_t kAborted = 0x7350'4C57'4B56'0000;  // its command failed

struct Head {
  std::array<char, 16> magic = kContentsMagic;
  std::uint64_t segment_bytes = 0;
  std::uint64_t segments = 0;
  std::uint64_t next_epoch = 1;  // never given to a segment twice
  // A range that is being removed: set before the first pair is flagged dead, cleared after the last.
  std::uint64_t removing = 0;
  ssd::KvRange range;
};
static_assert(sizeof(Head) < kHeadBytes);

struct Record {
  std::uint64_t state = 0;  // written last
  std::uint64_t bytes = 0;  // of the whole record, a multiple of 8
  std::uint64_t sequence = 0;
  std::uint64_t pairs = 0;
};

struct Pair {
  std::array<std::uint8_t, ssd::kMaxKeyBytes> key{};
  std::uint32_t value_bytes = 0;
  std::uint8_t key_bytes = 0;
  std::uint8_t dead = 0;  // replaced or deleted
  std::uint16_t zero = 0;
};
static_assert(sizeof(Record) == 32 && sizeof(Pair) == 24);

std::uint64_t pair_bytes(std::uint64_t value_bytes) { return (sizeof(Pair) + value_bytes + 7) / 8 * 8; }

KvKey key_of(const Pair& pair) {
  return KvKey(std::string_view(reinterpret_cast<const char*>(pair.key.data()), pair.key_bytes));
}

Status host_error(const std::string& path, const char* what) {
  return Status::io_error(path + ": " + what + ": " + std::strerror(errno));
}

}  // namespace

KvContents::~KvContents() {
  if (base_ != nullptr) munmap(base_, size_);
  if (descriptor_ >= 0) close(descriptor_);
}

// --- Opening

Result<std::unique_ptr<KvContents>> KvContents::open(const std::string& path, std::uint64_t capacity_bytes,
                                                     std::uint64_t largest_record) {
  std::unique_ptr<KvContents> contents(new KvContents());
  if (Status status = contents->map_file(path, capacity_bytes, largest_record); !status) return status;
  if (Status status = contents->recover(path); !status) return status;
  return contents;
}

Status KvContents::map_file(const std::string& path, std::uint64_t capacity_bytes, std::uint64_t largest_record) {
  const std::string name = path.empty() ? "key-value contents in memory" : path;
  descriptor_ = path.empty() ? memfd_create("spillway-kv", MFD_CLOEXEC)
                             : ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) return host_error(name, "cannot be opened");
  if (!path.empty() && flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    return Status::bad_input(name + ": is in use by another process or drive; close it there");
  }
  struct stat found {};
  if (fstat(descriptor_, &found) != 0) return host_error(name, "cannot be looked at");

  // Pairs are some bytes larger here than in a drive. With twice the capacity, the segment with the least live data is
  // at most half live, and cleaning it frees as much as it copies.
  const std::uint64_t record = 4 * largest_record + sizeof(Record) + kSegmentHeadBytes;
  Head head;
  head.segment_bytes = std::bit_ceil(std::max(kLeastSegmentBytes, record));
  head.segments = 2 * (4 * capacity_bytes / head.segment_bytes + 1) + 3;
  size_ = kHeadBytes + head.segments * head.segment_bytes;
  const bool is_new = found.st_size == 0;
  if (is_new && ftruncate(descriptor_, static_cast<off_t>(size_)) != 0) return host_error(name, "cannot be made large");
  if (!is_new && static_cast<std::uint64_t>(found.st_size) != size_) {
    return Status::bad_input(name + ": is not the contents of this key-value namespace: it has " +
                             std::to_string(found.st_size) + " bytes, not " + std::to_string(size_) +
                             "; name another file, or the drive it was made with");
  }
  void* const mapped = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (mapped == MAP_FAILED) return host_error(name, "cannot be mapped");
  base_ = static_cast<unsigned char*>(mapped);
  segment_bytes_ = head.segment_bytes;
  segments_.resize(head.segments);
  Head* const there = at<Head>(0);
  // A process that was killed while it created the file leaves an incomplete magic, whose last character is written
  // last.
  const bool is_begun = there->magic.back() == 0 &&
                        std::equal(kContentsMagic.begin(), kContentsMagic.end(), there->magic.begin(),
                                   [](char wanted, char found_one) { return found_one == wanted || found_one == 0; });
  if (is_begun) {
    head.magic.back() = 0;
    *there = head;
    store_last(&there->magic.back(), kContentsMagic.back());
  }
  if (there->magic != kContentsMagic || there->segment_bytes != head.segment_bytes ||
      there->segments != head.segments) {
    return Status::bad_input(name +
                             ": is not the contents of this key-value namespace (from byte 0 on); name another file");
  }
  return {};
}

Status KvContents::recover(const std::string& path) {
  std::map<KvKey, Version> versions;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    segments_[i].epoch = *at<std::uint64_t>(kHeadBytes + i * segment_bytes_);
    if (segments_[i].epoch == 0) continue;
    if (!recover_segment(i, versions)) {
      return Status::bad_input(path + ": is damaged: segment " + std::to_string(i) +
                               " has a record that does not fit it; remove the file");
    }
  }
  const Head& head = *at<Head>(0);
  if (head.removing != 0) remove_range(head.range);
  for (std::size_t i = 0; i < segments_.size(); ++i) free_if_dead(i);
  release_free_segments();
  return {};
}

// Punches holes for free segments, if the file system supports it.
void KvContents::release_free_segments() {
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const std::size_t first = i;
    while (i < segments_.size() && segments_[i].epoch == 0) ++i;
    const auto begin = static_cast<off_t>(kHeadBytes + first * segment_bytes_);
    const auto end = static_cast<off_t>(kHeadBytes + i * segment_bytes_);
    const off_t data = lseek(descriptor_, begin, SEEK_DATA);
    if (begin == end || data < 0 || data >= end) continue;
    static_cast<void>(fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, end - begin));
  }
}

// False if the segment is damaged.
bool KvContents::recover_segment(std::size_t segment, std::map<KvKey, Version>& versions) {
  Segment& s = segments_[segment];
  const std::uint64_t begin = kHeadBytes + segment * segment_bytes_;
  const std::uint64_t end = begin + segment_bytes_;
  s.tail = begin + kSegmentHeadBytes;
  while (s.tail + sizeof(Record) <= end) {
    const Record& record = *at<Record>(s.tail);
    const std::uint64_t state = record.state - s.epoch;
    if (state != kCommitted && state != kInFlight && state != kAborted) break;
    if (record.bytes < sizeof(Record) || record.bytes % 8 != 0 || record.bytes > end - s.tail) return false;
    next_sequence_ = std::max(next_sequence_, record.sequence + 1);
    const std::uint64_t record_end = s.tail + record.bytes;
    if (state == kInFlight) {
      ++s.in_flight;
      left_over_.push_back(s.tail);
    }
    std::uint64_t offset = s.tail + sizeof(Record);
    for (std::uint32_t i = 0; i < record.pairs; ++i) {
      if (offset + sizeof(Pair) > record_end) return false;
      const Pair& pair = *at<Pair>(offset);
      if (pair.key_bytes > ssd::kMaxKeyBytes || pair_bytes(pair.value_bytes) > record_end - offset) return false;
      const Place place{offset, pair.value_bytes};
      offset += pair_bytes(pair.value_bytes);
      if (pair.dead != 0 || state != kCommitted) continue;
      const KvKey key = key_of(pair);
      const auto [known, is_new] = versions.try_emplace(key, Version{record.sequence, i});
      if (!is_new) {
        // The process was killed between writing the newer version and flagging the older one. Two copies of one
        // version are equal.
        const Version version{record.sequence, i};
        if (std::pair(known->second.sequence, known->second.place) > std::pair(version.sequence, version.place)) {
          at<Pair>(place.offset)->dead = 1;
          continue;
        }
        invalidate(key, index_[key]);
        known->second = version;
      }
      index_[key] = place;
      index_newest(key, place);
    }
    s.tail = record_end;
  }
  return true;
}

// --- Changes

std::size_t KvContents::segment_of(std::uint64_t offset) const { return (offset - kHeadBytes) / segment_bytes_; }

void KvContents::index_newest(const KvKey& key, const Place& place) {
  segments_[segment_of(place.offset)].live += pair_bytes(place.value_bytes);
  stored_bytes_ += std::uint64_t{ssd::kPairHeaderBytes} + key.size + place.value_bytes;
}

// Flags the pair dead: it is no longer the newest of its key.
void KvContents::invalidate(const KvKey& key, const Place& place) {
  store_last(&at<Pair>(place.offset)->dead, std::uint8_t{1});
  segments_[segment_of(place.offset)].live -= pair_bytes(place.value_bytes);
  stored_bytes_ -= std::uint64_t{ssd::kPairHeaderBytes} + key.size + place.value_bytes;
}

void KvContents::free_if_dead(std::size_t segment) {
  Segment& s = segments_[segment];
  if (s.epoch == 0 || s.live > 0 || s.in_flight > 0 || (has_open_ && open_ == segment)) return;
  const std::uint64_t begin = kHeadBytes + segment * segment_bytes_;
  store_last(at<std::uint64_t>(begin), std::uint64_t{0});
  s = {};  // stays allocated for reuse, because punching a hole takes long and the lock is held
}

Status KvContents::put(std::span<const KvView> pairs) {
  auto record = append(pairs, kCommitted);
  if (!record) return record.status();
  steps::reached("device.kv.put.committed");
  take_effect(*record);
  return {};
}

Result<std::uint64_t> KvContents::stage(std::span<const KvView> pairs) {
  auto record = append(pairs, kInFlight);
  if (record) ++segments_[segment_of(*record)].in_flight;
  return record;
}

void KvContents::settle(std::uint64_t where, bool takes_effect) {
  auto* const record = at<Record>(where);
  Segment& s = segments_[segment_of(where)];
  --s.in_flight;
  if (takes_effect) {
    record->sequence = next_sequence_++;  // newer than all others, including copies made meanwhile
    store_last(&record->state, kCommitted + s.epoch);
    steps::reached("device.kv.settle.committed");
    take_effect(where);
  } else {
    store_last(&record->state, kAborted + s.epoch);
    free_if_dead(segment_of(where));
  }
}

void KvContents::settle_leftovers(const std::function<bool(std::uint64_t bytes)>& takes_effect) {
  std::sort(left_over_.begin(), left_over_.end(),
            [this](std::uint64_t a, std::uint64_t b) { return at<Record>(a)->sequence < at<Record>(b)->sequence; });
  for (const std::uint64_t where : std::exchange(left_over_, {})) {
    std::uint64_t bytes = 0;
    std::uint64_t offset = where + sizeof(Record);
    for (std::uint64_t i = 0; i < at<Record>(where)->pairs; ++i) {
      const Pair& pair = *at<Pair>(offset);
      bytes += std::uint64_t{ssd::kPairHeaderBytes} + pair.key_bytes + pair.value_bytes;
      offset += pair_bytes(pair.value_bytes);
    }
    settle(where, takes_effect(bytes));
  }
}

// Appends a record of this state. Returns its offset.
Result<std::uint64_t> KvContents::append(std::span<const KvView> pairs, std::uint64_t state) {
  std::uint64_t bytes = sizeof(Record);
  for (const KvView& pair : pairs) bytes += pair_bytes(pair.value.size());
  if (Status status = ensure_room(bytes); !status) return status;
  return append_here(pairs, state, bytes);
}

// REQUIRES: the open segment has room for that many bytes
Result<std::uint64_t> KvContents::append_here(std::span<const KvView> pairs, std::uint64_t state, std::uint64_t bytes) {
  Segment& s = segments_[open_];
  const std::uint64_t begin = s.tail;
  const std::uint64_t end = kHeadBytes + (open_ + 1) * segment_bytes_;
  if (Status status = allocate_host_space(begin, std::min(begin + bytes + sizeof(Record), end)); !status) return status;
  std::uint64_t offset = begin + sizeof(Record);
  for (const KvView& view : pairs) {
    Pair pair;
    std::copy(view.key.begin(), view.key.end(), pair.key.begin());
    pair.key_bytes = static_cast<std::uint8_t>(view.key.size());
    pair.value_bytes = static_cast<std::uint32_t>(view.value.size());
    *at<Pair>(offset) = pair;
    if (!view.value.empty()) std::memcpy(base_ + offset + sizeof(Pair), view.value.data(), view.value.size());
    offset += pair_bytes(pair.value_bytes);
  }
  // The bytes after it must not look like a record.
  if (offset + sizeof(Record) <= end) *at<std::uint64_t>(offset) = 0;
  auto* const record = at<Record>(begin);
  record->bytes = offset - begin;
  record->sequence = next_sequence_++;
  record->pairs = pairs.size();
  steps::reached("device.kv.put.written");
  store_last(&record->state, state + s.epoch);
  s.tail = offset;
  return begin;
}

// Makes the record's pairs the newest of their keys.
void KvContents::take_effect(std::uint64_t record) {
  std::uint64_t offset = record + sizeof(Record);
  for (std::uint64_t i = 0; i < at<Record>(record)->pairs; ++i) {
    const Pair& pair = *at<Pair>(offset);
    const Place place{offset, pair.value_bytes};
    const KvKey key = key_of(pair);
    const bool is_last = index_.empty() || std::prev(index_.end())->first < key;
    const auto entry = is_last ? index_.emplace_hint(index_.end(), key, Place{}) : index_.try_emplace(key).first;
    const Place before = std::exchange(entry->second, place);
    index_newest(key, place);
    offset += pair_bytes(pair.value_bytes);
    if (before.offset == 0) continue;
    invalidate(key, before);
    free_if_dead(segment_of(before.offset));
  }
}

void KvContents::remove(std::string_view key) {
  const auto entry = index_.find(KvKey(key));
  if (entry == index_.end()) return;
  const Place place = entry->second;
  invalidate(entry->first, place);
  index_.erase(entry);
  free_if_dead(segment_of(place.offset));
}

void KvContents::remove_range(const ssd::KvRange& range) {
  Head& head = *at<Head>(0);
  head.range = range;
  store_last(&head.removing, std::uint64_t{1});
  const auto first = first_of(range);
  auto entry = first;
  for (; entry != index_.end() && range.reaches(entry->first); ++entry) {
    invalidate(entry->first, entry->second);
    steps::reached("device.kv.remove_range.one_removed");
  }
  index_.erase(first, entry);
  store_last(&head.removing, std::uint64_t{0});
  for (std::size_t i = 0; i < segments_.size(); ++i) free_if_dead(i);
}

std::string_view KvContents::value(const Place& place) const {
  return {reinterpret_cast<const char*>(base_ + place.offset + sizeof(Pair)), place.value_bytes};
}

// --- Segments

Status KvContents::ensure_room(std::uint64_t bytes) {
  const auto fits = [&] {
    return has_open_ && segments_[open_].tail + bytes <= kHeadBytes + (open_ + 1) * segment_bytes_;
  };
  if (fits()) return {};
  const auto free_segments =
      std::count_if(segments_.begin(), segments_.end(), [](const Segment& s) { return s.epoch == 0; });
  // Cleaning writes to the last free segment.
  if (free_segments < 2) {
    if (Status status = clean(); !status) return status;
    if (fits()) return {};
  }
  return open_segment();
}

Status KvContents::open_segment() {
  const auto free = std::find_if(segments_.begin(), segments_.end(), [](const Segment& s) { return s.epoch == 0; });
  if (free == segments_.end()) return Status::error(Fault::drive_full, "key-value contents: their file is full");
  const auto index = static_cast<std::size_t>(free - segments_.begin());
  const std::uint64_t begin = kHeadBytes + index * segment_bytes_;
  taken_until_ = begin;
  if (Status status = allocate_host_space(begin, begin + kSegmentHeadBytes + sizeof(Record)); !status) {
    taken_until_ = 0;
    return status;
  }
  const bool had_open = std::exchange(has_open_, true);
  const std::size_t before = std::exchange(open_, index);
  // Allocated before its first use.
  const std::uint64_t epoch = at<Head>(0)->next_epoch;
  store_last(&at<Head>(0)->next_epoch, epoch + 1);
  *free = {epoch, begin + kSegmentHeadBytes, 0};
  *at<std::uint64_t>(begin + kSegmentHeadBytes) = 0;
  store_last(at<std::uint64_t>(begin), free->epoch);
  if (had_open) free_if_dead(before);
  return {};
}

// Makes the host allocate the file up to `end`: writing a mapped page without space raises SIGBUS.
Status KvContents::allocate_host_space(std::uint64_t begin, std::uint64_t end) {
  begin = std::max(begin, taken_until_);
  if (end <= begin) return {};
  const std::uint64_t step = std::min((end - begin + kSpaceStep - 1) / kSpaceStep * kSpaceStep, size_ - begin);
  if (const int error = posix_fallocate(descriptor_, static_cast<off_t>(begin), static_cast<off_t>(step))) {
    return Status::io_error(std::string("key-value contents: the host has no space for them: ") + std::strerror(error));
  }
  taken_until_ = begin + step;
  return {};
}

// Moves the live pairs of the segment that has the fewest live bytes to a new one.
Status KvContents::clean() {
  std::size_t emptiest = segments_.size();
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    if (segments_[i].epoch == 0 || segments_[i].in_flight > 0 || (has_open_ && i == open_)) continue;
    if (emptiest == segments_.size() || segments_[i].live < segments_[emptiest].live) emptiest = i;
  }
  if (emptiest == segments_.size()) return {};
  if (Status status = open_segment(); !status) return status;
  std::vector<std::pair<KvKey, Place>> alive;
  for (const auto& [key, place] : index_) {
    if (segment_of(place.offset) == emptiest) alive.emplace_back(key, place);
  }
  for (const auto& [key, place] : alive) {
    const KvView pair{key.text(), value(place)};
    auto moved = append_here({&pair, 1}, kCommitted, sizeof(Record) + pair_bytes(pair.value.size()));
    if (!moved) return moved.status();
    take_effect(*moved);
    steps::reached("device.kv.clean.one_moved");
  }
  return {};
}

}  // namespace spillway::device
