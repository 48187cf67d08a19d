// A listener that is also told when its database is closed.
#pragma once

#include "spillway/options.h"
#include "spillway/statistics.h"

namespace spillway {

// Give it to SpillOptions::listeners as any other.
class SpillCloseListener : public SpillListener {
 public:
  // The database was closed, by Close() or by its destructor; once for each opening that succeeded. `last`: the last
  // statistics. What the spill store still holds is in `live_entries`. It must not call the DB.
  virtual void on_spill_close(const SpillStatistics& last) = 0;
  SpillCloseListener* as_close_listener() final { return this; }
};

}  // namespace spillway
