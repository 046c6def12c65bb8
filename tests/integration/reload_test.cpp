#include "reload_stage.hpp"

#include <malloc.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <regex>
#include <thread>

#include "temporary_folder.hpp"

namespace opmux::test {
namespace {

using Clock = std::chrono::steady_clock;

/// One call and its report.
struct Sample {
  int op = -1;
  uint64_t generation = 0;
  char provider = 0;
};

/// Calls all operators in turn until stopped; measures each call.
class Caller {
 public:
  Caller(ReloadStage& stage, int first) : stage_(stage), next_(first) {}

  void run(const std::atomic<bool>& stop) {
    while (!stop.load(std::memory_order_relaxed)) call_once();
  }

  uint64_t calls = 0, failed = 0;
  std::vector<uint64_t> nanoseconds =
      std::vector<uint64_t>(1 << 16);  ///< histogram in steps of 8 ns
  // Allocated in advance, so that growth during the test is caused by the library.
  std::vector<Sample> samples = std::vector<Sample>(50'000);
  size_t sampled = 0;

 private:
  /// One call of so many is reported. A prime, so that calls of every operator are; large, because
  /// the call after a reported one takes longer and must not decide the 99.9th percentile.
  static constexpr uint64_t kSampling = 4093;

  void call_once() {
    const int op = next_ = (next_ + 1) % kOperators;
    const Operator& handle = stage_.operators[static_cast<size_t>(op)];
    if (++calls % kSampling == 0 && sampled < samples.size()) return call_and_report(op, handle);
    const auto before = Clock::now();
    const bool ok = handle(rows_.y, rows_.x).ok();
    const auto took = std::chrono::nanoseconds(Clock::now() - before).count();
    ++nanoseconds[std::min<size_t>(static_cast<size_t>(took) / 8, nanoseconds.size() - 1)];
    failed += ok ? 0 : 1;
  }
  void call_and_report(int op, const Operator& handle) {
    CallReport report;
    failed += handle.with(report)(rows_.y, rows_.x).ok() ? 0 : 1;
    const size_t slash = report.implementation.find('/');
    samples[sampled++] = {op, report.generation, report.implementation[slash + 1]};
  }

  ReloadStage& stage_;
  int next_;
  Rows rows_;
};

double quantile(const std::vector<const Caller*>& callers, double part) {
  std::vector<uint64_t> counts(callers[0]->nanoseconds.size());
  uint64_t all = 0;
  for (const Caller* caller : callers) {
    for (size_t i = 0; i < counts.size(); ++i) counts[i] += caller->nanoseconds[i];
  }
  for (const uint64_t count : counts) all += count;
  uint64_t below = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    below += counts[i];
    if (static_cast<double>(below) >= part * static_cast<double>(all))
      return 8.0 * static_cast<double>(i + 1);
  }
  return 0;
}

/// Two threads that make calls while `meanwhile` runs.
struct Load {
  template <class Meanwhile>
  Load(ReloadStage& stage, Meanwhile&& meanwhile) : one(stage, 0), other(stage, 150) {
    std::atomic<bool> stop{false};
    std::thread first([&] { one.run(stop); });
    std::thread second([&] { other.run(stop); });
    meanwhile();
    stop.store(true);
    first.join();
    second.join();
  }
  uint64_t calls() const { return one.calls + other.calls; }
  uint64_t failed() const { return one.failed + other.failed; }
  double p999() const { return quantile({&one, &other}, 0.999); }
  Caller one, other;
};

/// Ticks at a fixed rate.
class Pace {
 public:
  explicit Pace(long hertz) : timer_(::timerfd_create(CLOCK_MONOTONIC, 0)) {
    const itimerspec every{{0, 1'000'000'000 / hertz}, {0, 1'000'000'000 / hertz}};
    ::timerfd_settime(timer_, 0, &every, nullptr);
  }
  ~Pace() { ::close(timer_); }
  void next() {
    uint64_t ticks = 0;
    ASSERT_EQ(::read(timer_, &ticks, sizeof(ticks)), 8);
  }

