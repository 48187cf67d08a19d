#include "engine/vlog/store.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/steps.h"

namespace spillway::engine::vlog {

namespace {

leveldb::Slice to_slice(std::string_view text) { return {text.data(), text.size()}; }

// Offsets in a segment have 32 bits, and a batch is never split.
constexpr std::uint64_t kMostBatchBytes = std::uint64_t{2} << 30;
// Recovery writes to the tree in batches of this many bytes. Source: guess.
constexpr std::size_t kReplayBytes = 1 << 20;

}  // namespace

Store::Store(const EngineSpec& spec, LevelDbOptions leveldb, StoreOptions options)
    : directory_(spec.directory),
      options_(options),
      sync_(leveldb.write.sync),
      log_({.directory = spec.directory, .volume = spec.volume, .host_sync = spec.host_sync, .writes = spec.writes},
           options.segment_bytes),
      tree_(spec, std::move(leveldb)),
      queue_([this](std::span<Commit*> group) { commit_group(group); }) {}

// A database of plain LevelDB would lose the contents of its logs, and its values are not addresses.
Status Store::check_kind() const {
  if (had_segments_) return Status::ok();
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, ignored)) {
    const std::string path = entry.path().string();
    const bool is_table = path.ends_with(".ldb") || path.ends_with(".sst");
    if (is_table || (path.ends_with(".log") && entry.file_size(ignored) > 0 && !LogPositionEnv::holds_position(path))) {
      return Status::bad_input("directory: " + directory_ +
                               " holds a database without a value log; name another directory, or open it as "
                               "engine.name = \"leveldb\"");
    }
  }
  return Status::ok();
}

Result<Position> Store::recovery_begin(const LogPositionEnv& env) const {
  if (const auto first = env.first_position()) return *first;
  if (!had_segments_) return Position();
  return Status::io_error("no log of LevelDB in " + directory_ + " says where its value log goes on");
}

LogPositionHooks Store::hooks() {
  LogPositionHooks hooks;
  hooks.begin = [this]() -> Result<Position> {
    if (opening_ == nullptr) return tree_end_;
    auto begin = recovery_begin(*opening_);
    if (begin) tree_end_ = *begin;
    return begin;
  };
  hooks.on_new_log = [this](Position begin) { on_new_log(begin); };
  hooks.before_flush_sync = [this] {
    Position begin;
    {
      const std::lock_guard lock(mutex_);
      begin = memtable_begin_;
    }
    const Status status = log_.sync(begin);
    steps::reached("vlog.flush.log_synced");
    return tree_.env().to_leveldb_status(status, "the value log");
  };
  return hooks;
}

Status Store::open() {
  had_segments_ = ValueLog::exists(directory_);
  if (Status status = check_kind(); !status) return status;
  tree_.wrap_env([this](LevelDbEnv& inner, const LevelDbInfoLog& info) {
    auto env = std::make_unique<LogPositionEnv>(&inner, info, hooks());
    opening_ = env.get();
    return env;
  });
  Status status = tree_.open();
  opening_ = nullptr;
  if (!status) return status;
  {
    const std::lock_guard lock(mutex_);
    durable_ = tree_end_;
  }
  status = replay(tree_end_);
  open_ = status.is_ok();
  return status;
}

Status Store::replay(Position begin) {
  leveldb::WriteBatch whole;
  leveldb::WriteBatch begun;
  Position end = begin;
  const auto write_whole = [&] {
    Status status = tree_.write(&whole);
    whole.Clear();
    if (status) tree_end_ = end;
    return status;
  };
  Replay replay;
  replay.take = [&](const LocatedRecord& located) {
    const Record& record = located.record;
    replayed_bytes_ += located.address.length;
    if (record.kind == RecordKind::put) {
      format_address(located.address, &address_text_);
      begun.Put(to_slice(record.key), address_text_);
    } else if (record.kind == RecordKind::in_tree) {
      begun.Put(to_slice(record.key), kInTree + std::string(record.value));
    } else if (record.kind == RecordKind::remove) {
      begun.Delete(to_slice(record.key));
    }
  };
  replay.discard = [&] { begun.Clear(); };
  replay.commit = [&](Position at) {
    whole.Append(begun);
    begun.Clear();
    end = at;
    steps::reached("vlog.replay.batch");
    return whole.ApproximateSize() < kReplayBytes ? Status::ok() : write_whole();
  };
  if (Status status = log_.open(begin, replay); !status) return status;
  Status status = write_whole();
  // The end of the log may be the start of a segment, after the last batch.
  if (status) tree_end_ = log_.end();
  return status;
}

