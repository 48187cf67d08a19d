#include "engine/vlog/value_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/steps.h"

namespace spillway::engine::vlog {

using fs::Cause;

namespace {

std::string place_of(Position at) { return "byte " + std::to_string(at.offset) + " of " + segment_name(at.segment); }

// Whether the log was closed: then it ends with a closing record.
Result<bool> ends_with_closing_record(Segment& segment) {
  if (segment.file_bytes() < kHeaderBytes + kClosingRecordBytes) return false;
  const std::uint64_t at = segment.file_bytes() - kClosingRecordBytes;
  std::string bytes(kClosingRecordBytes, '\0');
  if (Status status = segment.read({{at, kClosingRecordBytes, bytes.data()}}, Cause::blob); !status) return status;
  const auto record = parse_record({segment.number(), static_cast<std::uint32_t>(at)}, bytes);
  return record && record->kind == RecordKind::closing;
}

}  // namespace

bool ValueLog::exists(const std::string& directory) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    if (segment_number(entry.path().filename().string())) return true;
  }
  return false;
}

Result<ValueLog::AllFound> ValueLog::find_segments() const {
  AllFound found;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(place_.directory, problem)) {
    const auto number = segment_number(entry.path().filename().string());
    if (!number) continue;
    auto segment = Segment::open(place_, *number);
    if (!segment) return segment.status();
    std::string bytes(std::min<std::uint64_t>(kHeaderBytes, (*segment)->file_bytes()), '\0');
    if (Status status = (*segment)->read({{0, bytes.size(), bytes.data()}}, Cause::blob); !status) return status;
    auto header = parse_header(bytes);
    if (header && header->number != *number) header.reset();
    found[*number] = {.segment = *segment, .header = header};
  }
  if (problem) return Status::io_error("cannot list " + place_.directory + ": " + problem.message());
  return found;
}

// Replays the chain from `begin` on. After an early end the rest does not belong to the log.
Status ValueLog::scan(const Chain& chain, Position begin, const Replay& replay, Position* end) {
  *end = begin;
  for (const auto& segment : chain) {
    const bool is_first = segment->number() == begin.segment;
    const std::uint64_t from = is_first ? std::max<std::uint64_t>(begin.offset, kHeaderBytes) : kHeaderBytes;
    RecordReader reader(segment, from, segment->end(), Cause::blob);
    *end = {segment->number(), static_cast<std::uint32_t>(from)};
    for (;;) {
      auto located = reader.next();
      if (!located) return located.status();
      if (!*located) break;
      replay.take(**located);
      if ((*located)->record.more) continue;
      *end = {segment->number(), static_cast<std::uint32_t>(reader.at())};
      if (Status status = replay.commit(*end); !status) return status;
    }
    replay.discard();
    if (end->offset != segment->end()) break;
  }
  return Status::ok();
}

// Sets the end of each segment to the one that the next segment states, or to its file's end.
void ValueLog::set_ends(const AllFound& all) {
  // Older segments first: if two state the same previous segment, the younger one is valid.
  for (const auto& [number, one] : all) {
    if (!one.header) continue;
    const auto before = all.find(one.header->previous.segment);
    if (before != all.end() && before->first < number) {
      before->second.segment->set_end(
          std::min<std::uint64_t>(one.header->previous.offset, before->second.segment->file_bytes()));
    }
  }
}

// The longest chain that leads back to `begin`.
ValueLog::Chain ValueLog::chain_from(Position begin, const AllFound& all) {
  Chain chain;
  for (auto last = all.rbegin(); last != all.rend() && last->first > begin.segment && chain.empty(); ++last) {
    Chain back;
    for (auto one = all.find(last->first); one != all.end() && one->second.header && one->first > begin.segment;
         one = all.find(one->second.header->previous.segment)) {
      back.push_back(one->second.segment);
      if (one->second.header->previous.segment != begin.segment) continue;
      chain.assign(back.rbegin(), back.rend());
      break;
    }
  }
  if (begin.segment != 0) chain.insert(chain.begin(), all.at(begin.segment).segment);
  if (!chain.empty()) chain.back()->set_end(chain.back()->file_bytes());
  return chain;
}

// The largest position up to which a header or a closing record states that the log was synced.
Result<Position> ValueLog::known_synced(const AllFound& all) {
  Position synced;
  for (const auto& [number, one] : all) {
    if (one.header) synced = std::max(synced, one.header->synced);
  }
  if (all.empty()) return synced;
  Segment& last = *all.rbegin()->second.segment;
  auto closed = ends_with_closing_record(last);
  if (!closed) return closed.status();
  if (*closed) synced = std::max(synced, {last.number(), static_cast<std::uint32_t>(last.file_bytes())});
  return synced;
}

Status ValueLog::open(Position begin, const Replay& replay) {
  auto found = find_segments();
  if (!found) return found.status();
  if (begin.segment != 0 &&
      (!found->contains(begin.segment) || (*found)[begin.segment].segment->file_bytes() < begin.offset)) {
    return Status::io_error("the value log in " + place_.directory + " is damaged: it has no " + place_of(begin));
  }
  set_ends(*found);
  const Chain chain = chain_from(begin, *found);
  const auto synced = known_synced(*found);
  if (!synced) return synced.status();
  // After a killed process the log may be in memory only, and the tree may flush what is replayed. So it is synced
  // first.
  Status status = chain.empty() ? Status::ok() : sync_directory();
  for (std::size_t i = 0; status && i < chain.size(); ++i) status = chain[i]->sync();
  if (!status) return status;

  Position end;
  if (status = scan(chain, begin, replay, &end); !status) return status;
  if (end < synced.value()) {
    return Status::io_error("the value log in " + place_.directory + " is damaged: there is no record at " +
                            place_of(end) + ", but the log was synced up to " + place_of(synced.value()));
  }

  Segments kept;
  for (const auto& [number, one] : *found) {
    next_number_ = std::max(next_number_, number + 1);
    if (number > end.segment) {
      one.segment->remove_when_unused();
    } else {
      kept[number] = one.segment;
    }
  }
  if (end.segment != 0) kept[end.segment]->set_end(end.offset);
  const std::lock_guard lock(mutex_);
  segments_ = std::make_shared<Segments>(std::move(kept));
  end_ = synced_ = end;
  return Status::ok();
}

