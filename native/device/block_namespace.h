// One tenant's block namespace: a share of a drive's LBAs as a Device of its own (K11, K14). The tenant's pairs are in
// the KvNamespace with the same index.
//
// Counters, wear and time are those of the whole drive, because tenants share its flash.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"

namespace spillway::device {

class BlockNamespace final : public Device {
 public:
  // Namespace `index` of `count` namespaces of equal size. REQUIRES: index < count; `drive` outlives this
  BlockNamespace(Device& drive, std::uint32_t index, std::uint32_t count) : drive_(drive), info_(drive.info()) {
    info_.capacity_bytes = drive.info().capacity_bytes / count / info_.mapping_unit_bytes * info_.mapping_unit_bytes;
    first_byte_ = index * info_.capacity_bytes;
  }

  const DeviceInfo& info() const override { return info_; }
  std::unique_ptr<Queue> open_queue() override { return std::make_unique<View>(drive_.open_queue(), *this); }
  Nanos now() override { return drive_.now(); }
  Nanos issue_ns(const Io& io) const override { return drive_.issue_ns(io); }
  void spend(Nanos for_ns) override { drive_.spend(for_ns); }
  ssd::Counters counters() override { return drive_.counters(); }
  PacingReport pacing() override { return drive_.pacing(); }
  Wear wear() override { return drive_.wear(); }

 private:
  class View final : public Queue {
   public:
    View(std::unique_ptr<Queue> queue, const BlockNamespace& of) : queue_(std::move(queue)), of_(of) {}

    Status submit(std::span<const Io> ios) override {
      std::vector<Io> moved(ios.begin(), ios.end());
      for (Io& io : moved) {
        if (is_kv(io.op)) {
          return Status::error(Fault::not_supported,
                               of_.info_.name + ": a block namespace takes no key-value commands");
        }
        const std::uint64_t capacity = of_.info_.capacity_bytes;
        if (io.op != Opcode::flush && (io.offset_bytes > capacity || io.length_bytes > capacity - io.offset_bytes)) {
          return Status::bad_input(of_.info_.name + ": io of " + std::to_string(io.length_bytes) + " bytes at " +
                                   std::to_string(io.offset_bytes) + " reaches beyond its namespace of " +
                                   std::to_string(capacity) + " bytes");
        }
        io.offset_bytes += of_.first_byte_;
      }
      return queue_->submit(moved);
    }
    std::size_t reap(std::span<Done> done, std::size_t at_least) override { return queue_->reap(done, at_least); }
    std::size_t pending() const override { return queue_->pending(); }

   private:
    std::unique_ptr<Queue> queue_;
    const BlockNamespace& of_;
  };

  Device& drive_;
  DeviceInfo info_;
  std::uint64_t first_byte_ = 0;
};

}  // namespace spillway::device
