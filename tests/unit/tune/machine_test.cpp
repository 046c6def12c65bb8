#include "tune/machine.hpp"

#include <string>

namespace opmux::tune {
namespace {

base::MachineFacts xeon() {
  base::MachineFacts facts;
  const std::string one =
      "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n"
      "model name\t: Intel(R) Xeon(R) Processor @ 2.50GHz\nstepping\t: 7\nmicrocode\t: 0x1\n"
      "flags\t\t: fpu hypervisor avx avx2 fma avx512f sse4_2 ibrs md_clear\n\n";
  facts.cpuinfo = one + one;
  facts.enabled_states = 0xe7;
  facts.last_level_cache = 36608 * 1024;
  facts.kernel = "6.1.0";
  return facts;
}

TEST(Machine, names_what_the_speed_depends_on_and_no_host) {
  const Machine machine = describe_machine(xeon());
  EXPECT_EQ(machine.hard,
            "GenuineIntel 6-85-7 isa=avx,avx2,avx512f,fma,sse4_2 states=e7 llc=36608K cores=2");
  EXPECT_EQ(machine.soft, "kernel=6.1.0 microcode=0x1");
}

TEST(Machine, of_another_architecture_is_named_by_its_implementer) {
  base::MachineFacts facts;
  facts.cpuinfo =
      "processor\t: 0\nFeatures\t: fp asimd crc32 sve\nCPU implementer\t: 0x41\n"
      "CPU variant\t: 0x1\nCPU part\t: 0xd40\n";
  EXPECT_EQ(describe_machine(facts).hard,
            "arm 0x41-0xd40-0x1 isa=asimd,sve states=0 llc=0K cores=1");
}

TEST(Machine, rows_are_foreign_if_the_hard_part_differs_and_aged_if_the_soft_one_does) {
  const Machine here = describe_machine(xeon());
  EXPECT_EQ(validity_of(here, here), Validity::current);
  base::MachineFacts facts = xeon();
  facts.kernel = "6.2.0";
  EXPECT_EQ(validity_of(describe_machine(facts), here), Validity::aged);
  facts.enabled_states = 7;
  EXPECT_EQ(validity_of(describe_machine(facts), here), Validity::foreign);
}

TEST(Machine, this_one_can_be_read) {
  const Machine machine = describe_machine(base::read_machine_facts());
  EXPECT_EQ(machine.hard.find(" isa= "), std::string::npos) << machine.hard;
  EXPECT_EQ(machine.hard.find("cores=0"), std::string::npos) << machine.hard;
}

}  // namespace
}  // namespace opmux::tune
