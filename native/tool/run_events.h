// What a run says while it goes on, as events of the contract.
#pragma once

#include <span>

#include "load/run.h"
#include "tool/directory_drive.h"
#include "tool/events.h"
#include "tool/run_commands.h"

namespace spillway::tool {

class RunEvents final : public load::RunListener {
 public:
  // What the store's files lie on: the drive under a plain directory, or an emulated drive's volume, whose files are
  // synced where `phases` begin and cease to be measured, so that each byte counts in the phase that wrote it.
  struct Files {
    DirectoryDrive* under = nullptr;
    fs::Volume* volume = nullptr;
    std::span<const load::PhaseSpec> phases;  // of the run, in turn
  };

  // `causes`: names of what holds the engine's writers back (Engine::stall_causes). REQUIRES: all of it outlives this.
  // `commands`: what the run is asked meanwhile; null: nothing.
  RunEvents(Events& events, std::span<const char* const> causes, Files files, const RunCommands* commands = nullptr)
      : events_(events), causes_(causes), files_(files), commands_(commands) {}

  void on_progress(const load::Progress& progress) override;
  void on_sample(const load::PhaseSpec& phase, const load::Sample& sample) override;
  void on_stall(const engine::Stall& stall) override;
  void on_event(const engine::Event& event) override;
  void on_phase(const load::PhaseReport& report) override;
  bool ends_phase(std::size_t index) override;
  Status on_threads_ended(const load::PhaseSpec& phase) override;

 private:
  Events& events_;
  std::span<const char* const> causes_;
  Files files_;
  const RunCommands* commands_;
  engine::SpillObservation last_spill_;  // cumulative, as of the last sample
};

// The part of a result that comes from the run itself: sums over the measured phases. `has_drive`: with drive figures.
Json run_figures(const load::RunReport& report, bool has_drive, std::span<const char* const> causes);

}  // namespace spillway::tool
