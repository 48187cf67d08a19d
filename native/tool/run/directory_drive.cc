#include "tool/run/directory_drive.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "device/counters_json.h"

namespace spillway::tool {
namespace {

constexpr std::uint64_t kSectorBytes = 512;  // unit of sysfs's counters, whatever the drive's sector size is
constexpr std::size_t kSectorsRead = 2;      // index of the field in a stat file
constexpr std::size_t kSectorsWritten = 6;

std::optional<std::array<std::uint64_t, kSectorsWritten + 1>> read_stat(const std::string& path) {
  std::array<std::uint64_t, kSectorsWritten + 1> fields{};
  std::ifstream file(path);
  for (std::uint64_t& field : fields) {
    if (!(file >> field)) return std::nullopt;
  }
  return fields;
}

// 0 if the kernel does not report it.
std::uint64_t process_bytes_written() {
  std::ifstream file("/proc/self/io");
  std::string name;
  std::uint64_t value = 0;
  while (file >> name >> value) {
    if (name == "write_bytes:") return value;
  }
  return 0;
}

// Writes back the page cache of a directory's files. Skips files that are deleted meanwhile.
void write_out(const std::string& directory) {
  std::error_code failure;
  std::filesystem::recursive_directory_iterator entry(directory, failure);
  for (; !failure && entry != std::filesystem::recursive_directory_iterator(); entry.increment(failure)) {
    const int file = ::open(entry->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) continue;
    (void)::fdatasync(file);
    ::close(file);
  }
}

// A counter that has decreased belongs to a drive that was removed and attached again. The interval is then unknown.
bool went_back(const DirectoryDrive::Traffic& before, const DirectoryDrive::Traffic& now) {
  return now.host_bytes_written < before.host_bytes_written || now.host_bytes_read < before.host_bytes_read;
}

}  // namespace

DirectoryDrive::DirectoryDrive(Place place, const fs::WriteCounts& writes, fs::Volume* estimate)
    : place_(std::move(place)), writes_(writes), estimate_(estimate), last_(read()), last_writes_(writes.bytes()) {
  if (last_) measured_ = Traffic{};
  if (estimate_ != nullptr) last_model_ = estimate_->device().counters();
}

std::optional<DirectoryDrive::Traffic> DirectoryDrive::read() const {
  if (place_.counters.empty()) return std::nullopt;
  Traffic sum;
  for (const std::string& path : place_.counters) {
    const auto fields = read_stat(path);
    if (!fields) return std::nullopt;
    sum.host_bytes_written += (*fields)[kSectorsWritten] * kSectorBytes;
    sum.host_bytes_read += (*fields)[kSectorsRead] * kSectorBytes;
  }
  sum.process_bytes_written = process_bytes_written();
  return sum;
}

Json DirectoryDrive::take_interval(bool measured) {
  if (estimate_ != nullptr) {
    const ssd::Counters now = estimate_->device().counters();
    if (measured) measured_model_ = load::sum(measured_model_, load::growth(last_model_, now));
    last_model_ = now;
  }
  const fs::WriteCounts::Bytes now = writes_.bytes();
  fs::WriteCounts::Bytes written{};
  for (std::size_t cause = 0; cause < now.size(); ++cause) {
    written[cause] = now[cause] - last_writes_[cause];
    if (measured) measured_writes_[cause] += written[cause];
  }
  last_writes_ = now;
  Json drive = {{"host_bytes_written_by_cause", device::by_host_cause(written)}};
  if (const std::optional<Traffic> grown = grow(measured)) {
    drive["host_bytes_written"] = grown->host_bytes_written;
    drive["host_bytes_read"] = grown->host_bytes_read;
    drive["process_bytes_written"] = grown->process_bytes_written;
  }
  return drive;
}

std::optional<DirectoryDrive::Traffic> DirectoryDrive::grow(bool measured) {
  const std::optional<Traffic> now = read();
  const std::optional<Traffic> before = std::exchange(last_, now);
  if (!now || !before || went_back(*before, *now)) {
    measured_.reset();
    return std::nullopt;
  }
  const Traffic grown{.host_bytes_written = now->host_bytes_written - before->host_bytes_written,
                      .host_bytes_read = now->host_bytes_read - before->host_bytes_read,
                      .process_bytes_written = now->process_bytes_written - before->process_bytes_written};
  if (measured && measured_) {
    measured_->host_bytes_written += grown.host_bytes_written;
    measured_->host_bytes_read += grown.host_bytes_read;
    measured_->process_bytes_written += grown.process_bytes_written;
  }
  return grown;
}

bool DirectoryDrive::is_measured_next(const load::PhaseSpec& phase) const {
  const auto next = static_cast<std::size_t>(&phase - place_.phases.data()) + 1;
  return next < place_.phases.size() && place_.phases[next].measured;
}

void DirectoryDrive::before_last_sample(const load::PhaseSpec& phase) {
  if (place_.counters.empty() || phase.measured || !is_measured_next(phase)) return;
  write_out(place_.directory);
}

void DirectoryDrive::end_phase(const load::PhaseSpec& phase) {
  if (place_.counters.empty() || !phase.measured || is_measured_next(phase)) return;
  write_out(place_.directory);
  (void)grow(/*measured=*/true);  // no sample includes it
}

void DirectoryDrive::put(Json& result) const {
  if (measured_) {
    result["host_bytes_written"] = measured_->host_bytes_written;
    result["host_bytes_read"] = measured_->host_bytes_read;
    result["process_bytes_written"] = measured_->process_bytes_written;
  }
  result["host_bytes_written_by_cause"] = device::by_host_cause(measured_writes_);
  if (estimate_ == nullptr) return;
  const Status failure = estimate_->failure();
  const device::DeviceInfo& info = estimate_->device().info();
  result["estimate"] = {
      {"preset", info.name},
      {"capacity_bytes", info.capacity_bytes},
      {"host_bytes_written", measured_model_.host_bytes_written},
      {"host_bytes_written_by_cause", device::by_host_cause(measured_model_.host_bytes_written_by_cause)},
      {"nand_bytes_programmed", device::by_flash_cause(measured_model_.nand_bytes_programmed)},
      {"failure", failure ? Json(nullptr) : Json(failure.message())}};
}

}  // namespace spillway::tool
