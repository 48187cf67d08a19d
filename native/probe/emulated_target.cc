// A drive model as a target: in virtual time, or paced in real time.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "probe/target.h"
#include "ssd/structures/random.h"

namespace spillway::probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kEver = 1e18;                       // seconds
constexpr std::uint64_t kUnitsBetweenLooks = 16384;  // some hundredths of a second of garbage collection

class EmulatedTarget final : public Target {
 public:
  explicit EmulatedTarget(EmulatedSpec spec) : spec_(std::move(spec)) {}

  Result<Written> make(const device::InitialState& initial, const WriteWatch& watch) {
    device::DriveModel model(spec_.drive, spec_.seed);
    const std::uint64_t unit_bytes = model.mapping_unit_bytes();
    const device::PrepareWatch units = [&](std::uint64_t done, std::uint64_t total) {
      return watch(done * unit_bytes, total * unit_bytes);
    };
    if (Status status = device::prepare(model, initial, spec_.seed, units); !status) return status;
    const std::uint64_t held = model.mapped_units() * unit_bytes;
    fill_ = static_cast<double>(held) / static_cast<double>(model.capacity_bytes());
    // Written data is contiguous from the drive's start, unless the initial state is a file of unknown history.
    data_bytes_ = initial.kind == device::InitialState::Kind::file ? model.capacity_bytes() : held;
    device_ = spec_.time_scale ? device::make_paced(std::move(model), *spec_.time_scale)
                               : device::make_simulated(std::move(model));
    return Written{held, true};
  }

  TargetInfo info() const override {
    TargetInfo info;
    info.kind = spec_.time_scale ? "paced" : "simulated";
    info.preset = spec_.drive.config.name;
    info.size_bytes = device_->info().capacity_bytes;
    info.range_bytes = data_bytes_ > 0 ? data_bytes_ : info.size_bytes;
    info.lba_bytes = device_->info().lba_bytes;
    info.time_scale = device_->info().time_scale;
    info.fill = fill_;
    return info;
  }

  device::Device& device_for(const Point& /*point*/) override {
    static_cast<void>(device_->drive());  // completes the drive's background work
    return *device_;
  }

  // Overwrites in an order other than the one in which the flash was filled need spare flash.
  Status admits(const Point& point) override {
    const ssd::Ssd* const flash = device_->drive().flash();
    if (flash == nullptr || !point.writes() || point.pattern == Pattern::sequential) return {};
    const std::uint64_t units = range_of(point, info().extent()) / device_->info().mapping_unit_bytes;
    if (units < flash->layout().data_units) return {};
    return no_spare("point " + std::to_string(point.id) + ": ", "lower range");
  }

  // Overwrites at memory speed. A disk has no state that depends on what was written.
  Result<Written> prepare(const Preparation& preparation, std::uint64_t seed, const WriteWatch& watch) override {
    const std::uint64_t unit_bytes = device_->info().mapping_unit_bytes;
    const std::uint64_t units = device_->info().capacity_bytes / unit_bytes;
    const auto total = static_cast<std::uint64_t>(std::llround(preparation.capacities * static_cast<double>(units)));
    ssd::Ssd* const flash = device_->drive().flash();
    if (flash == nullptr) return Written{total * unit_bytes, true};
    const bool random = preparation.kind == Preparation::Kind::random;
    if (random && units >= flash->layout().data_units) return no_spare("prepare: ", "take kind sequential");
    const std::uint64_t done = overwrite(*flash, random, total, preparation.seconds.value_or(kEver), seed, watch);
    const std::uint64_t capacity = device_->info().capacity_bytes;
    fill_ = static_cast<double>(flash->mapped_units()) / static_cast<double>(units);
    // Writes in order from the start keep the data contiguous.
    data_bytes_ = random ? capacity : std::max(data_bytes_, std::min(done, units) * unit_bytes);
    return Written{done * unit_bytes, done == total};
  }

  Result<Written> reset_to_steady(double share, const WriteWatch& watch) override {
    device::InitialState initial;
    initial.kind = device::InitialState::Kind::steady;
    initial.fill = share;
    return make(initial, watch);
  }

  bool is_emulated() const override { return true; }

 private:
  static Status no_spare(const std::string& where, const std::string& else_mend) {
    return Status::bad_input(where +
                             "capacity.spare_factor leaves random writes over the whole drive no spare flash; raise "
                             "it (0.07 is usual) or " +
                             else_mend);
  }

  // Returns the number of units written.
  static std::uint64_t overwrite(ssd::Ssd& flash, bool random, std::uint64_t total, double most_seconds,
                                 std::uint64_t seed, const WriteWatch& watch) {
    const std::uint64_t units = flash.layout().block_units;
    const std::uint64_t unit_bytes = flash.config().geometry.mapping_unit_bytes;
    const auto began = Clock::now();
    ssd::Random places(ssd::mix(seed));
    std::uint64_t done = 0;
    while (done < total) {
      const std::chrono::duration<double> elapsed = Clock::now() - began;
      if (!watch(done * unit_bytes, total * unit_bytes) || elapsed.count() >= most_seconds) break;
      const std::uint64_t end = std::min(total, done + kUnitsBetweenLooks);
      for (; done < end; ++done) flash.overwrite(random ? places.below(units) : done % units);
    }
    return done;
  }

  const EmulatedSpec spec_;
  std::unique_ptr<device::EmulatedDevice> device_;
  double fill_ = 0;
  std::uint64_t data_bytes_ = 0;  // data is contiguous from the drive's start up to here
};

}  // namespace

Result<PreparedTarget> make_emulated(EmulatedSpec spec, const WriteWatch& watch) {
  const device::InitialState initial = spec.initial;
  auto target = std::make_unique<EmulatedTarget>(std::move(spec));
  auto written = target->make(initial, watch);
  if (!written) return written.status();
  return PreparedTarget{std::move(target), *written};
}

}  // namespace spillway::probe
