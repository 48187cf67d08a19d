#include "faults/drive.h"

#include <filesystem>
#include <thread>
#include <utility>

namespace spillway::faults {

using rocksdb::IOStatus;

IOStatus to_io_status(const Status& status) {
  return status ? IOStatus::OK() : IOStatus::IOError("the fault layer itself failed", status.message());
}

IOStatus Drive::power_is_off() { return IOStatus::IOError("the power is off (injected)"); }

std::optional<std::string> Drive::name_of(const std::string& path) const {
  std::error_code failure;
  const auto absolute = std::filesystem::absolute(path, failure);
  const std::string normal = (failure ? std::filesystem::path(path) : absolute).lexically_normal().string();
  if (!normal.starts_with(root_ + "/")) return std::nullopt;
  std::string name = normal.substr(root_.size() + 1);
  if (name.ends_with('/')) name.pop_back();
  if (!holds_data(name)) return std::nullopt;
  return name;
}

bool Drive::is_root(const std::string& path) const {
  const auto normal = std::filesystem::path(path).lexically_normal();
  return (normal.has_filename() ? normal : normal.parent_path()) == root_;
}

void Drive::set_fault_rule(FileFaultRule rule) {
  const std::unique_lock lock(rule_mutex_);
  rule_ = rule ? std::make_shared<const FileFaultRule>(std::move(rule)) : nullptr;
}

void Drive::cut_power() {
  const std::unique_lock lock(journal_mutex_);
  off_ = true;
}

bool Drive::is_off() {
  const std::unique_lock lock(journal_mutex_);
  return off_;
}

FileFault Drive::fault_of(Action action, const std::string& name, std::uint64_t bytes, std::uint64_t grows) {
  std::shared_ptr<const FileFaultRule> rule;
  {
    const std::shared_lock lock(rule_mutex_);
    rule = rule_;
  }
  if (!rule) return {};
  FileOperation operation{.action = action, .name = name, .bytes = bytes};
  if (action == Action::write) {
    const std::unique_lock lock(journal_mutex_);
    operation.bytes_after = journal_.files().used_bytes() + grows;
  }
  FileFault fault = (*rule)(operation);
  if (fault.delay.count() > 0) std::this_thread::sleep_for(fault.delay);
  return fault;
}

IOStatus Drive::fault_of_read(const std::string& name, std::uint64_t bytes) {
  if (is_off()) return power_is_off();
  return fault_of(Action::read, name, bytes).status;
}

}  // namespace spillway::faults
