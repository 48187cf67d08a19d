#include "ssd_target.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "ssd/ssd.h"

namespace spillway::fuzz {
namespace {

using namespace spillway::ssd;

// Hands out the case's bytes; zeros when they are used up.
class Bytes {
 public:
  Bytes(const std::uint8_t* bytes, std::size_t size) : bytes_(bytes), size_(size) {}
  bool empty() const { return at_ >= size_; }
  std::uint8_t byte() { return empty() ? std::uint8_t{0} : bytes_[at_++]; }
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(byte() << 8 | byte()) % bound; }
  template <typename T>
  T one_of(std::initializer_list<T> choices) {
    return *(choices.begin() + below(static_cast<std::uint32_t>(choices.size())));
  }

 private:
  const std::uint8_t* bytes_;
  std::size_t size_;
  std::size_t at_ = 0;
};

void read_slc_cache(Bytes& in, SsdConfig& c) {
  SlcCacheConfig& s = c.slc_cache;
  s.share = in.one_of({0.001, 0.05, 0.2, 0.5});
  s.bits_per_cell = 2 + in.below(3);
  s.dynamic_share = in.one_of({0.0, 0.5, 1.0}) / s.bits_per_cell;
  s.dynamic_until = in.one_of({1.0, 0.5, 0.01});
  s.read_ns = in.below(30000);
  s.program_ns = in.below(300000);
  s.idle_ns = in.one_of({0, 1000, 500000, 1000000000});
  s.low_watermark = in.one_of({0.0, 0.0, 0.5});
  s.high_watermark = in.one_of({1.0, 0.7, 0.5});
  c.geometry.pages_per_block = std::max(c.geometry.pages_per_block, s.bits_per_cell);
  c.gc.separate_streams = true;
}

void read_namespaces(Bytes& in, SsdConfig& c) {
  NamespacesConfig& n = c.namespaces;
  n.count = 1 + in.below(2);
  n.kml_bytes = in.one_of({2U, 16U});
  n.vml_bytes = in.one_of({0U, 100U, 5000U, 20000U});
  n.memtable_bytes = n.vml_bytes + 24 + in.below(30000);
  n.core_command_ns = in.below(20000);
  n.core_pair_ns = in.below(20000);
  n.core_scan_pair_ns = in.below(20000);
  n.core_mb_s = in.one_of({0.0, 500.0});
  n.compaction_runs = in.one_of({0U, 2U, 4U});
  n.kv_share = in.one_of({0.9, 0.6, 0.3, 0.1});
  n.retrieve_offset = in.below(2) == 0;
  n.batch_retrieve_keys = in.one_of({0U, 2U, 4U});
  n.core_batch_key_ns = in.below(static_cast<std::uint32_t>(n.core_pair_ns) + 1);
  // A drive that is too small for it goes without.
  if (problem(c)) n = NamespacesConfig();
}

SsdConfig read_config(Bytes& in) {
  SsdConfig c;
  c.geometry.channels = 1 + in.below(3);
  c.geometry.chips_per_channel = 1 + in.below(2);
  c.geometry.dies_per_chip = 1 + in.below(2);
  c.geometry.planes_per_die = in.one_of({1U, 1U, 2U, 3U, 4U});
  c.geometry.pages_per_block = 1 + in.below(8);
  c.geometry.page_bytes = in.one_of({4096U, 8192U, 16384U});
  c.geometry.mapping_unit_bytes = in.one_of({4096U, 4096U, 2048U});
  const std::uint64_t smallest = c.geometry.block_bytes() * c.geometry.planes();
  c.capacity.capacity_bytes = smallest * (1 + in.below(6));
  c.capacity.spare_factor = in.one_of({0.02, 0.07, 0.2, 0.5, 0.9, 0.0});
  c.timing.read_ns = {1000 + in.below(60000)};
  c.timing.program_ns = {in.below(900000), 1000};
  c.timing.erase_ns = in.below(60000) * 100;
  c.timing.read_occupancy_ns = in.one_of({0, 0, 1000});
  c.timing.write_occupancy_ns = in.one_of({0, 0, 3000});
  c.timing.read_command_ns = in.one_of({0, 5000});
  c.timing.write_command_ns = in.one_of({0, 2000});
  c.timing.reads_overtake = in.one_of({0U, 1U, 8U});
  c.timing.independent_plane_reads = in.below(2) == 1;
  const std::uint64_t step = std::uint64_t{c.geometry.page_bytes} * c.geometry.planes_per_die;
  c.write_cache.bytes = in.one_of({std::uint64_t{0}, step, 3 * step, 64 * step});
  c.write_cache.power_loss_protection = in.below(2) == 1;
  c.mapping_cache.bytes = in.one_of({0U, 512U, 1024U, 4096U});
  c.gc.policy = in.one_of({GcPolicy::greedy, GcPolicy::fifo, GcPolicy::d_choices, GcPolicy::cost_benefit});
  c.gc.choices = 1 + in.below(12);
  c.gc.low_watermark = in.one_of({0.0, 0.0, 0.05});
  c.gc.high_watermark = c.gc.low_watermark + in.one_of({0.0, 0.05});
  c.gc.separate_streams = in.below(3) != 0;
  c.mapping.scheme = in.one_of({MappingScheme::page, MappingScheme::page, MappingScheme::block, MappingScheme::hybrid});
  if (c.mapping.scheme != MappingScheme::page) {
    c.mapping_cache.bytes = 0;
  } else if (in.below(3) == 0) {
    c.compression.granule_bytes = c.geometry.mapping_unit_bytes / in.one_of({1U, 2U, 4U, 8U, 64U});
    if (c.write_cache.bytes != 0) c.write_cache.bytes *= c.slots_per_unit();
  } else if (in.below(2) == 1) {
    read_slc_cache(in, c);
  }
  c.wear_levelling.dynamic = in.below(2) == 1;
  c.wear_levelling.static_threshold_pe = in.one_of({0U, 1U, 5U, 200U});
  if (in.below(2) == 1) read_namespaces(in, c);
  return c;
}

std::string describe(const SsdConfig& c) {
  const auto n = [](auto v) { return std::to_string(v); };
  return n(c.geometry.channels) + "x" + n(c.geometry.chips_per_channel) + "x" + n(c.geometry.dies_per_chip) + "x" +
         n(c.geometry.planes_per_die) + ", " + n(c.geometry.pages_per_block) + " pages of " + n(c.geometry.page_bytes) +
         ", capacity " + n(c.capacity.capacity_bytes) + ", spare " + n(c.capacity.spare_factor) + ", policy " +
         n(static_cast<int>(c.gc.policy)) + ", scheme " + n(static_cast<int>(c.mapping.scheme)) + ", granule " +
         n(c.compression.granule_bytes) + ", write cache " + n(c.write_cache.bytes) + ", mapping cache " +
         n(c.mapping_cache.bytes) + ", SLC cache " + n(c.slc_cache.share) + " and " + n(c.slc_cache.dynamic_share) +
         ", key-value share " + n(c.namespaces.kv_share) + " in " + n(c.namespaces.count) +
         (c.gc.separate_streams ? "" : ", one stream");
}

// Drives a drive and a model of what it must remember, side by side.
class Case {
 public:
  explicit Case(Bytes in) : in_(in), config_(read_config(in_)) {}

