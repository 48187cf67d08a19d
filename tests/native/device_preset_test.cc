// Presets: every accepted spelling, every refusal, and the presets of the project.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/spelling.h"
#include "checkout.h"
#include "device/model/drive_model.h"
#include "device/preset/drive_keys.h"
#include "device/preset/preset.h"
#include "device_small_drive.h"
#include "needs.h"
#include "ssd/ssd.h"
#include "temporary_directory.h"

namespace spillway::device {
namespace {

std::vector<std::string> shipped_dirs() { return {(checkout() / "presets").string()}; }

class PresetFile {
 public:
  explicit PresetFile(const std::string& text) { std::ofstream(path()) << text; }
  std::string path() const { return directory_.path("x.toml"); }
  Result<Drive> resolve(std::map<std::string, std::string> set = {}) const {
    DriveSpec spec;
    spec.preset_file = path();
    spec.set = std::move(set);
    return device::resolve(spec);
  }
  // The refusal without the file's name, with which it must begin.
  std::string refusal(std::map<std::string, std::string> set = {}) const {
    const auto drive = resolve(std::move(set));
    if (drive) return "(taken)";
    EXPECT_EQ(drive.status().fault(), Fault::bad_input);
    const std::string message = drive.status().message();
    EXPECT_TRUE(message.starts_with(path() + ": ") || message.starts_with("--set: ")) << message;
    return message.substr(message.find(": ") + 2);
  }

