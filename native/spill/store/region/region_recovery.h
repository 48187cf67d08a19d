// What a process finds in the region's directory: which records are whole, and whether what is not was torn by a loss
// of power or damaged since.
//
// A loss of power tears what was not durable: of the newest log, or of one before it that the newest does not know to
// be durable, that of which no frame behind it knows. Anything else is damage: what was acknowledged as durable would
// be lost with it.
#pragma once

#include <rocksdb/status.h>

#include "spill/store/region/durable_ends.h"
#include "spill/store/region/region_directory.h"
#include "spill/store/region/region_logs.h"
#include "spill/store/store.h"

namespace spillway::spill {

// Opens the directory's logs into `logs`, reads `ends`, and calls `each` for every record, as Store::recover promises.
// REQUIRES: no other thread uses them yet
rocksdb::Status recover_logs(const RegionDirectory& directory, RegionLogs& logs, DurableEnds& ends,
                             const Store::Each& each);

}  // namespace spillway::spill