 private:
  int timer_;
};

void run_for(double seconds) {
  Pace pace(100);
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end) pace.next();
}

/// Bytes allocated in all arenas; fragmentation is not counted.
double allocated_megabytes() {
  const struct mallinfo2 all = ::mallinfo2();
  return static_cast<double>(all.uordblks + all.hblkhd) / 1e6;
}

/// A text and the generation from which it was in force.
struct InForce {
  uint64_t generation;
  int number;
};

void expect_legal(const std::vector<InForce>& history, const Caller& caller) {
  size_t wrong = 0;
  for (size_t i = 0; i < caller.sampled; ++i) {
    const Sample& sample = caller.samples[i];
    const auto after =
        std::ranges::upper_bound(history, sample.generation, {}, &InForce::generation);
    const std::string expected = after == history.begin()
                                     ? operator_name(sample.op) + "/a.x"
                                     : NumberedText(std::prev(after)->number).chosen(sample.op);
    if (sample.provider == expected[expected.find('/') + 1]) continue;
    if (++wrong > 5) continue;
    ADD_FAILURE() << "generation " << sample.generation << " ran " << sample.provider
                  << " instead of " << expected;
  }
  EXPECT_EQ(wrong, 0u) << "of " << caller.sampled;
}

/// Whether a refusal names a line and a column.
bool has_place(const Status& refused) {
  static const std::regex kPlace(R"(\.yaml:\d+:\d+: )");
  return std::regex_search(std::string(refused.message()), kPlace);
}

/// Growth of allocated memory between the tenth after the first quarter of the run and the last
/// tenth. Uses the minimum of each, because replaced state waits to be freed.
class Drift {
 public:
  explicit Drift(double seconds) : start_(Clock::now()), seconds_(seconds) {}
  void look() {
    const double gone = std::chrono::duration<double>(Clock::now() - start_).count() / seconds_;
    if (gone > 0.25 && gone < 0.35) note(early_);
    if (gone > 0.9) note(late_);
  }
  /// 0 under sanitizers, which report no sizes.
  double part() const { return early_ > 0 ? late_ / early_ - 1 : 0; }

 private:
  static void note(double& least) { least = std::min(least, allocated_megabytes()); }

