// The parts of this folder, put together.
#pragma once

#include <string>

#include "spill/rollback/bring_back.h"
#include "spill/rollback/main_only.h"
#include "spill/rollback/rollback_thread.h"

namespace spillway::spill {

class Rollbacks {
 public:
  Rollbacks(ValueReader values, MainDb& main, LiveSet& live, Commits& commits, Detector& detector, Telemetry& telemetry,
            std::string sorted_directory)
      : context_{commits.options(), live.store(), values, main, live, commits, detector, room, telemetry},
        bring_back(context_, std::move(sorted_directory)),
        thread(context_, bring_back),
        main_only(context_, bring_back, thread) {}

 private:
  const RollbackContext context_;

 public:
  RoomSignal room;
  BringBack bring_back;
  RollbackThread thread;
  MainOnly main_only;
};

}  // namespace spillway::spill