  std::optional<std::string> run() {
    if (problem(config_)) return std::nullopt;  // refused by name; nothing to run
    Ssd ssd(config_, in_.byte());
    lbas_ = ssd.layout().capacity_bytes / config_.geometry.lba_bytes;
    unit_lbas_ = config_.geometry.mapping_unit_bytes / config_.geometry.lba_bytes;
    written_.assign(ssd.layout().block_units, false);
    held_.resize(ssd.layout().kv_units > 0 ? config_.namespaces.count : 0);
    prepare(ssd);
    if (const auto broken = laws(ssd)) return fail("after preparing: " + *broken);
    while (!in_.empty()) {
      const std::uint8_t what = in_.byte();
      if (what < 4) {
        drain(ssd);
        if (const auto broken = power_cycle(ssd)) return fail(*broken);
      } else if (what < 60) {
        now_ += in_.below(60000) * std::int64_t{50};
        step(ssd, now_);
      } else if (!held_.empty() && what % 2 == 0) {
        submit_kv(ssd, what);
      } else {
        submit(ssd, what);
      }
      if (!broken_.empty()) return fail(broken_);
    }
    drain(ssd);
    if (!broken_.empty()) return fail(broken_);
    if (const auto broken = laws(ssd)) return fail(*broken);
    return std::nullopt;
  }

 private:
  std::string fail(const std::string& what) const { return what + " (" + describe(config_) + ")"; }

