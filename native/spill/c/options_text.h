// SpillOptions as a text of keys and values: "capacity=4GiB;rollback=adaptive".
#pragma once

#include <rocksdb/status.h>

#include <string>

#include "spillway/options.h"

namespace spillway::spill {

// Sets in `options` what the text names. InvalidArgument: a key that is none, with the nearest one; a value that a key
// does not take; a key that is given twice; a generation larger than the capacity.
rocksdb::Status set_from_text(const std::string& text, SpillOptions* options);

}  // namespace spillway::spill