Status Store::close() {
  const bool was_open = std::exchange(open_, false);
  tree_.close();  // its background thread may still sync the log
  if (!was_open) return Status::ok();
  return failed_ ? log_.close() : failed_;
}

// LevelDB creates a log only when all memtables before the previous one are in tables.
void Store::on_new_log(Position begin) {
  const std::lock_guard lock(mutex_);
  durable_ = std::exchange(memtable_begin_, begin);
}

Position Store::durable() const {
  const std::lock_guard lock(mutex_);
  return durable_;
}

Status Store::flush() {
  Status status;
  queue_.run_alone([&] {
    status = failed_ ? tree_.flush() : failed_;
    if (!status) return;
    const std::lock_guard lock(mutex_);
    durable_ = memtable_begin_;
  });
  return status;
}

// --- Writes

Status Store::write(std::span<const Write> writes) {
  Commit commit{.writes = writes};
  for (const Write& write : writes) commit.bytes += record_bytes(write.key.size(), write.value.size());
  if (commit.bytes > kMostBatchBytes) {
    return Status::bad_input("a batch of " + std::to_string(commit.bytes) + " bytes; the value log takes 2 GiB");
  }
  if (writes.empty()) return Status::ok();
  queue_.run(commit);
  return commit.status;
}

void Store::commit_group(std::span<Commit*> group) {
  std::uint64_t bytes = 0;
  for (const Commit* commit : group) bytes += commit->bytes;
  const Status status = failed_ ? append_group(group, bytes) : failed_;
  for (Commit* commit : group) commit->status = status;
}

Status Store::append_group(std::span<Commit*> group, std::uint64_t bytes) {
  auto at = log_.prepare(bytes);
  if (!at) return at.status();
  buffer_.clear();
  batch_.Clear();
  written_.clear();
  std::uint64_t moved = 0;
  for (const Commit* commit : group) {
    const std::size_t count = commit->writes.size();
    for (std::size_t i = 0; i < count; ++i) {
      const Write& write = commit->writes[i];
      if (commit->moves && !may_move(std::string(write.key))) continue;
      if (!watched_.empty()) written_.emplace(write.key);
      const std::size_t before = buffer_.size();
      append_one(write, /*more=*/!commit->moves && i + 1 < count, &*at);
      if (commit->moves) moved += buffer_.size() - before;
    }
  }
  if (buffer_.empty()) return Status::ok();
  if (Status status = log_.append(buffer_); !status) return status;
  // Only after a successful append: otherwise the record that the collector found is still the newest.
  for (const std::string& key : written_) watched_.erase(key);
  appended_bytes_ += buffer_.size();
  moved_bytes_ += moved;
  steps::reached("vlog.append.written");
  if (sync_) {
    if (Status status = log_.sync(log_.end()); !status) return failed_ = status;
    steps::reached("vlog.append.synced");
  }
  return write_tree();
}

// False if the key was written since the collector read the tree, before this group or in it.
bool Store::may_move(const std::string& key) const { return watched_.contains(key) && !written_.contains(key); }