 private:
  TemporaryDirectory directory_;
};

TEST(ParseSize, TakesBytesAndUnits) {
  EXPECT_EQ(parse_size("4096").value(), 4096U);
  EXPECT_EQ(parse_size("8GiB").value(), std::uint64_t{8} << 30);
  EXPECT_EQ(parse_size("1.5 TB").value(), 1'500'000'000'000U);
  EXPECT_EQ(parse_size("512MiB").value(), std::uint64_t{512} << 20);
  EXPECT_EQ(parse_size("18446744073709551615").value(), ~std::uint64_t{0});
}

TEST(ParseSize, RefusesWhatIsNoSize) {
  for (const char* text : {"", "GiB", "-1", "1.5", "8 Gb", "nan", "inf", "1e30", "0x10", "1e20TB"}) {
    EXPECT_FALSE(parse_size(text)) << text;
  }
}

TEST(Nearest, FindsTypingErrorsOnly) {
  const std::vector<std::string> names = {"timing.read_ns", "timing.erase_ns", "gc.policy"};
  EXPECT_EQ(nearest("timing.raed_ns", names), "timing.read_ns");
  EXPECT_EQ(nearest("gc.polcy", names), "gc.policy");
  EXPECT_EQ(nearest("colour", names), "");
}

TEST(Preset, TakesEveryKindOfValue) {
  const PresetFile file(R"(
name = "x"
summary = "a drive"
[geometry]
channels = 4
page_bytes = "16KiB"
[capacity]
capacity_bytes = "1GiB"
over_provisioning = 0.25
[timing]
read_ns = [40_000, 60_000]
program_ns = 700_000
channel_mb_s = 800
independent_plane_reads = true
[gc]
policy = "d-choices:7"
[sources]
"timing.read_ns" = "quoted"
timing.program_ns = "dotted"
[published]
read_iops = 500_000
nested.anything = ["is", 1, "fine"]
)");
  const auto drive = file.resolve();
  ASSERT_TRUE(drive) << drive.status().message();
  const ssd::SsdConfig& config = drive.value().config;
  EXPECT_EQ(config.name, "x");
  EXPECT_EQ(drive.value().summary, "a drive");
  EXPECT_EQ(config.geometry.channels, 4U);
  EXPECT_EQ(config.geometry.page_bytes, 16384U);
  EXPECT_EQ(config.capacity.capacity_bytes, std::uint64_t{1} << 30);
  EXPECT_DOUBLE_EQ(config.capacity.spare_factor, 0.2);
  EXPECT_EQ(config.timing.read_ns, (std::vector<std::int64_t>{40'000, 60'000}));
  EXPECT_EQ(config.timing.program_ns, (std::vector<std::int64_t>{700'000}));
  EXPECT_TRUE(config.timing.independent_plane_reads);
  EXPECT_EQ(config.gc.policy, ssd::GcPolicy::d_choices);
  EXPECT_EQ(config.gc.choices, 7U);
  EXPECT_EQ(drive.value().sources.at("timing.read_ns"), "quoted");
  EXPECT_EQ(drive.value().sources.at("timing.program_ns"), "dotted");
}

struct Refusal {
  const char* text;
  const char* sentence;
};

TEST(Preset, RefusesInOneSentenceThatNamesTheKeyAndTheMend) {
  const Refusal refusals[] = {
      {"[timing]\nraed_ns = 1", "unknown key timing.raed_ns; did you mean timing.read_ns?"},
      {"[timimg]\nread_ns = 1", "unknown key timimg; did you mean timing?"},
      {"[geometry]\nchannels = \"four\"", "geometry.channels is 'four'; it takes a whole number from 0 to 4294967295"},
      {"[geometry]\nchannels = 4.5", "geometry.channels is 4.5; it takes a whole number from 0 to 4294967295"},
      {"[geometry]\nchannels = -1", "geometry.channels is -1; it takes a whole number from 0 to 4294967295"},
      {"[timing]\nread_ns = []",
       "timing.read_ns is []; it takes nanoseconds, or one entry per page type like [40000, 60000, 90000]"},
      {"[timing]\nchannel_mb_s = nan", "timing.channel_mb_s is nan; it takes a number"},
      {"[write_cache]\nbytes = \"much\"",
       "write_cache.bytes is 'much'; it takes a number of bytes or a size with its unit, like 4096 or \"8GiB\""},
      {"[write_cache]\npower_loss_protection = 1", "write_cache.power_loss_protection is 1; it takes true or false"},
      {"[gc]\npolicy = \"d-choices:0\"",
       "gc.policy is 'd-choices:0'; it takes \"greedy\", \"fifo\", \"d-choices:D\" with D at least 1, or "
       "\"cost-benefit\""},
      {"[capacity]\nspare_factor = 0.2\nover_provisioning = 0.25",
       "capacity.over_provisioning and spare_factor are two names for one thing; give one of them"},
      {"[namespaces]\nretrieve_offset = 1", "namespaces.retrieve_offset is 1; it takes true or false"},
      {"[capacity]\ncapacity_bytes = \"1GiB\"\n[namespaces]\nbatch_retrieve_keys = 1",
       "namespaces.batch_retrieve_keys: must be 0 (no batch retrieve) or between 2 and 128"},
      {"[namespaces]\nbatch_retrieve_keys = -2",
       "namespaces.batch_retrieve_keys is -2; it takes a whole number from 0 to 4294967295"},
      {"[capacity]\ncapacity_bytes = \"1GiB\"\n[namespaces]\nbatch_retrieve_keys = 8\ncore_pair_ns = "
       "9000\ncore_batch_key_ns = 9001",
       "namespaces.core_batch_key_ns: must be at most namespaces.core_pair_ns, 9000: a key of a batch costs no more "
       "than one of its own"},
      {"gc = 1", "gc is 1; it takes a table: [gc]"},
      {"name = 1", "name is 1; it takes a text"},
      {"[sources]\n\"timing.raed_ns\" = \"x\"", "unknown key sources.timing.raed_ns; did you mean timing.read_ns?"},
      {"[sources]\n\"timing.read_ns\" = 1", "sources.timing.read_ns is 1; it takes a text"},
  };
  for (const Refusal& refusal : refusals) EXPECT_EQ(PresetFile(refusal.text).refusal(), refusal.sentence);
}

TEST(Preset, RefusesWhatIsNotToml) {
  const std::string refusal = PresetFile("[geometry\nchannels = 1").refusal();
  EXPECT_TRUE(refusal.starts_with("not TOML at line 1: ")) << refusal;
}

TEST(Preset, RefusesFilesThatCannotBeRead) {
  DriveSpec spec;
  spec.preset_file = "/nowhere/x.toml";
  EXPECT_EQ(resolve(spec).status().message(),
            "/nowhere/x.toml: cannot be read (No such file or directory); name a preset file");
  spec.preset_file = "/";
  EXPECT_EQ(resolve(spec).status().message(), "/: is a directory; name a preset file in it");
}

TEST(Preset, UnknownNamesGetTheNearestOrAll) {
  DriveSpec spec;
  spec.preset_dirs = shipped_dirs();
  spec.preset = "qickstart";
  EXPECT_EQ(resolve(spec).status().message(), "unknown preset \"qickstart\"; did you mean \"quickstart\"?");
  spec.preset = "zip";
  std::string known;
  for (const auto& name : preset_names(shipped_dirs())) known += (known.empty() ? " " : ", ") + name;
  EXPECT_EQ(resolve(spec).status().message(), "unknown preset \"zip\"; known are" + known);
  spec.preset = "../presets/quickstart";
  EXPECT_FALSE(resolve(spec)) << "a name is not a path";
  spec.preset_dirs = {"/nowhere"};
  EXPECT_FALSE(resolve(spec));
}

TEST(Overrides, WinOverTheFileAndNameThemselves) {
  const PresetFile file(
      "[capacity]\nblocks_per_plane = 64\nspare_factor = 0.1\n[sources]\n\"capacity.spare_factor\" = \"x\"");
  const auto drive = file.resolve({{"capacity.capacity_bytes", "2GiB"},
                                   {"capacity.over_provisioning", "1.0"},
                                   {"gc.policy", "fifo"},
                                   {"timing.read_ns", "[1000, 2000]"},
                                   {"write_cache.bytes", "\"1MiB\""},
                                   {"wear_levelling.dynamic", "false"}});
  ASSERT_TRUE(drive) << drive.status().message();
  const ssd::SsdConfig& config = drive.value().config;
  EXPECT_EQ(config.capacity.capacity_bytes, std::uint64_t{2} << 30);
  EXPECT_EQ(config.capacity.blocks_per_plane, 0U) << "the two ways to say the size exclude each other";
  EXPECT_DOUBLE_EQ(config.capacity.spare_factor, 0.5);
  EXPECT_EQ(config.gc.policy, ssd::GcPolicy::fifo);
  EXPECT_EQ(config.timing.read_ns.size(), 2U);
  EXPECT_EQ(config.write_cache.bytes, std::uint64_t{1} << 20);
  EXPECT_FALSE(config.wear_levelling.dynamic);
  EXPECT_EQ(drive.value().sources.at("capacity.spare_factor"), "--set");

  const auto blocks =
      PresetFile("[capacity]\ncapacity_bytes = \"1GiB\"").resolve({{"capacity.blocks_per_plane", "50"}});
  ASSERT_TRUE(blocks) << blocks.status().message();
  EXPECT_EQ(blocks.value().config.capacity.capacity_bytes, 0U);
}

TEST(Overrides, AreRefusedLikeTheFile) {
  const PresetFile file("[capacity]\ncapacity_bytes = \"1GiB\"");
  EXPECT_EQ(file.refusal({{"timing.raed_ns", "1"}}), "unknown key timing.raed_ns; did you mean timing.read_ns?");
  EXPECT_EQ(file.refusal({{"geometry.channels", "1\ngeometry.x = 2"}}).substr(0, 21), "geometry.channels is ");
  EXPECT_EQ(file.refusal({{"capacity.over_provisioning", "-1"}}),
            "capacity.over_provisioning is -1; it takes a number of 0 or more");
}

TEST(Relations, AreReportedForTheSourceOfTheKey) {
  const PresetFile file("[capacity]\nspare_factor = 1.5\ncapacity_bytes = \"1GiB\"");
  EXPECT_TRUE(file.resolve().status().message().starts_with(file.path() + ": capacity.spare_factor: "));
  EXPECT_TRUE(
      file.resolve({{"capacity.spare_factor", "2"}}).status().message().starts_with("--set: capacity.spare_factor: "));
}

TEST(ExplicitGeometry, NeedsACapacityAndTakesTheDefaults) {
  DriveSpec spec;
  EXPECT_FALSE(resolve(spec));
  spec.set = {{"capacity.capacity_bytes", "1GiB"}};
  const auto drive = resolve(spec);
  ASSERT_TRUE(drive) << drive.status().message();
  EXPECT_EQ(drive.value().config.geometry.page_bytes, 4096U);
}

TEST(ShippedPresets, AreNamedAfterTheirFiles) {
  const auto names = preset_names(shipped_dirs());
  EXPECT_GE(names.size(), 5U);
  for (const auto& name : names) {
    DriveSpec spec;
    spec.preset = name;
    spec.preset_dirs = shipped_dirs();
    const auto drive = resolve(spec);
    ASSERT_TRUE(drive) << drive.status().message();
    EXPECT_EQ(drive.value().config.name, name);
    EXPECT_FALSE(drive.value().summary.empty());
  }
}

// A number without a source would be an undeclared guess.
TEST(ShippedPresets, GiveASourceForEveryNumber) {
  for (const auto& name : preset_names(shipped_dirs())) {
    DriveSpec spec;
    spec.preset = name;
    spec.preset_dirs = shipped_dirs();
    auto drive = resolve(spec);
    ASSERT_TRUE(drive) << drive.status().message();
    const auto& sources = drive->sources;
    for (const auto& [key, slot] : keys_in_use(*drive)) {
      const auto* const size = std::get_if<SizeSlot>(&slot);
      if (key == "capacity.capacity_bytes" && *size->bytes == 0) continue;
      if (key == "capacity.blocks_per_plane" && drive->config.capacity.blocks_per_plane == 0) continue;
      const bool as_over_provisioning =
          key == "capacity.spare_factor" && sources.contains("capacity.over_provisioning");
      EXPECT_TRUE(as_over_provisioning || sources.contains(key)) << name << ": " << key;
    }
    for (const auto& [key, source] : sources) EXPECT_GT(source.size(), 4U) << name << ": " << key;
  }
}

// The whole drive is created, with the preset's parallelism. The capacity is scaled down to the time of a test.
TEST(ShippedPresets, MakeDrives) {
  SPILLWAY_LONG_TEST();
  for (const auto& name : preset_names(shipped_dirs())) {
    DriveSpec spec;
    spec.preset = name;
    spec.preset_dirs = shipped_dirs();
    spec.set = {{"capacity.capacity_bytes", "4GiB"}};
    const auto drive = resolve(spec);
    ASSERT_TRUE(drive) << drive.status().message();
    DriveModel model(drive.value(), 1);
    model.submit(0, {.op = ssd::Opcode::write, .lba_count = 8, .lba = 0});
    std::vector<ssd::Completion> done;
    while (const auto next = model.next_event()) model.advance(*next, done);
    ASSERT_EQ(done.size(), 1U) << name;
    EXPECT_EQ(done[0].outcome, ssd::Outcome::success) << name;
  }
}

// --- Host stacks, caps, disks

const char* const kTwoStacks = R"(
[capacity]
capacity_bytes = "1GiB"
[host]
stack = "file-system"
[host_stack.file-system]
read_turn_ns = 9000
block_bytes = "4KiB"
[host_stack.bypass]
read_turn_ns = 10
)";

TEST(HostStacks, AreNamedTablesAndOneIsInUse) {
  const PresetFile file(kTwoStacks);
  EXPECT_EQ(file.resolve()->layers().host_stack.read_turn_ns, 9000);
  EXPECT_EQ(file.resolve()->layers().host_stack.block_bytes, 4096U);
  EXPECT_EQ(file.resolve({{"host.stack", "bypass"}})->layers().host_stack.read_turn_ns, 10);
  EXPECT_EQ(file.resolve({{"host.stack", "none"}})->layers().host_stack.read_turn_ns, 0);
  EXPECT_EQ(file.resolve({{"host_stack.bypass.read_turn_ns", "77"}})->host_stacks.at("bypass").read_turn_ns, 77);
}

TEST(HostStacks, RefuseWhatTheyDoNotKnow) {
  const PresetFile file(kTwoStacks);
  EXPECT_EQ(file.refusal({{"host.stack", "spdk"}}), "host.stack is 'spdk'; this drive takes none, bypass, file-system");
  EXPECT_EQ(file.refusal({{"host.stack", "bypas"}}),
            "host.stack is 'bypas'; this drive takes none, bypass, file-system; did you mean bypass?");
  EXPECT_EQ(file.refusal({{"host_stack.bypass.raed_turn_ns", "1"}}),
            "unknown key host_stack.bypass.raed_turn_ns; did you mean host_stack.bypass.read_turn_ns?");
  EXPECT_EQ(file.refusal({{"host_stack.bypass.read_turn_ns", "2000000000"}}),
            "host_stack.bypass.read_turn_ns: must be between 0 and 1000000000 ns");
  EXPECT_EQ(PresetFile("[host_stack.a]\nturn = 1").refusal(), "unknown key host_stack.a.turn");
}

TEST(Layers, AreCheckedAtLoad) {
  const std::string disk = "[capacity]\ncapacity_bytes = \"1GiB\"\n[disk]\nrevolution_ns = 8333333\n";
  EXPECT_EQ(PresetFile(disk).refusal(), "disk.outer_mb_s: must be above 0");
  EXPECT_EQ(PresetFile(disk + "outer_mb_s = 2\ninner_mb_s = 1\ntrack_seek_ns = 5").refusal(),
            "disk.full_seek_ns: must be at least disk.track_seek_ns");
  for (const char* depth : {"0", "1025"}) {
    EXPECT_EQ(PresetFile(disk + "outer_mb_s = 2\ninner_mb_s = 1\nqueue_depth = " + depth).refusal(),
              "disk.queue_depth: must be between 1 and 1024");
  }
  EXPECT_EQ(PresetFile(disk + "outer_mb_s = 2\ninner_mb_s = 1\nage_limit_ns = 1000000001").refusal(),
            "disk.age_limit_ns: must be between 0 and 1000000000 ns");
  EXPECT_TRUE(PresetFile(disk + "outer_mb_s = 2\ninner_mb_s = 1").resolve()->layers().is_disk());
  EXPECT_EQ(PresetFile("[cap]\niops = -1").refusal(), "cap.iops: must be 0 (no limit) or more");
}

// FIFO's closed form has one log. Other policies separate relocated data.
TEST(Resolve, AnExplicitFifoGeometryHasOneLogByDefault) {
  const auto separate = [](std::map<std::string, std::string> set) {
    set["capacity.capacity_bytes"] = "1GiB";
    DriveSpec spec;
    spec.set = std::move(set);
    return resolve(spec).value().config.gc.separate_streams;
  };
  EXPECT_FALSE(separate({{"gc.policy", "fifo"}}));
  EXPECT_TRUE(separate({{"gc.policy", "greedy"}}));
  EXPECT_TRUE(separate({{"gc.policy", "fifo"}, {"gc.separate_streams", "true"}}));
}

}  // namespace
}  // namespace spillway::device
