// One drive for all that a process opens on it, from its first use until the process exits.
//
// With a state directory it lives on between processes:
//   DIR/drive.state    the drive model
//   DIR/volume.json    which file has which LBAs
//   DIR/standing.json  how the drive was brought to where it began
//   DIR/lock           held while a process uses the drive
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "device/emulated/emulated.h"
#include "fs/volume.h"
#include "plugin/uri.h"

namespace spillway::plugin {

class KeptDrive {
 public:
  // Loads the drive from its state directory, or makes it. bad_input, with one sentence: what parse_uri and
  // device::resolve refuse, a damaged state, a directory that cannot be used or that another process uses.
  static Result<std::unique_ptr<KeptDrive>> open(const std::string& uri);
  ~KeptDrive();
  KeptDrive(const KeptDrive&) = delete;
  KeptDrive& operator=(const KeptDrive&) = delete;

  fs::Volume& volume() { return *volume_; }

  // Stops charging, saves the state and writes the counters. The volume may still be used afterwards.
  Status close();

 private:
  KeptDrive() = default;

  Status lock_state();
  Status make_or_load(const device::Drive& drive);
  Status load_standing();
  Status save() const;
  Status write_report() const;
  nlohmann::ordered_json report() const;
  std::string in_state(const char* name) const { return uri_.state + "/" + name; }

  DriveUri uri_;
  int lock_ = -1;
  bool loaded_ = false;
  std::uint64_t preset_capacity_bytes_ = 0;  // 0: the preset alone makes no drive
  nlohmann::ordered_json standing_;
  nlohmann::ordered_json counters_at_open_;
  std::unique_ptr<device::EmulatedDevice> device_;
  std::unique_ptr<fs::Volume> volume_;
};

}  // namespace spillway::plugin
