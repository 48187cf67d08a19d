#include "pool/replay.h"

#include <optional>

namespace spillway::pool {
namespace {

constexpr std::uint64_t kReferencesBetweenLooks = 1024;  // some milliseconds of work

// Returns whether the reference was a hit. Sets `took` to the time until the page was available.
Result<bool> refer(device::Device& device, BufferPool& pool, const Reference& reference, device::Nanos& took) {
  const std::uint64_t misses = pool.counters().misses;
  const device::Nanos began = device.now();
  const auto pin = pool.fetch(reference.page);
  if (!pin) return pin.status();
  if (reference.writes) pin.value().mark_dirty();
  took = device.now() - began;
  return pool.counters().misses == misses;
}

}  // namespace

Result<ReplayResult> replay(device::Device& device, BufferPool& pool, Trace& trace, const ReplayEnds& ends,
                            const Watch& watch) {
  ReplayResult result;
  result.complete = true;
  device::Nanos began = device.now();
  const std::uint64_t total = ends.warmup + ends.operations;
  for (std::uint64_t done = 0; done < total; ++done) {
    if (done == ends.warmup) {
      pool.reset_counters();
      began = device.now();
      result.drive_before = device.counters();
    }
    if (done % kReferencesBetweenLooks == 0 && !watch(done)) {
      result.complete = false;
      break;
    }
    const auto reference = trace.next();
    if (!reference) break;
    device::Nanos took = 0;
    const auto hit = refer(device, pool, *reference, took);
    if (!hit) return hit.status();
    if (done < ends.warmup) continue;
    ++result.operations;
    result.writes += reference->writes ? 1 : 0;
    result.latency.record(took);
    if (!hit.value()) result.miss_latency.record(took);
  }
  if (result.operations == 0) return result;
  result.duration_ns = device.now() - began;
  result.counters = pool.counters();
  return result;
}

}  // namespace spillway::pool