  void prepare(Ssd& ssd) {
    const std::uint64_t units = written_.size();
    const std::uint8_t how = in_.byte();
    const std::uint64_t count = how % 8 < 5 ? units : units * in_.below(101) / 100;
    const auto share = static_cast<std::uint16_t>(how % 2 == 0 ? kIncompressible : 1 + in_.below(kIncompressible));
    if (how < 80) ssd.assume_steady(count, share);
    if (how >= 80 && how < 160) ssd.write_sequentially(0, count, share);
    if (how < 160) std::fill(written_.begin(), written_.begin() + static_cast<std::ptrdiff_t>(count), true);
    for (std::uint64_t i = 0; how < 160 && count > 0 && config_.capacity.spare_factor > 0.01 && i < units * (how % 3);
         ++i) {
      ssd.overwrite(in_.below(static_cast<std::uint32_t>(count)), in_.one_of({kIncompressible, share}));
    }
    ssd.reset_counters();
  }

  void submit(Ssd& ssd, std::uint8_t what) {
    Command c;
    c.tag = ++tag_;
    c.op = what < 150 ? Opcode::write : what < 220 ? Opcode::read : what < 245 ? Opcode::deallocate : Opcode::flush;
    c.queue = what % 3;
    c.cause = static_cast<std::uint8_t>(what % kHostCauses);
    const bool whole_units = what % 4 != 0 || config_.capacity.spare_factor < 0.01;
    c.compressed_share = static_cast<std::uint16_t>(what % 5 == 0 ? kIncompressible : 1 + in_.below(kIncompressible));
    const std::uint32_t span = in_.below(what % 16 == 0 ? 400 : 40) + 1;
    c.lba_count = whole_units ? static_cast<std::uint32_t>((span % 12 + 1) * unit_lbas_) : span;
    c.lba = in_.below(65536) % lbas_;
    if (whole_units) c.lba = c.lba / unit_lbas_ * unit_lbas_;
    const bool in_range = c.lba + c.lba_count <= lbas_;
    if (c.op == Opcode::write && config_.capacity.spare_factor < 0.01 && what != 61) c.op = Opcode::read;
    if (in_range) remember(c);
    pending_[c.tag] = c.op == Opcode::flush || in_range;
    ssd.submit(now_, c);
  }

  KvKey key() {
    const std::uint32_t number = in_.below(200);
    std::string text(1 + number % 2, static_cast<char>('a' + number / 20));
    if (number % 2 != 0) text += static_cast<char>('a' + number % 20);
    return KvKey(text);
  }

  // All on one queue: then those that change something take effect in the order in which they are given.
  void submit_kv(Ssd& ssd, std::uint8_t what) {
    KvCommand c;
    c.tag = ++tag_;
    c.queue = 7;
    c.cause = static_cast<std::uint8_t>(what % kHostCauses);
    c.kv_namespace = static_cast<std::uint16_t>(in_.below(config_.namespaces.count));
    c.op = what < 130   ? Opcode::kv_store
           : what < 160 ? Opcode::kv_batch_store
           : what < 190 ? Opcode::kv_delete
           : what < 205 ? Opcode::kv_retrieve
           : what < 210 ? Opcode::kv_batch_retrieve
           : what < 220 ? Opcode::kv_exist
           : what < 228 ? Opcode::kv_list
           : what < 236 ? Opcode::kv_iterate
           : what < 250 ? Opcode::kv_bulk_scan
                        : Opcode::kv_reset;
    c.pair = {key(), c.op == Opcode::kv_store ? in_.below(config_.namespaces.vml_bytes + 2) : 0};
    c.condition = in_.one_of(
        {KvCondition::none, KvCondition::none, KvCondition::only_if_exists, KvCondition::only_if_not_exists});
    if (what % 3 == 0) c.range = {key(), key(), what % 5 == 0};
    c.buffer_bytes = in_.below(30000);
    for (std::uint32_t i = 0; c.op == Opcode::kv_batch_store && i < 1 + what % 5U; ++i) {
      c.pairs.push_back({key(), in_.below(config_.namespaces.vml_bytes + 1)});
    }
    if (c.op == Opcode::kv_retrieve && what % 2 == 0) c.offset_bytes = in_.below(30000);
    for (std::uint32_t i = 0; c.op == Opcode::kv_batch_retrieve && i < what % 6U; ++i) {
      c.parts.push_back({key(), what % 2 == 0 ? in_.below(30000) : 0, in_.below(30000)});
    }
    if (c.op == Opcode::kv_store) host_bytes_ += c.pair.key.size + std::uint64_t{c.pair.value_bytes};
    for (const KvPair& pair : c.pairs) host_bytes_ += pair.key.size + std::uint64_t{pair.value_bytes};
    pending_kv_[c.tag] = c;
    ssd.submit_kv(now_, c);
  }

