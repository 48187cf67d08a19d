// Writes the events of a run in progress, as the contract defines them.
#pragma once

#include <span>

#include "load/run.h"
#include "tool/protocol/events.h"
#include "tool/run/control.h"
#include "tool/run/directory_drive.h"

namespace spillway::tool {

class RunEvents final : public load::RunListener {
 public:
  // What is under the engine's files: the drive of a plain directory, or the volume of an emulated drive. The volume is
  // synced before the first and after the last of consecutive measured phases, so that each byte counts in the phase
  // that wrote it.
  struct Files {
    DirectoryDrive* directory_drive = nullptr;
    fs::Volume* volume = nullptr;
    std::span<const load::PhaseSpec> phases;  // of the run, in order
  };

  // `causes`: Engine::stall_causes(). REQUIRES: all arguments outlive this.
  // `control`: commands to the run; null: none.
  RunEvents(Events& events, std::span<const char* const> causes, Files files, const RunControl* control = nullptr)
      : events_(events), causes_(causes), files_(files), control_(control) {}

  void on_progress(const load::Progress& progress) override;
  void on_sample(const load::PhaseSpec& phase, const load::Sample& sample) override;
  void on_stall(const engine::Stall& stall) override;
  void on_event(const engine::Event& event) override;
  void on_phase(const load::PhaseReport& report) override;
  bool should_end_phase(std::size_t index) override;
  Status on_threads_ended(const load::PhaseSpec& phase) override;

 private:
  Events& events_;
  std::span<const char* const> causes_;
  Files files_;
  const RunControl* control_;
  SpillStatistics last_spill_;  // cumulative, as of the last sample
};

// The run's part of a result: sums over the measured phases. `has_drive`: includes figures of the drive.
Json run_figures(const load::RunReport& report, bool has_drive, std::span<const char* const> causes);

}  // namespace spillway::tool
