// The entry point for programs that load this engine; see engine/modules.h.
#include "engine/modules.h"
#include "engine/wiredtiger/engine.h"

extern "C" [[gnu::visibility("default")]] const char* spillway_engine_sources() {
  return spillway::engine::sources_stamp();
}

extern "C" [[gnu::visibility("default")]] const spillway::engine::EngineKind* spillway_engine_kind() {
  static const spillway::engine::EngineKind kind = spillway::engine::wiredtiger_engine();
  return &kind;
}
