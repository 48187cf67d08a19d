#include "tool/probe/command.h"

#include <memory>
#include <string>
#include <utility>

#include "device/counters_json.h"
#include "probe/measure.h"
#include "probe/target.h"
#include "ssd/structures/random.h"
#include "tool/probe/request.h"
#include "tool/protocol/drive_request.h"
#include "tool/protocol/progress_reporter.h"

namespace spillway::tool {
namespace {

using probe::Measurement;
using probe::Point;
using probe::Target;
using probe::Written;

class Session {
 public:
  Session(Events& events, const std::atomic<bool>& stop, std::uint64_t seed)
      : events_(events), stop_(stop), seed_(seed) {}

  // False: the command was stopped before the target was ready.
  Result<bool> open(ProbeRequest request) {
    auto* const emulated = std::get_if<probe::EmulatedSpec>(&request.target);
    events_.started("probe", emulated != nullptr ? shown(emulated->drive) : Json(nullptr));
    ProgressReporter progress(events_, "prepare", "bytes");
    auto made = emulated != nullptr
                    ? probe::make_emulated(std::move(*emulated), watch(progress))
                    : probe::make_direct(std::get<device::DirectFileSpec>(request.target), seed_, watch(progress));
    if (made.status().fault() == Fault::stopped) return false;
    if (!made) return made.status();
    target_ = std::move(made->target);
    tell_ready(made->written);
    return true;
  }

  // Returns whether to read the next line.
  Result<bool> answer(const ProbeLine& line) {
    if (const auto* point = std::get_if<Point>(&line)) return measure(*point);
    if (const auto* preparation = std::get_if<probe::Preparation>(&line)) {
      ProgressReporter progress(events_, "prepare", "bytes");
      return report_prepared(target_->prepare(*preparation, ssd::mix(seed_) + prepared_++, watch(progress)));
    }
    if (const auto* reset = std::get_if<ResetToSteadyCommand>(&line)) {
      ProgressReporter progress(events_, "fill", "bytes");
      return report_prepared(target_->reset_to_steady(reset->share, watch(progress)));
    }
    return false;
  }

  std::uint64_t points() const { return points_; }

 private:
  probe::WriteWatch watch(ProgressReporter& progress) {
    return [this, &progress](std::uint64_t done, std::uint64_t total) {
      progress.report(done, total);
      return !stop_;
    };
  }

  Result<bool> report_prepared(const Result<Written>& written) {
    if (written.status().fault() == Fault::stopped) return false;
    if (!written) return written.status();
    tell_ready(written.value());
    return true;
  }

  void tell_ready(const Written& written) {
    const probe::TargetInfo info = target_->info();
    Json json = {{"kind", info.kind},
                 {"size_bytes", info.size_bytes},
                 {"range_bytes", info.range_bytes},
                 {"lba_bytes", info.lba_bytes},
                 {"direct", info.direct},
                 {"writable", info.writable},
                 {"engines", info.has_io_uring ? Json{"io_uring", "sync"} : Json::array({"sync"})},
                 {"preset", info.preset},
                 {"path", info.path},
                 {"time_scale", info.time_scale}};
    if (info.fill) json["fill"] = *info.fill;
    json["written_bytes"] = written.bytes;
    json["complete"] = written.complete;
    events_.event("ready", json);
  }

  Result<bool> measure(const Point& point) {
    const probe::Extent extent = target_->info().extent();
    if (Status status = probe::check(point, extent); !status) return status;
    if (Status status = target_->admits(point); !status) return status;
    device::Device& device = target_->device_for(point);
    const ssd::Counters before = device.counters();
    const double cpu_began = cpu_seconds();
    ProgressReporter progress(events_, "measure", "operations");
    const auto measured = probe::measure(device, point, extent, seed_, [&](std::uint64_t ios) {
      progress.report(ios, point.ios);
      return !stop_;
    });
    if (!measured) return measured.status();
    Json json = figures(point, measured.value());
    json["cpu_s"] = cpu_seconds() - cpu_began;
    add_counters(json, device, before);
    json["complete"] = measured.value().complete;
    events_.event("measurement", json);
    ++points_;
    return true;
  }

  static Json figures(const Point& point, const Measurement& measured) {
    const double seconds = static_cast<double>(measured.length_ns) / 1e9;
    const auto ios = static_cast<double>(measured.ios());
    Histogram both = measured.read_latency;
    both.merge(measured.write_latency);
    Json json = {{"id", point.id},
                 {"ios", measured.ios()},
                 {"reads", measured.read_latency.count()},
                 {"writes", measured.write_latency.count()},
                 {"seconds", seconds},
                 {"iops", seconds > 0 ? ios / seconds : 0.0},
                 {"bandwidth_mb_s", seconds > 0 ? ios * static_cast<double>(point.bs_bytes) / 1e6 / seconds : 0.0},
                 {"latency_us", latency_us(both)}};
    if (point.mixed()) {
      json["read_latency_us"] = latency_us(measured.read_latency);
      json["write_latency_us"] = latency_us(measured.write_latency);
    }
    return json;
  }

  void add_counters(Json& json, device::Device& device, const ssd::Counters& before) const {
    const ssd::Counters now = device.counters();
    const std::uint64_t written = now.host_bytes_written - before.host_bytes_written;
    json["host_bytes_read"] = now.host_bytes_read - before.host_bytes_read;
    json["host_bytes_written"] = written;
    if (!target_->is_emulated()) return;
    ssd::Counters between;
    for (std::size_t i = 0; i < ssd::kFlashCauses; ++i) {
      between.nand_bytes_programmed[i] = now.nand_bytes_programmed[i] - before.nand_bytes_programmed[i];
    }
    const auto programmed = static_cast<double>(between.nand_bytes_programmed_total());
    json["nand_bytes_programmed"] = device::by_flash_cause(between.nand_bytes_programmed);
    json["wa_device"] = written > 0 ? Json(programmed / static_cast<double>(written)) : Json(nullptr);
    json["unmapped_reads"] = now.unmapped_reads - before.unmapped_reads;
    if (device.info().time_scale > 0) json["pacing_error_us"] = latency_us(device.pacing().error);
  }

  Events& events_;
  const std::atomic<bool>& stop_;
  const std::uint64_t seed_;
  std::unique_ptr<Target> target_;
  std::uint64_t points_ = 0;
  std::uint64_t prepared_ = 0;
};

Result<ProbeRequest> read_first(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return Status::bad_input("standard input: its first line is not a JSON document; give the request of probe on it");
  }
  return read_probe_request(json);
}

}  // namespace

Status probe_command(LineReader& lines, Events& events, const std::atomic<bool>& stop) {
  const double began = cpu_seconds();
  const auto first = lines.next(stop);
  // If it is stopped before any request, it still reports a result.
  auto request = !first && stop ? Result<ProbeRequest>(ProbeRequest{}) : read_first(first.value_or(""));
  if (!request) return request.status();
  Session session(events, stop, request->seed);
  auto continues = first ? session.open(std::move(*request)) : Result<bool>(false);
  while (continues && continues.value()) {
    const auto text = lines.next(stop);
    if (!text) break;
    const auto line = read_probe_line(*text, lines.number());
    if (!line) return line.status();
    continues = session.answer(line.value());
  }
  if (!continues) return continues.status();
  events.result(
      {{"points", session.points()}, {"cpu_seconds", cpu_seconds() - began}, {"peak_rss_bytes", peak_rss_bytes()}},
      !stop);
  return {};
}

}  // namespace spillway::tool
