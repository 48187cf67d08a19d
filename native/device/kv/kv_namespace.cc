#include "device/kv/kv_namespace.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <utility>

namespace spillway::device {
namespace {

using ssd::KvKey;
using ssd::Outcome;

struct PairHeader {
  std::uint32_t key_bytes = 0;
  std::uint32_t value_bytes = 0;
};
static_assert(sizeof(PairHeader) == ssd::kPairHeaderBytes);

// A key that is too long for the command's field is longer than any KML, so the drive refuses it.
KvKey key_of(std::string_view key) {
  if (key.size() <= ssd::kMaxKeyBytes) return KvKey(key);
  KvKey too_long(key.substr(0, ssd::kMaxKeyBytes));
  too_long.size = ssd::kMaxKeyBytes + 1;
  return too_long;
}

// A length that does not fit its field exceeds any VML.
std::uint32_t length_of(std::string_view value) {
  return static_cast<std::uint32_t>(std::min<std::size_t>(value.size(), ~std::uint32_t{0}));
}

void append_pair(std::string& bytes, std::string_view key, std::string_view value) {
  const PairHeader header{static_cast<std::uint32_t>(key.size()), static_cast<std::uint32_t>(value.size())};
  bytes.append(reinterpret_cast<const char*>(&header), sizeof(header)).append(key).append(value);
}

std::uint64_t stored(std::size_t key, std::size_t value) { return ssd::kPairHeaderBytes + key + value; }

}  // namespace

bool for_each_pair(std::string_view bytes, const std::function<void(const KvView&)>& each) {
  while (!bytes.empty()) {
    PairHeader header;
    if (bytes.size() < sizeof(header)) return false;
    std::memcpy(&header, bytes.data(), sizeof(header));
    bytes.remove_prefix(sizeof(header));
    if (bytes.size() < std::uint64_t{header.key_bytes} + header.value_bytes) return false;
    each({bytes.substr(0, header.key_bytes), bytes.substr(header.key_bytes, header.value_bytes)});
    bytes.remove_prefix(std::size_t{header.key_bytes} + header.value_bytes);
  }
  return true;
}

// --- The namespace

Result<std::unique_ptr<KvNamespace>> KvNamespace::open(EmulatedDevice& drive, std::uint16_t index,
                                                       const std::string& path, Device* front) {
  const ssd::Ssd* const flash = drive.drive().flash();
  const std::uint32_t count = flash != nullptr && flash->layout().kv_units > 0 ? flash->config().namespaces.count : 0;
  if (index >= count) {
    return Status::error(Fault::not_supported, drive.info().name + ": has " + std::to_string(count) +
                                                   " key-value namespaces, and number " + std::to_string(index) +
                                                   " was asked for; namespaces.kv_share and namespaces.count say how "
                                                   "many there are");
  }
  std::unique_ptr<KvNamespace> opened(new KvNamespace());
  const ssd::NamespacesConfig& config = flash->config().namespaces;
  opened->front_ = front != nullptr ? front : &drive;
  opened->index_ = index;
  opened->info_ = {config.kml_bytes,       config.vml_bytes,
                   config.memtable_bytes,  flash->layout().kv_units * flash->config().geometry.mapping_unit_bytes,
                   config.retrieve_offset, config.batch_retrieve_keys};
  auto contents = KvContents::open(path, opened->info_.capacity_bytes, config.memtable_bytes);
  if (!contents) return contents.status();
  opened->contents_ = std::move(*contents);
  // At most as much as a drive of this size can have accepted.
  const std::uint64_t units = flash->layout().kv_units;
  const std::uint64_t most =
      (units - std::min(units, ssd::kv_reserve_units(units))) * flash->config().geometry.mapping_unit_bytes;
  opened->contents_->settle_leftovers(
      [&](std::uint64_t bytes) { return opened->contents_->stored_bytes() + bytes <= most; });
  if (Status status = refill(drive, index, *opened->contents_); !status) return status;
  return opened;
}

// Loads the pairs of the contents into the model as one run, without time, as after a power cycle.
Status KvNamespace::refill(EmulatedDevice& drive, std::uint16_t index, const KvContents& contents) {
  ssd::Ssd& flash = *drive.drive().flash();
  std::vector<ssd::KvPair> pairs;
  for (const auto& [key, place] : contents.index()) pairs.push_back({key, place.value_bytes});
  const std::vector<ssd::KvPair> held = flash.kv_pairs(index);
  const auto same = [](const ssd::KvPair& a, const ssd::KvPair& b) {
    return a.key == b.key && a.value_bytes == b.value_bytes;
  };
  if (std::equal(pairs.begin(), pairs.end(), held.begin(), held.end(), same)) return {};
  if (!held.empty()) {
    KvIoExtension reset;
    reset.command.kv_namespace = index;
    Io io;
    io.op = Opcode::kv_reset;
    io.extension = &reset;
    auto done = run(*drive.open_queue(), io);
    if (!done) return done.status();
  }
  if (drive.drive().flash()->bulk_load_kv(index, pairs)) return {};
  return Status::bad_input(drive.info().name + ": key-value namespace " + std::to_string(index) +
                           " is too small for what its contents hold; raise namespaces.kv_share or name another file");
}

// Does not take the lock, which other threads hold while they copy values.
std::uint64_t KvNamespace::stored_bytes() const { return contents_->stored_bytes(); }

// --- A queue

KvQueue::KvQueue(KvNamespace& of) : of_(of), queue_(of.front_->open_queue()) {}

KvQueue::~KvQueue() {
  std::vector<KvDone> rest(pending());
  if (!rest.empty()) reap(rest, rest.size());
}

Status KvQueue::submit(std::span<const KvIo> ios) {
  std::vector<KvIoExtension> extensions(ios.size());
  std::vector<Io> below(ios.size());
  std::vector<std::uint32_t> slots;
  for (std::size_t i = 0; i < ios.size(); ++i) {
    const KvIo& io = ios[i];
    assert(is_kv(io.op));
    ssd::KvCommand& c = extensions[i].command;
    c.kv_namespace = of_.index_;
    c.condition = io.condition;
    c.pair = {key_of(io.key), length_of(io.value)};
    c.range = io.range;
    c.buffer_bytes = io.buffer_bytes;
    c.offset_bytes = io.offset_bytes;
    for (const KvViewPart& part : io.parts) c.parts.push_back({key_of(part.key), part.offset_bytes, part.buffer_bytes});
    for (const KvView& pair : io.pairs) c.pairs.push_back({key_of(pair.key), length_of(pair.value)});
    if (unused_.empty()) {
      unused_.push_back(static_cast<std::uint32_t>(commands_.size()));
      commands_.emplace_back();
    }
    slots.push_back(unused_.back());
    unused_.pop_back();
    commands_[slots.back()] = {io, {}};
    below[i].tag = slots.back();
    below[i].op = io.op;
    below[i].cause = io.cause;
    below[i].extension = &extensions[i];
  }
  {
    const std::lock_guard lock(of_.mutex_);
    for (const std::uint32_t slot : slots) stage(commands_[slot]);
  }
  Status status = queue_->submit(below);
  if (status) return status;
  const std::lock_guard lock(of_.mutex_);
  for (const std::uint32_t slot : slots) {
    if (const auto where = commands_[slot].contents_offset) of_.contents_->settle(*where, false);
  }
  unused_.insert(unused_.end(), slots.begin(), slots.end());
  return status;
}

// Stages the pairs of a store in the contents' file. Omits stores that the drive will refuse, and those whose outcome
// depends on stored data; and those for which the file has no room, which are tried again after the drive has accepted
// them. REQUIRES: the namespace's lock is held
void KvQueue::stage(InFlight& command) {
  const KvIo& io = command.io;
  const bool is_store = io.op == Opcode::kv_store && io.condition == ssd::KvCondition::none;
  if (!is_store && io.op != Opcode::kv_batch_store) return;
  const KvView one{io.key, io.value};
  const std::span<const KvView> pairs = is_store ? std::span(&one, 1) : io.pairs;
  std::uint64_t bytes = 0;
  for (const KvView& pair : pairs) {
    if (pair.key.size() > ssd::kMaxKeyBytes) return;
    bytes += stored(pair.key.size(), pair.value.size());
  }
  if (bytes > of_.info_.batch_bytes) return;
  if (auto where = of_.contents_->stage(pairs)) command.contents_offset = *where;
}

// REQUIRES: the namespace's lock is held
Status KvQueue::store(InFlight& command, std::span<const KvView> pairs) {
  if (!command.contents_offset) return of_.contents_->put(pairs);
  of_.contents_->settle(*command.contents_offset, true);
  return {};
}

std::size_t KvQueue::reap(std::span<KvDone> done, std::size_t at_least) {
  reaped_.resize(done.size());
  const std::size_t count = queue_->reap(reaped_, at_least);
  const std::lock_guard lock(of_.mutex_);
  for (std::size_t i = 0; i < count; ++i) {
    const auto slot = static_cast<std::uint32_t>(reaped_[i].tag);
    done[i] = done_of(commands_[slot], reaped_[i]);
    unused_.push_back(slot);
  }
  return count;
}

// Applies the drive's outcome to the contents. REQUIRES: the namespace's lock is held
KvDone KvQueue::done_of(InFlight& command, const Done& below) {
  const KvIo& io = command.io;
  KvDone done{io.tag, below.submitted, below.completed, below.outcome, Fault::none, 0, {}, {}};
  const bool is_refused = below.outcome != Outcome::success;
  // A fault that the drive's outcome does not explain comes from a layer above the drive.
  if (!is_refused) done.fault = below.fault;
  KvContents& contents = *of_.contents_;
  if (is_refused || done.fault != Fault::none) {
    if (command.contents_offset) contents.settle(*command.contents_offset, false);
    return done;
  }
  const auto put = [&](std::span<const KvView> pairs) {
    if (Status status = store(command, pairs); !status) done.fault = status.fault();
  };
  switch (io.op) {
    case Opcode::kv_store: {
      const KvView pair{io.key, io.value};
      put({&pair, 1});
      break;
    }
    case Opcode::kv_batch_store:
      put(io.pairs);
      break;
    case Opcode::kv_delete:
      contents.remove(io.key);
      break;
    case Opcode::kv_reset:
      contents.remove_range(io.range);
      break;
    default:
      answer_reads(io, done);
      break;
  }
  return done;
}

// REQUIRES: the namespace's lock is held
void KvQueue::answer_reads(const KvIo& io, KvDone& done) const {
  const KvContents& contents = *of_.contents_;
  // A key that is not there was deleted since the drive read it, or never was there.
  const auto part_of = [&contents](const KvViewPart& part) {
    const auto at = contents.index().find(KvKey(part.key));
    if (at == contents.index().end()) return KvFound{Outcome::kv_key_does_not_exist, 0, {}};
    const std::string_view value = contents.value(at->second);
    const std::size_t from = std::min<std::size_t>(part.offset_bytes, value.size());
    return KvFound{Outcome::success, at->second.value_bytes, std::string(value.substr(from, part.buffer_bytes))};
  };
  switch (io.op) {
    case Opcode::kv_retrieve:
    case Opcode::kv_exist: {
      KvFound one = part_of({io.key, io.offset_bytes, io.op == Opcode::kv_exist ? 0 : io.buffer_bytes});
      done.outcome = one.outcome;
      if (io.op == Opcode::kv_retrieve) done.value_bytes = one.value_bytes;
      done.bytes = std::move(one.bytes);
      break;
    }
    case Opcode::kv_batch_retrieve:
      for (const KvViewPart& part : io.parts) done.found.push_back(part_of(part));
      break;
    default: {
      const bool keys_only = io.op == Opcode::kv_list;
      const std::uint32_t most =
          io.op == Opcode::kv_bulk_scan ? ssd::kScanChunkBytes : std::min(io.buffer_bytes, ssd::kScanChunkBytes);
      for (auto at = contents.first_of(io.range); at != contents.index().end() && io.range.reaches(at->first); ++at) {
        const std::string_view value = keys_only ? std::string_view() : contents.value(at->second);
        if (done.bytes.size() + stored(at->first.size, value.size()) > most) break;
        append_pair(done.bytes, at->first.text(), value);
      }
      break;
    }
  }
}

Result<KvDone> run(KvQueue& queue, const KvIo& io) {
  assert(queue.pending() == 0);
  if (Status status = queue.submit({&io, 1}); !status) return status;
  std::array<KvDone, 1> done;
  queue.reap(done, 1);
  return std::move(done[0]);
}

}  // namespace spillway::device