void ValueLog::publish(const std::function<void(Segments&)>& change) {
  const std::lock_guard lock(mutex_);
  auto changed = std::make_shared<Segments>(*segments_);
  change(*changed);
  segments_ = std::move(changed);
}

Status ValueLog::roll() {
  if (next_number_ >= kMostSegments) return Status::error(Fault::not_supported, "the value log has no further segment");
  auto made = Segment::create(place_, next_number_);
  if (!made) return made.status();
  const std::shared_ptr<Segment> segment = *made;
  const Header header{.number = next_number_, .previous = end(), .synced = synced()};
  if (Status status = segment->append(format_header(header)); !status) {
    segment->remove_when_unused();
    return status;
  }
  ++next_number_;
  steps::reached("vlog.segment.made");
  publish([&](Segments& all) { all[segment->number()] = segment; });
  std::shared_ptr<Segment> before;
  {
    const std::lock_guard lock(mutex_);
    before = std::exchange(head_, segment);
    unsynced_.push_back(segment);
    new_names_ = true;
    end_ = {segment->number(), static_cast<std::uint32_t>(kHeaderBytes)};
  }
  return before ? before->seal() : Status::ok();
}

Result<Position> ValueLog::prepare(std::uint64_t bytes) {
  std::shared_ptr<Segment> head;
  {
    const std::lock_guard lock(mutex_);
    if (!failed_) return failed_;
    head = head_;
  }
  // A batch is never split. One that is larger than a segment gets its own segment.
  const bool fits = head && (head->end() + bytes <= segment_bytes_ || head->end() == kHeaderBytes);
  if (!fits) {
    if (Status status = roll(); !status) return status;
  }
  return end();
}

Status ValueLog::append(std::string_view bytes) {
  std::shared_ptr<Segment> head;
  {
    const std::lock_guard lock(mutex_);
    head = head_;
  }
  Status status = head->append(bytes);
  const std::lock_guard lock(mutex_);
  if (!status) {
    if (head->damaged()) failed_ = status;
    return status;
  }
  end_ = {head->number(), static_cast<std::uint32_t>(head->end())};
  return status;
}

Status ValueLog::sync_directory() {
  if (!place_.host_sync && place_.volume != nullptr) return Status::ok();
  const int fd = ::open(place_.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = fd >= 0 && ::fsync(fd) == 0;
  const int problem = errno;
  if (fd >= 0) ::close(fd);
  return synced ? Status::ok() : Status::io_error("cannot sync " + place_.directory + ": " + std::strerror(problem));
}

Status ValueLog::sync(Position to) {
  const std::lock_guard one_at_a_time(sync_mutex_);
  std::vector<std::shared_ptr<Segment>> all;
  Position end;
  bool new_names = false;
  {
    const std::lock_guard lock(mutex_);
    if (synced_ >= to) return Status::ok();
    if (!failed_) return failed_;
    all = unsynced_;
    end = end_;
    new_names = std::exchange(new_names_, false);
  }
  Status status = new_names ? sync_directory() : Status::ok();
  for (std::size_t i = 0; status && i < all.size(); ++i) status = all[i]->sync();
  const std::lock_guard lock(mutex_);
  if (!status) {
    // After a failed sync the data may be lost, even if a later sync succeeds.
    failed_ = status;
    return status;
  }
  synced_ = std::max(synced_, end);  // recovery may have set it meanwhile
  std::erase_if(unsynced_, [&](const auto& segment) { return segment->number() < end.segment; });
  return status;
}

Status ValueLog::close() {
  if (Position at = end(); at > synced()) {
    auto at_end = prepare(kClosingRecordBytes);
    if (!at_end) return at_end.status();
    std::string record;
    append_record(*at_end, {.kind = RecordKind::closing}, &record);
    if (Status status = append(record); !status) return status;
    if (Status status = sync(end()); !status) return status;
  }
  std::shared_ptr<Segment> head;
  {
    const std::lock_guard lock(mutex_);
    head = std::exchange(head_, nullptr);
  }
  return head ? head->seal() : Status::ok();
}

Position ValueLog::end() const {
  const std::lock_guard lock(mutex_);
  return end_;
}

Position ValueLog::synced() const {
  const std::lock_guard lock(mutex_);
  return synced_;
}

std::shared_ptr<const ValueLog::Segments> ValueLog::segments() const {
  const std::lock_guard lock(mutex_);
  return segments_;
}

void ValueLog::remove(std::uint32_t number) {
  std::shared_ptr<Segment> gone;
  publish([&](Segments& all) {
    if (const auto one = all.find(number); one != all.end()) {
      gone = one->second;
      all.erase(one);
      ++removals_;
    }
  });
  if (gone) gone->remove_when_unused();
}

std::uint64_t ValueLog::bytes() const {
  const auto all = segments();
  std::uint64_t sum = 0;
  for (const auto& [number, segment] : *all) sum += segment->file_bytes();
  return sum;
}

}  // namespace spillway::engine::vlog