  // A key-value command has completed: could it, with this outcome? And what is held from now on.
  void take_kv(const KvCommand& c, Outcome outcome) {
    auto& held = held_[c.kv_namespace];
    const bool is_there = held.contains(c.pair.key);
    const bool changes = !is_kv_read(c.op);
    const auto wrong = [&](const char* what) {
      broken_ = "key-value command " + std::to_string(c.tag) + " ended with outcome " +
                std::to_string(static_cast<int>(outcome)) + ": " + what;
    };
    switch (outcome) {
      case Outcome::success:
        break;
      case Outcome::kv_capacity_exceeded:
        if (!changes) wrong("it takes no room");
        return;
      case Outcome::kv_key_does_not_exist:
        if (changes && is_there) wrong("the key is there");
        return;
      case Outcome::kv_key_exists:
        if (!is_there || c.condition != KvCondition::only_if_not_exists) wrong("nobody asked, or it is not there");
        return;
      case Outcome::kv_invalid_value_size:
      case Outcome::kv_invalid_key_size:
        return;
      case Outcome::kv_invalid_field:
        if (c.op == Opcode::kv_retrieve && (c.offset_bytes == 0 || config_.namespaces.retrieve_offset))
          wrong("no field");
        if (c.op != Opcode::kv_retrieve && c.op != Opcode::kv_batch_retrieve) wrong("no field of it can be invalid");
        return;
      case Outcome::kv_invalid_opcode:
        if (c.op != Opcode::kv_batch_retrieve || config_.namespaces.batch_retrieve_keys > 0) wrong("the drive has it");
        return;
      default:
        wrong("not one of its own");
        return;
    }
    if (c.op == Opcode::kv_delete && !is_there) wrong("there was nothing to delete");
    if (c.op == Opcode::kv_store && c.pair.value_bytes > config_.namespaces.vml_bytes) wrong("longer than VML");
    if (c.op == Opcode::kv_delete) held.erase(c.pair.key);
    if (c.op == Opcode::kv_store) held[c.pair.key] = c.pair.value_bytes;
    for (const KvPair& pair : c.pairs) held[pair.key] = pair.value_bytes;
    if (c.op != Opcode::kv_reset) return;
    auto at = c.range.after_begin ? held.upper_bound(c.range.begin) : held.lower_bound(c.range.begin);
    while (at != held.end() && c.range.reaches(at->first)) at = held.erase(at);
  }

  // What the drive must hold once everything is done. Commands that overlap in flight race, as with a real drive; the
  // model takes them in order of submission, so overlapping ones are only compared when they agree.
  void remember(const Command& c) {
    if (c.op == Opcode::write) {
      for (std::uint64_t u = c.lba / unit_lbas_; u <= (c.lba + c.lba_count - 1) / unit_lbas_; ++u) set(u, true);
      host_bytes_ += std::uint64_t{c.lba_count} * config_.geometry.lba_bytes;
    }
    if (c.op == Opcode::deallocate) {
      for (std::uint64_t u = (c.lba + unit_lbas_ - 1) / unit_lbas_; u < (c.lba + c.lba_count) / unit_lbas_; ++u)
        set(u, false);
    }
  }
  void set(std::uint64_t unit, bool value) {
    if (written_[unit] != value && touched_.contains(unit)) raced_[unit] = true;
    touched_[unit] = true;
    written_[unit] = value;
  }

  void step(Ssd& ssd, Nanos until) {
    std::vector<Completion> done;
    ssd.advance(until, done);
    take(done);
  }

  void drain(Ssd& ssd) {
    while (const auto time = ssd.next_event()) {
      if (*time < now_) broken_ = "an event lies in the past";
      now_ = std::max(now_, *time);
      step(ssd, now_);
      if (!broken_.empty()) return;
    }
    if (ssd.in_flight() != 0 || !pending_.empty() || !pending_kv_.empty())
      broken_ = "commands wait and nothing will happen any more";
  }

  void take(const std::vector<Completion>& done) {
    for (const Completion& c : done) {
      if (const auto kv = pending_kv_.find(c.tag); kv != pending_kv_.end()) {
        take_kv(kv->second, c.outcome);
        if (c.completed < c.submitted || c.completed < last_completed_) broken_ = "completions go back in time";
        last_completed_ = c.completed;
        pending_kv_.erase(kv);
        continue;
      }
      const auto it = pending_.find(c.tag);
      if (it == pending_.end()) broken_ = "a command completed twice, or was never submitted";
      if (it == pending_.end()) return;
      const Outcome expected = it->second ? Outcome::success : Outcome::lba_out_of_range;
      if (c.outcome != expected) {
        broken_ =
            "command " + std::to_string(c.tag) + " ended with outcome " + std::to_string(static_cast<int>(c.outcome));
      }
      if (c.completed < c.submitted || c.completed < last_completed_) broken_ = "completions go back in time";
      last_completed_ = c.completed;
      pending_.erase(it);
    }
  }

