// spillway-native COMMAND: reads one JSON document, writes JSON lines. The contract: contract/README.md.
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include "base/spelling.h"
#include "tool/lsm/command.h"
#include "tool/pool/command.h"
#include "tool/probe/command.h"
#include "tool/protocol/command.h"
#include "tool/protocol/line_reader.h"
#include "tool/run/command.h"
#include "tool/spill/commands.h"
#include "tool/ssd/commands.h"

namespace {

using spillway::Fault;
using spillway::Status;
using spillway::tool::Command;
using spillway::tool::Events;
using spillway::tool::Json;

// The signal handler changes nothing else.
std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void request_stop(int /*signal*/) { stop_requested = true; }

struct Entry {
  const char* name;
  Command command;
};

constexpr auto kCommands = std::to_array<Entry>({
    {"ssd-simulate", spillway::tool::ssd_simulate},
    {"ssd-precondition", spillway::tool::ssd_precondition},
    {"ssd-show", spillway::tool::ssd_show},
    {"bufferpool", spillway::tool::bufferpool},
    {"lsm-simulate", spillway::tool::lsm_simulate},
    {"spill-show", spillway::tool::spill_show},
    {"spill-drain", spillway::tool::spill_drain},
});

Status unknown_command(const std::string& name) {
  std::vector<std::string> names = {"version", "probe", "run"};
  for (const Entry& entry : kCommands) names.emplace_back(entry.name);
  const std::string near = spillway::nearest(name, names);
  std::string message = "unknown command \"" + name + "\"";
  if (!near.empty()) return Status::bad_input(message + "; did you mean " + near + "?");
  message += "; commands are";
  for (const auto& other : names) message += (&other == &names.front() ? " " : ", ") + other;
  return Status::bad_input(message);
}

Status no_document(const std::string& name) {
  return Status::bad_input("standard input: not a JSON document; give the request of " + name);
}

// The request is the input's lines up to the first one that completes a JSON document. The lines after it are commands.
Status perform_run(Events& events) {
  spillway::tool::LineReader lines(STDIN_FILENO);
  std::string text;
  while (const auto line = lines.next(stop_requested)) {
    text += *line + "\n";
    if (line->find_last_of('}') == std::string::npos) continue;
    const Json request = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!request.is_discarded()) return spillway::tool::run_command(request, events, stop_requested, &lines);
  }
  return no_document("run");
}

Status perform(const std::string& name, Events& events) {
  if (name == "probe") {
    spillway::tool::LineReader lines(STDIN_FILENO);
    return spillway::tool::probe_command(lines, events, stop_requested);
  }
  if (name == "run") return perform_run(events);
  for (const Entry& entry : kCommands) {
    if (name != entry.name) continue;
    const std::string text(std::istreambuf_iterator<char>(std::cin), {});
    const Json request = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (request.is_discarded()) return no_document(name);
    return entry.command(request, events, stop_requested);
  }
  return unknown_command(name);
}

// A drive that does not fit into this machine's memory is reported as a failed request. It must not crash the process.
Status perform_or_fail(const std::string& name, Events& events) {
  try {
    return perform(name, events);
  } catch (const std::bad_alloc&) {
    return Status::error(Fault::io_error, "not enough memory for this drive; give a smaller capacity.capacity_bytes");
  }
}

int converse(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: spillway-native COMMAND < request.json > events.jsonl\n", stderr);
    return 2;
  }
  const std::string name = argv[1];
  if (name == "version" || name == "--version") {
    std::cout << spillway::tool::version() << std::endl;
    return 0;
  }
  std::signal(SIGINT, request_stop);
  std::signal(SIGTERM, request_stop);
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is reported as a failed write, and does not kill the process

  // Sets stop_requested if nobody reads: the work ends, and replaces no kept state.
  Events events(std::cout, &stop_requested);
  const Status status = perform_or_fail(name, events);
  if (!status) {
    events.error(status);
    return status.fault() == Fault::bad_input ? 2 : 1;
  }
  if (std::cout) return 0;
  std::fputs("spillway-native: nobody reads its events any more; it has ended its work\n", stderr);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return converse(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "spillway-native: %s\n", error.what());
    return 1;
  }
}
