// Stops a drive's time, and saves and loads its state.
#include <cassert>
#include <cstring>
#include <string>
#include <vector>

#include "ssd/ssd_impl.h"

namespace spillway::ssd {

void Ssd::Impl::quiesce() {
  assert(quiet());
  idle_ = false;
  in_program_ -= ftl_.detach_programs(array_);
  for (std::uint32_t die = 0; die < config_.geometry.dies(); ++die) array_.set_writable(die, true);
  while (cache_.waiting() > 0) {
    const WriteCache::Entry entry = cache_.take();
    [[maybe_unused]] const bool done = ftl_.overwrite(entry.unit, entry.slots);
    assert(done);
  }
}

namespace {

constexpr char kMagic[8] = {'S', 'P', 'L', 'W', 'S', 'S', 'D', '4'};

struct Fingerprint {
  const char* key;
  std::uint64_t value;
};

// What must be equal for a state to be valid on a drive.
std::vector<Fingerprint> fingerprint(const SsdConfig& c, const Layout& l) {
  const Geometry& g = c.geometry;
  std::vector<Fingerprint> fields = {{"geometry.channels", g.channels},
                                     {"geometry.chips_per_channel", g.chips_per_channel},
                                     {"geometry.dies_per_chip", g.dies_per_chip},
                                     {"geometry.planes_per_die", g.planes_per_die},
                                     {"geometry.pages_per_block", g.pages_per_block},
                                     {"geometry.page_bytes", g.page_bytes},
                                     {"geometry.mapping_unit_bytes", g.mapping_unit_bytes},
                                     {"geometry.lba_bytes", g.lba_bytes},
                                     {"capacity.capacity_bytes", l.capacity_bytes},
                                     {"capacity.spare_factor (data units)", l.data_units},
                                     {"physical units", l.physical_units},
                                     {"mapping_cache.bytes (translation units)", l.translation_units},
                                     {"slc_cache.share (erase blocks)", l.slc_blocks},
                                     {"slc_cache.bits_per_cell (pages)", l.slc_pages},
                                     {"gc.separate_streams", c.gc.separate_streams ? 1U : 0U},
                                     {"mapping.scheme", static_cast<std::uint64_t>(c.mapping.scheme)},
                                     {"compression.granule_bytes", c.compression.granule_bytes},
                                     {"gc.policy", static_cast<std::uint64_t>(c.gc.policy)}};
  if (l.kv_units == 0) return fields;
  fields.insert(fields.end(), {{"namespaces.kv_share (mapping units)", l.kv_units},
                               {"namespaces.count", c.namespaces.count},
                               {"namespaces.vml_bytes", c.namespaces.vml_bytes}});
  return fields;
}

}  // namespace

bool Ssd::Impl::save(const StateSink& sink) {
  quiesce();
  if (!sink(kMagic, sizeof(kMagic))) return false;
  for (const Fingerprint& field : fingerprint(config_, layout_)) {
    if (!sink(&field.value, sizeof(field.value))) return false;
  }
  if (!sink(&counters_, sizeof(counters_))) return false;
  const auto visit = [&sink](void* bytes, std::size_t size) { return size == 0 || sink(bytes, size); };
  if (!ftl_.visit_state(visit, false)) return false;
  if (!kv_) return true;
  if (kv_->compacting()) return false;  // the drive is stuck
  KvCounters counted = kv_->counters();
  if (!visit(&counted, sizeof(counted))) return false;
  for (std::uint16_t i = 0; i < config_.namespaces.count; ++i) {
    if (!kv_->lsm(i).visit_state(visit, false)) return false;
  }
  return true;
}

bool Ssd::Impl::load_kv(const std::function<bool(void* bytes, std::size_t size)>& visit) {
  KvCounters counted;
  if (!visit(&counted, sizeof(counted))) return false;
  kv_->set_counters(counted);
  for (std::uint16_t i = 0; i < config_.namespaces.count; ++i) {
    if (!kv_->lsm(i).visit_state(visit, true)) return false;
    // Units that were written for an unfinished run are useless.
    for (const auto& [first, count] : kv_->lsm(i).allocator().free_extents()) {
      for (std::uint32_t unit = first; unit < first + count; ++unit) ftl_.deallocate({}, unit);
    }
  }
  kv_->restart_flushes();
  return !audit().has_value();
}

std::optional<std::string> Ssd::Impl::load(const StateSource& source) {
  char magic[sizeof(kMagic)] = {};
  if (!source(magic, sizeof(magic))) return "is truncated";
  if (std::memcmp(magic, kMagic, sizeof(magic)) != 0) return "is not a drive state of this version";
  for (const Fingerprint& field : fingerprint(config_, layout_)) {
    std::uint64_t value = 0;
    if (!source(&value, sizeof(value))) return "is truncated";
    if (value != field.value) {
      return "was made for another drive: its " + std::string(field.key) + " is " + std::to_string(value) + ", not " +
             std::to_string(field.value);
    }
  }
  quiesce();
  bool truncated = false;
  const auto visit = [&](void* bytes, std::size_t size) {
    truncated = truncated || (size > 0 && !source(bytes, size));
    return !truncated;
  };
  if (!visit(&counters_, sizeof(counters_))) return "is truncated";
  if (!ftl_.visit_state(visit, true)) return truncated ? "is truncated" : "is damaged: its map contradicts itself";
  if (kv_ && !load_kv(visit)) {
    return truncated ? "is truncated" : "is damaged: a key-value namespace of it contradicts itself";
  }
  return std::nullopt;
}

}  // namespace spillway::ssd
