// WiredTiger's options under their own names.
//
// A name is one of wiredtiger_open's configuration (cache_size, log.file_max, eviction_dirty_trigger) or of
// WT_SESSION::create's for the table (leaf_page_max, memory_page_max, block_compressor). Dots separate categories.
// Names that both have (log, verbose) are the connection's; the prefix `table.` selects the table's. Values are in
// WiredTiger's spelling, where MB is 2^20 bytes, or sizes with KiB, MiB, GiB. `sync` is an additional option, as other
// engines have it: true: a commit is durable when it returns; false: it is with the operating system.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine_kind.h"

namespace spillway::engine {

struct WiredtigerOptions {
  std::string connection;  // for wiredtiger_open(), without `extensions`
  std::string extensions;  // the user's, separated by commas
  std::string table;       // for WT_SESSION::create()
  bool compresses = false;

  // `checkpoint=(wait,log_size)`, for the engine's own checkpoint thread; 0: no checkpoints of this kind.
  std::uint64_t checkpoint_wait_s = 0;
  std::uint64_t checkpoint_log_bytes = 0;

  // Shares of cache_size above which WiredTiger makes writers evict. updates: half of dirty by default.
  double eviction_share = 0;
  double eviction_dirty_share = 0;
  double eviction_updates_share = 0;
};

// bad_input with one sentence: an unknown name and the nearest one, or a value that WiredTiger refuses and its reason.
Result<WiredtigerOptions> parse_wiredtiger_options(const StringMap& options);

// The version of the library in this process: "3.2.1".
std::string wiredtiger_version_text();

// Names that this version of WiredTiger has. Those of the table that the connection has too begin with `table.`.
std::vector<std::string> wiredtiger_option_names();

}  // namespace spillway::engine