  Clock::time_point start_;
  double seconds_, early_ = 1e9, late_ = 1e9;
};

/// Compares calls before and during policy changes: none fails, none takes much longer, and each is
/// decided by the text of its generation.
void expect_unhurt(const Load& before, const Load& load, std::vector<InForce> history,
                   double drift) {
  EXPECT_GT(load.calls(), 10'000u);
  EXPECT_EQ(before.failed() + load.failed(), 0u);
  std::ranges::sort(history, {}, &InForce::generation);
  expect_legal(history, load.one);
  expect_legal(history, load.other);
  std::cout << load.calls() << " calls, p99.9 " << before.p999() << " ns before, " << load.p999()
            << " ns meanwhile, memory " << 100 * drift << " %\n";
  // In short runs some operators still meet their other choices for the first time.
  EXPECT_LE(drift, figures_count() ? 0.01 : 0.2);
  if (figures_count()) {
    EXPECT_LE(load.p999(), 2 * before.p999());
  }
}

/// Loads 200 texts per second for some seconds, every second one invalid. Loads at least `fewest`,
/// however long that takes on a busy machine.
void load_texts(ReloadStage& stage, double seconds, int fewest, std::vector<InForce>& history,
                double& drift) {
  Pace pace(200);
  const auto start = Clock::now();
  const auto length = std::chrono::duration<double>(seconds);
  Drift since(seconds);
  for (int number = 0; number < fewest || Clock::now() < start + length; ++number) {
    pace.next();
    if (number % 2 == 0) {
      ASSERT_TRUE(stage.runtime.policy().load(NumberedText(number / 2).text, "good.yaml").ok());
      history.push_back({stage.runtime.policy().state().generation, number / 2});
    } else {
      const Status refused = stage.runtime.policy().load(broken_text(number / 2), "bad.yaml");
      ASSERT_FALSE(refused.ok());
      EXPECT_TRUE(has_place(refused)) << refused.message();
    }
    since.look();
  }
  drift = since.part();
}

TEST(Reload, texts_at_two_hundred_a_second_lose_no_call) {
  ReloadStage stage;
  const Load before(stage, [] { run_for(figures_count() ? 5 : 0.3); });
  std::vector<InForce> history;
  history.reserve(100'000);
  double drift = 0;
  const Load load(stage, [&] { load_texts(stage, reload_seconds(), 20, history, drift); });
  const PolicyState state = stage.runtime.policy().state();
  EXPECT_EQ(state.loaded, history.size());
  if (figures_count()) {
    EXPECT_GE(static_cast<double>(state.loaded + state.refused), 100 * reload_seconds());
  }
  std::cout << state.loaded << " loaded, " << state.refused << " refused\n";
  expect_unhurt(before, load, history, drift);
}

/// Records the results of loading the texts of a file.
struct Followed {
  explicit Followed(Runtime& runtime) {
    history.reserve(100'000);
    runtime.policy().add_validator([this](const Policy& next) {
      number = next.rules.empty() ? -1 : std::stoi(next.rules[0].name.substr(5));
      return Status();
    });
    runtime.policy().on_change([this](const PolicyChange& change) {
      if (change.status.ok()) {
        history.push_back({change.generation, number});
      } else {
        refused += 1;
        without_place += has_place(change.status) ? 0 : 1;
      }
    });
  }
  // Used only by the thread that reads the file.
  int number = -1;
  std::vector<InForce> history;
  uint64_t refused = 0, without_place = 0;
};

/// Writes a file 200 times per second, every second text invalid, and a valid one at the end.
void write_texts(const TemporaryFolder& folder, double seconds, const NumberedText& last,
                 double& drift) {
  const auto write = [&](const std::string& text) {
    write_file(folder.at("next"), text);
    std::filesystem::rename(folder.at("next"), folder.at("policy.yaml"));
  };
  Pace pace(200);
  Drift since(seconds);
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  int number = 0;
  for (; Clock::now() < end; ++number) {
    pace.next();
    write(number % 2 == 0 ? NumberedText(number / 2).text : broken_text(number / 2));
    since.look();
  }
  drift = since.part();
  write(last.text);
  std::cout << number << " writes\n";
}

/// Runs every implementation of every operator once, because a thread allocates its cache entry at
/// the first use and a watched file changes too rarely to reach all of them.
void meet_all_choices(ReloadStage& stage) {
  Pace pace(200);
  for (int number = 0; number < 2 * kOperators; ++number) {
    pace.next();
    ASSERT_TRUE(stage.runtime.policy().load(NumberedText(number).text, "warm-up.yaml").ok());
  }
}

/// Seconds until an operator runs the choice of a text; at most ten.
double seconds_until(const ReloadStage& stage, const NumberedText& text) {
  Pace looks(1000);
  const auto written = Clock::now();
  const auto in_force = [&] {
    const Operator& op = stage.operators[static_cast<size_t>(text.touched[0])];
    return op.explain(Rows().y, Rows().x).chosen == text.chosen(text.touched[0]);
  };
  while (!in_force() && Clock::now() < written + std::chrono::seconds(10)) looks.next();
  EXPECT_TRUE(in_force());
  return std::chrono::duration<double>(Clock::now() - written).count();
}

TEST(Reload, of_many_writes_to_a_file_the_last_content_wins) {
  const TemporaryFolder folder;
  // Operators are defined after the file is read, so their names are not known at that time.
  write_file(folder.at("policy.yaml"), "opmux: 1\n");
  Options options = bare();
  options.sources.config = folder.at("policy.yaml");
  options.sources.last_known_good = false;
  ReloadStage stage(options);
  Followed followed(stage.runtime);
  const Load before(stage, [] { run_for(figures_count() ? 5 : 0.3); });
  double drift = 0, took = 0;
  const Load load(stage, [&] {
    const NumberedText last(1'000'000);
    if (figures_count()) meet_all_choices(stage);
    write_texts(folder, reload_seconds(), last, drift);
    took = seconds_until(stage, last);
  });
  stage.runtime.end_thread();
  std::cout << followed.history.size() << " loaded, " << followed.refused
            << " refused, the last in force after " << 1000 * took << " ms\n";
  EXPECT_EQ(followed.without_place, 0u);
  expect_unhurt(before, load, followed.history, drift);
  if (figures_count()) {
    EXPECT_LE(took, 0.3);
  }
}

}  // namespace
}  // namespace opmux::test