  std::optional<std::string> laws(const Ssd& ssd) const {
    if (const auto broken = ssd.audit()) return broken;
    const Counters& k = ssd.counters();
    if (k.nand_pages_programmed * config_.geometry.page_bytes != k.nand_bytes_programmed_total()) {
      return "NAND programs are not the sum of host, gc, mapping, wear and fold";
    }
    if (k.slc_bytes_programmed > k.nand_bytes_programmed[static_cast<std::size_t>(FlashCause::host)]) {
      return "the SLC cache was written more often than the host wrote";
    }
    if (k.nand_bytes_programmed[static_cast<std::size_t>(FlashCause::fold)] > k.slc_bytes_programmed) {
      return "more was folded than the SLC cache was given";
    }
    if (k.host_bytes_written != host_bytes_) return "host bytes are miscounted";
    for (std::uint16_t i = 0; i < held_.size(); ++i) {
      const std::vector<KvPair> pairs = ssd.kv_pairs(i);
      const bool same = std::equal(
          pairs.begin(), pairs.end(), held_[i].begin(), held_[i].end(),
          [](const KvPair& pair, const auto& one) { return pair.key == one.first && pair.value_bytes == one.second; });
      if (!same) return "a key-value namespace holds other pairs than were stored";
    }
    return std::nullopt;
  }

  // Saves, loads into a new drive and compares. The drive is quiet.
  std::optional<std::string> power_cycle(Ssd& ssd) {
    if (!broken_.empty()) return broken_;
    std::vector<std::uint8_t> state;
    const auto sink = [&state](const void* bytes, std::size_t size) {
      const auto* from = static_cast<const std::uint8_t*>(bytes);
      state.insert(state.end(), from, from + size);
      return true;
    };
    if (!ssd.save(sink)) return "it could not be saved";
    if (const auto broken = laws(ssd)) return "after saving: " + *broken;
    Ssd other(config_, 0);
    std::size_t at = 0;
    const auto source = [&](void* bytes, std::size_t size) {
      if (state.size() - at < size) return false;
      if (size == 0) return true;
      std::memcpy(bytes, state.data() + at, size);
      at += size;
      return true;
    };
    if (const auto broken = other.load(source)) return "its own state " + *broken;
    if (at != state.size()) return "a saved state has bytes that nobody reads";
    if (other.mapped_units() != ssd.mapped_units()) return "a loaded drive holds other data";
    std::uint64_t mapped = 0;
    for (std::size_t unit = 0; unit < written_.size(); ++unit) mapped += written_[unit] ? 1 : 0;
    if (raced_.empty() && held_.empty() && mapped != ssd.mapped_units()) {
      return "the drive holds " + std::to_string(ssd.mapped_units()) + " units, not " + std::to_string(mapped);
    }
    {  // cut short, it must be refused and must not crash
      state.resize(state.size() * in_.below(100) / 100);
      at = 0;
      Ssd third(config_, 0);
      if (!third.load(source)) return "a truncated state was accepted";
    }
    touched_.clear();
    ssd = std::move(other);
    return std::nullopt;
  }

  Bytes in_;
  SsdConfig config_;
  Nanos now_ = 0;
  Nanos last_completed_ = 0;
  std::uint64_t lbas_ = 0;
  std::uint64_t unit_lbas_ = 1;
  std::uint64_t tag_ = 0;
  std::uint64_t host_bytes_ = 0;
  std::vector<bool> written_;
  std::map<std::uint64_t, bool> touched_;  // units written or deallocated since the drive was last quiet
  std::map<std::uint64_t, bool> raced_;
  std::vector<std::map<KvKey, std::uint32_t>> held_;  // by key-value namespace
  std::map<std::uint64_t, KvCommand> pending_kv_;
  std::map<std::uint64_t, bool> pending_;  // tag → is the range valid
  std::string broken_;
};

}  // namespace

std::optional<std::string> run_ssd_case(const std::uint8_t* bytes, std::size_t size) {
  return Case(Bytes(bytes, size)).run();
}

}  // namespace spillway::fuzz
