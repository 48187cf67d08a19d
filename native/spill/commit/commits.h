// Connects the parts of this folder.
#pragma once

#include <utility>

#include "spill/commit/commit_pipeline.h"
#include "spill/commit/ordering_notes.h"
#include "spill/commit/spill_committer.h"
#include "spill/commit/spill_writer.h"
#include "spill/commit/store_usage.h"
#include "spill/store/write_pacer.h"

namespace spillway::spill {

class Commits {
 public:
  Commits(CommitContext context, ValueReader values)
      : context_(std::move(context)),
        usage(context_.options, context_.store, context_.live),
        pacer(context_.store.capacity_bytes(), context_.options.generation_bytes, WritePacer::Groups::some),
        pipeline(env_),
        writer(context_, pipeline.queue()),
        notes(context_, pipeline.queue(), writer),
        env_(context_, usage, pacer, writer, notes, values) {}

  const SpillOptions& options() const { return context_.options; }

 private:
  const CommitContext context_;

 public:
  StoreUsage usage;
  WritePacer pacer;
  CommitPipeline pipeline;
  SpillWriter writer;
  OrderingNotes notes;

 private:
  SpillCommitter env_;
};

}  // namespace spillway::spill