void Store::append_one(const Write& write, bool more, Position* at) {
  Record record{.kind = RecordKind::remove, .more = more, .key = write.key, .value = {}};
  if (write.kind == Write::Kind::put) {
    record.kind = write.value.size() < options_.min_value_bytes ? RecordKind::in_tree : RecordKind::put;
    record.value = write.value;
  }
  const std::uint32_t length = append_record(*at, record, &buffer_);
  if (record.kind == RecordKind::put) {
    format_address({*at, length}, &address_text_);
    batch_.Put(to_slice(write.key), address_text_);
  } else if (record.kind == RecordKind::in_tree) {
    address_text_.assign(1, kInTree);
    address_text_.append(write.value);
    batch_.Put(to_slice(write.key), address_text_);
  } else {
    batch_.Delete(to_slice(write.key));
  }
  at->offset += length;
}

// If the tree refuses a group that the log has, the next open would write it to the tree again. So no write is accepted
// after that.
Status Store::write_tree() {
  if (Status status = tree_.write(&batch_); !status) return failed_ = status;
  tree_end_ = log_.end();
  steps::reached("vlog.tree.written");
  return Status::ok();
}

void Store::watch(std::unordered_set<std::string> keys) {
  queue_.run_alone([&] { watched_ = std::move(keys); });
}

Status Store::move(std::span<const Write> pairs) {
  Commit commit{.writes = pairs, .moves = true};
  for (const Write& pair : pairs) commit.bytes += record_bytes(pair.key.size(), pair.value.size());
  if (!pairs.empty()) queue_.run(commit);
  queue_.run_alone([&] { watched_.clear(); });
  return commit.status;
}

// --- Reads

TreeView::TreeView(LevelDbStore& tree) : tree_(tree), iterator_(tree.db().NewIterator(tree.options().read)) {}

TreeView::~TreeView() = default;

Result<bool> TreeView::is_live(std::string_view key, const Address& address) {
  iterator_->Seek(to_slice(key));
  // The iterator continues after a table that cannot be read. What it finds then may be an older version.
  if (!iterator_->status().ok()) return tree_.to_status(iterator_->status(), "garbage collection");
  if (!iterator_->Valid() || iterator_->key() != to_slice(key)) return false;
  const leveldb::Slice held = iterator_->value();
  const auto now = parse_address({held.data(), held.size()});
  return now && *now == address;
}

namespace {

Status misplaced(const Address& address) {
  return Status::io_error("the value log is damaged: the record at byte " + std::to_string(address.at.offset) + " of " +
                          segment_name(address.at.segment) + " is not the one that was written there");
}

// Takes the value out of the record in `bytes`, if it is a record of that key.
Status take_value(const Address& address, std::string_view key, const std::string& bytes, std::string* value) {
  const auto record = parse_record(address.at, bytes);
  if (!record || record->kind != RecordKind::put || record->key != key) return misplaced(address);
  value->assign(record->value);
  return Status::ok();
}

}  // namespace

Result<bool> Store::fetch(const ValueLog::Segments& segments, std::string_view key, std::string_view held,
                          std::string* value) {
  if (is_in_tree(held)) {
    value->assign(held.substr(1));
    return true;
  }
  const auto address = parse_address(held);
  if (!address) return Status::io_error("the tree in " + directory_ + " holds something that is no address");
  const auto segment = segments.find(address->at.segment);
  if (segment == segments.end()) return false;
  thread_local std::string bytes;
  bytes.resize(address->length);
  if (Status status = segment->second->read({{address->at.offset, address->length, bytes.data()}}, fs::Cause::user);
      !status) {
    return status;
  }
  if (Status status = take_value(*address, key, bytes, value); !status) return status;
  return true;
}

Result<bool> Store::get(std::string_view key, std::string* value) {
  thread_local std::string held;
  thread_local std::string found;
  // If a segment was removed between the reads of the tree and of the segments, the tree has a new address.
  std::uint64_t removals = 0;
  do {
    removals = log_.removals();
    const leveldb::Status status = tree_.db().Get(tree_.options().read, to_slice(key), &held);
    if (status.IsNotFound()) return false;
    if (!status.ok()) return tree_.to_status(status, "get");
    const auto segments = log_.segments();
    auto got = fetch(*segments, key, held, value != nullptr ? value : &found);
    if (!got || *got) return got;
  } while (log_.removals() != removals);
  return Status::io_error("the value log in " + directory_ + " is damaged: it lacks a segment that its tree refers to");
}

Status Store::fetch_all(const ValueLog::Segments& segments, std::vector<PendingValue>& wanted) {
  struct OfSegment {
    std::vector<Segment::Piece> pieces;
    std::unique_ptr<fs::ReadInFlight> flight;
  };
  std::map<std::uint32_t, OfSegment> reads;
  std::vector<std::string> records(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    PendingValue& one = wanted[i];
    if (is_in_tree(one.held)) {
      one.value.assign(one.held, 1);
      continue;
    }
    const auto address = parse_address(one.held);
    if (!address) return Status::io_error("the tree in " + directory_ + " holds something that is no address");
    records[i].resize(address->length);
    reads[address->at.segment].pieces.push_back({address->at.offset, address->length, records[i].data()});
  }
  for (auto& [number, read] : reads) {
    const auto segment = segments.find(number);
    if (segment == segments.end()) {
      return Status::io_error("the value log in " + directory_ + " is damaged: it lacks " + segment_name(number));
    }
    auto flight = segment->second->begin_read(read.pieces, fs::Cause::user);
    if (!flight) return flight.status();
    read.flight = std::move(*flight);
  }
  for (auto& [number, read] : reads) {
    if (!read.flight) continue;
    if (Status status = read.flight->wait(); !status) return status;
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (records[i].empty()) continue;
    if (Status status = take_value(*parse_address(wanted[i].held), wanted[i].key, records[i], &wanted[i].value);
        !status) {
      return status;
    }
  }
  return Status::ok();
}

Result<std::uint64_t> Store::scan(std::string_view key, std::uint64_t nexts, Direction direction, Pairs* pairs) {
  std::unique_ptr<leveldb::Iterator> iterator;
  std::shared_ptr<const ValueLog::Segments> segments;
  // Unless a segment is removed meanwhile, all segments that the iterator refers to exist.
  std::uint64_t removals = 0;
  do {
    removals = log_.removals();
    iterator.reset(tree_.db().NewIterator(tree_.options().read));
    steps::reached("vlog.scan.iterator");
    segments = log_.segments();
  } while (log_.removals() != removals);
  const bool forward = direction == Direction::forward;
  iterator->Seek(to_slice(key));
  if (!forward && !iterator->Valid()) {
    iterator->SeekToLast();
  } else if (!forward && iterator->key() != to_slice(key)) {
    iterator->Prev();
  }
  std::uint64_t seen = 0;
  std::vector<PendingValue> window;
  while (seen <= nexts && iterator->Valid()) {
    window.clear();
    const std::uint64_t most = std::min(options_.prefetch, nexts - seen + 1);
    for (; iterator->Valid() && window.size() < most; forward ? iterator->Next() : iterator->Prev()) {
      window.push_back({.key = iterator->key().ToString(), .held = iterator->value().ToString(), .value = {}});
    }
    if (Status status = fetch_all(*segments, window); !status) return status;
    seen += window.size();
    if (pairs == nullptr) continue;
    for (PendingValue& one : window) pairs->emplace_back(std::move(one.key), std::move(one.value));
  }
  if (!iterator->status().ok()) return tree_.to_status(iterator->status(), "scan");
  return seen;
}

void Store::add_statistics(std::map<std::string, std::uint64_t>& figures) {
  figures["vlog.appended_bytes"] = appended_bytes_;
  figures["vlog.moved_bytes"] = moved_bytes_;
  figures["vlog.replayed_bytes"] = replayed_bytes_;
  figures["vlog.bytes"] = log_.bytes();
  figures["vlog.segments"] = log_.segments()->size();
}

}  // namespace spillway::engine::vlog
