#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_set>
#include <vector>

namespace litmus::model {

/// A model of the reclamation protocol (see ThreadBlock and Reclaimer): two threads that call and
/// one that publishes and frees. explore() visits every interleaving of their loads and stores.
/// Every thread has a store buffer, from which stores reach memory in order and at any later time,
/// as on x86. A membarrier empties the buffers of the threads one by one.
///
/// Objects are numbered; the writer publishes 1, 2, ... after 0. Of operator states, a call uses
/// the one whose epoch it has compared. Of packed constants, it uses the one that it loads after it
/// has set its mark; these stand for the links of a constant's list too, which calls of every
/// implementation pass. Prepared states have no protocol: plans own them.
enum class Kind : uint8_t { state, pack };

/// A step of the protocol that is left out or in the wrong place, which the exploration must find.
enum class Mistake : uint8_t {
  none,
  no_barrier,          ///< the writer scans without a membarrier
  mark_after_check,    ///< a call sets its mark after it has compared the epoch or loaded the pack
  no_scan,             ///< the writer frees at once
  pin_ends_blocker,    ///< a slow call no longer blocks once its mark is that of a plan
  number_after_check,  ///< a nested call gets its number after it has compared the epoch
  foreign_passes,      ///< the second thread's calls are of another implementation and do not block
};

struct Model {
  Kind kind = Kind::state;
  Mistake mistake = Mistake::none;
  uint8_t calls = 2;         ///< of each of the two threads
  uint8_t publications = 1;  ///< at most kMostObjects - 1
  /// All calls are inside a longer call of their thread: those of cached plans have a number, as
  /// slow calls do, and are not counted.
  bool nested = false;
};

struct Explored {
  size_t states = 0;
  std::string problem;  ///< empty: no call used a freed object, and all old objects were freed
};

inline constexpr uint8_t kMostObjects = 3, kReaders = 2;

/// Marks: 0 is free, 1 + n a plan of object n, and kCold + serial a slow call.
inline constexpr uint8_t kCold = 16;

/// The words of a calling thread that the writer reads.
inline constexpr uint8_t kMark = 0, kSlowCall = 1, kCallCount = 2, kWords = 3;

struct Store {
  uint8_t word = 0, value = 0;
};

struct Reader {
  enum At : uint8_t {
    // A call of a cached plan.
    begin,
    checked,
    loaded,
    using_hot,
    counted,
    // A call of a cached plan inside another call.
    nested_begin,
    nested_cleared,
    nested_refused,
    // A call on the slow path.
    slow_begin,
    slow_marked,
    slow_loaded,
    pinned,
    unpinned,
    slow_done,
    slow_cleared,
    ended
  };
  uint8_t at = begin, calls = 0, plan = 255, object = 255, serial = 0, count = 0;
  std::array<uint8_t, kWords> memory{};
  std::array<Store, 6> buffer{};
  uint8_t buffered = 0;
};

struct Blocker {
  uint8_t active = 0, mark = 0, slow_call = 0, finished = 0;
};

struct Batch {
  uint8_t object = 255;  ///< 255: none waits
  std::array<Blocker, kReaders> blockers{};
};

struct Writer {
  enum At : uint8_t {
    publish,
    second_store,
    barrier,
    scan_mark,
    scan_slow,
    scan_count,
    collect,
    check_mark,
    ended
  };
  uint8_t at = publish, next = 1, reader = 0, batch = 0, seen = 0, barriers = 0;
  std::array<uint8_t, 2> memory{};  ///< the current object and its epoch, as calls see them
  std::array<uint8_t, 2> pending{};
  uint8_t stored = 0;  ///< number of stores of this publication that reached memory
  std::array<Batch, kMostObjects> batches{};
};

struct World {
  std::array<Reader, kReaders> readers{};
  Writer writer{};
  uint8_t freed = 0;  ///< bit n: object n is freed

  bool operator==(const World& other) const {
    return std::memcmp(this, &other, sizeof(World)) == 0;
  }
};
static_assert(std::has_unique_object_representations_v<World>);

struct WorldHash {
  size_t operator()(const World& world) const {
    std::array<uint8_t, sizeof(World)> bytes;
    std::memcpy(bytes.data(), &world, sizeof world);
    uint64_t hash = 0xcbf29ce484222325u;
    for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
    return hash ^ hash >> 32;
  }
};

/// Visits every state that the threads of a model can reach.
class Exploration {
 public:
  explicit Exploration(const Model& model) : model_(model) {}

  Explored run() {
    add(World{});
    while (!open_.empty() && result_.problem.empty()) {
      const World world = open_.back();
      open_.pop_back();
      expand(world);
    }
    result_.states = seen_.size();
    return result_;
  }

 private:
  void add(const World& world) {
    if (seen_.insert(world).second) open_.push_back(world);
  }

  void expand(const World& world) {
    for (uint8_t r = 0; r < kReaders; ++r) {
      const Reader& reader = world.readers[r];
      if (reader.buffered > 0) {
        World next = world;
        flush_one(next.readers[r]);
        add(next);
      }
      if (reader.at == Reader::ended || reader.buffered == reader.buffer.size()) continue;
      World next = world;
      step(next, next.readers[r]);
      add(next);
    }
    if (world.writer.stored < pending_stores(world.writer)) {
      World next = world;
      flush_one(next.writer);
      add(next);
    }
    if (world.writer.at != Writer::ended) {
      World next = world;
      step(next, next.writer);
      if (next == world && idle(world)) return fail("an old object is never freed");
      add(next);
    } else if (idle(world) && world.freed + 1 != 1 << model_.publications) {
      fail("an old object was not freed");
    }
  }

  bool idle(const World& world) const {
    return std::ranges::all_of(world.readers, [](const Reader& reader) {
      return reader.at == Reader::ended && reader.buffered == 0;
    });
  }

  void fail(std::string what) { result_.problem = std::move(what); }

  // Calls ---------------------------------------------------------------------------------------

  static void store(Reader& reader, uint8_t word, uint8_t value) {
    reader.buffer[reader.buffered++] = {word, value};
  }
  static void flush_one(Reader& reader) {
    reader.memory[reader.buffer[0].word] = reader.buffer[0].value;
    std::shift_left(reader.buffer.begin(), reader.buffer.end(), 1);
    reader.buffer[--reader.buffered] = {};
  }

  void use(const World& world, uint8_t object) {
    if ((world.freed >> object & 1) != 0) fail("a call used a freed object");
  }

  /// The object that a hot call will use: of states that of its plan, of packs the current one.
  bool check(const World& world, Reader& reader) {
    if (model_.kind == Kind::pack) {
      reader.object = world.writer.memory[0];
      return true;
    }
    reader.object = reader.plan;
    return world.writer.memory[1] == reader.plan;
  }

  bool late_number() const { return model_.mistake == Mistake::number_after_check; }

  void end_call(Reader& reader) {
    reader.object = 255;
    reader.at = ++reader.calls == model_.calls ? Reader::ended : Reader::begin;
  }

  void step(World& world, Reader& reader) {
    const bool late = model_.mistake == Mistake::mark_after_check;
    switch (reader.at) {
      case Reader::begin:
        if (reader.plan == 255) {
          reader.at = Reader::slow_begin;
        } else if (model_.nested) {
          ++reader.serial;
          if (!late_number()) store(reader, kSlowCall, kCold + reader.serial);
          reader.at = Reader::nested_begin;
        } else if (late) {
          reader.at = check(world, reader) ? Reader::checked : Reader::slow_begin;
        } else {
          store(reader, kMark, plan_mark(reader));
          reader.at = Reader::checked;
        }
        return;
      case Reader::checked:
        if (late) {
          store(reader, kMark, plan_mark(reader));
          reader.at = Reader::loaded;
        } else if (check(world, reader)) {
          reader.at = Reader::loaded;
        } else {
          store(reader, model_.nested ? kSlowCall : kMark, 0);
          reader.object = 255;
          reader.at = model_.nested ? Reader::nested_refused : Reader::slow_begin;
        }
        return;
      case Reader::loaded:
        use(world, reader.object);
        if (late_number()) store(reader, kSlowCall, kCold + reader.serial);
        reader.at = Reader::using_hot;
        return;
      case Reader::using_hot:
        use(world, reader.object);
        if (model_.nested) {
          store(reader, kSlowCall, 0);
          reader.at = Reader::nested_cleared;
        } else {
          store(reader, kCallCount, ++reader.count);
          reader.at = Reader::counted;
        }
        return;
      case Reader::nested_cleared:
      case Reader::counted: store(reader, kMark, 0); return end_call(reader);
      case Reader::nested_begin:
        store(reader, kMark, plan_mark(reader));
        reader.at = Reader::checked;
        return;
      case Reader::nested_refused:
        store(reader, kMark, 0);
        reader.at = Reader::slow_begin;
        return;
      case Reader::slow_begin:
        ++reader.serial;
        store(reader, kSlowCall, kCold + reader.serial);
        reader.at = Reader::slow_marked;
        return;
      case Reader::slow_marked:
        store(reader, kMark, kCold + reader.serial);
        reader.at = Reader::slow_loaded;
        return;
      default: return step_slowly(world, reader);
    }
  }

  /// The rest of a slow call. Slow calls own the packs that they use, so only states matter.
  void step_slowly(World& world, Reader& reader) {
    switch (reader.at) {
      case Reader::slow_loaded:
        reader.object = model_.kind == Kind::pack ? 0 : world.writer.memory[0];
        reader.at = Reader::pinned;
        return;
      case Reader::pinned:
        use_slowly(world, reader);
        store(reader, kMark, static_cast<uint8_t>(1 + reader.object));
        reader.at = Reader::unpinned;
        return;
      case Reader::unpinned:
        use_slowly(world, reader);
        store(reader, kMark, kCold + reader.serial);
        reader.at = Reader::slow_done;
        return;
      case Reader::slow_done:
        use_slowly(world, reader);
        reader.plan = reader.object;
        store(reader, kSlowCall, 0);
        reader.at = Reader::slow_cleared;
        return;
      default: store(reader, kMark, 0); return end_call(reader);
    }
  }
  void use_slowly(const World& world, const Reader& reader) {
    if (model_.kind == Kind::state) use(world, reader.object);
  }

  /// Packs belong to implementations, so the mark of any plan may use any of them.
  uint8_t plan_mark(const Reader& reader) const { return static_cast<uint8_t>(1 + reader.plan); }

  // The writer ----------------------------------------------------------------------------------

  static uint8_t pending_stores(const Writer& writer) {
    return writer.at == Writer::publish ? 0 : writer.at == Writer::second_store ? 1 : 2;
  }
  static void flush_one(Writer& writer) {
    const uint8_t word = writer.stored++;
    writer.memory[word] = writer.pending[word];
  }

  bool seen_by_scan(const Batch& batch, uint8_t mark, uint8_t reader) const {
    const bool ignored = model_.mistake == Mistake::foreign_passes && reader == 1;
    return !ignored && relevant(batch, mark);
  }
  bool relevant(const Batch& batch, uint8_t mark) const {
    return model_.kind == Kind::pack || mark == 1 + batch.object;
  }

  void step(World& world, Writer& writer) {
    switch (writer.at) {
      case Writer::publish:
        writer.pending = {writer.next, writer.next};
        writer.stored = 0;
        writer.at = Writer::second_store;
        return;
      case Writer::second_store: writer.at = Writer::barrier; return;
      case Writer::barrier: return pass_barrier(world, writer);
      case Writer::scan_mark:
      case Writer::scan_slow:
      case Writer::scan_count: return scan(world, writer);
      default: return collect(world, writer);
    }
  }

  void pass_barrier(World& world, Writer& writer) {
    Batch& batch = writer.batches[writer.next - 1];
    if (model_.mistake == Mistake::no_scan) {
      world.freed |= static_cast<uint8_t>(1 << (writer.next - 1));
      return published(writer);
    }
    if (model_.mistake != Mistake::no_barrier) {
      while (writer.stored < 2) flush_one(writer);
      if (writer.barriers < kReaders) {
        Reader& reader = world.readers[writer.barriers++];
        while (reader.buffered > 0) flush_one(reader);
        return;
      }
    }
    batch.object = static_cast<uint8_t>(writer.next - 1);
    writer.barriers = 0;
    writer.reader = 0;
    writer.at = Writer::scan_mark;
  }

  void published(Writer& writer) {
    ++writer.next;
    writer.batch = writer.reader = 0;
    writer.at = Writer::collect;
  }

  /// One load of the scan; see blocker_of() in reclaimer.cpp.
  void scan(World& world, Writer& writer) {
    Batch& batch = writer.batches[writer.next - 1];
    const Reader& reader = world.readers[writer.reader];
    Blocker& blocker = batch.blockers[writer.reader];
    bool done = true;
    if (writer.at == Writer::scan_mark) {
      const uint8_t mark = reader.memory[kMark];
      if (mark >= kCold) {
        blocker = {1, mark, mark, 0};
      } else if (mark != 0 && seen_by_scan(batch, mark, writer.reader)) {
        blocker = {1, mark, 0, 0};
        writer.at = Writer::scan_slow;
        done = false;
      }
    } else if (writer.at == Writer::scan_slow) {
      blocker.slow_call = reader.memory[kSlowCall];
      if (blocker.slow_call == 0 && model_.nested) {
        blocker = {};
      } else if (blocker.slow_call == 0) {
        writer.at = Writer::scan_count;
        done = false;
      }
    } else {
      blocker.finished = reader.memory[kCallCount];
    }
    if (!done) return;
    if (model_.kind == Kind::pack && blocker.slow_call != 0) blocker = {};
    writer.at = Writer::scan_mark;
    if (++writer.reader == kReaders) published(writer);
  }

  /// One load of collect(); see still_blocks() in reclaimer.cpp.
  void collect(World& world, Writer& writer) {
    if (writer.batch == writer.batches.size()) return after_collect(world, writer);
    Batch& batch = writer.batches[writer.batch];
    if (batch.object == 255 || writer.reader == kReaders) return finish_batch(world, writer);
    Blocker& blocker = batch.blockers[writer.reader];
    if (blocker.active == 0) {
      ++writer.reader;
      return;
    }
    const Reader& reader = world.readers[writer.reader];
    if (writer.at == Writer::collect) {
      writer.seen = reader.memory[kMark];
      writer.at = Writer::check_mark;
      return;
    }
    if (!still_blocks(reader, batch, blocker, writer.seen)) blocker = {};
    writer.at = Writer::collect;
    writer.seen = 0;
    ++writer.reader;
  }

  bool still_blocks(const Reader& reader, const Batch& batch, const Blocker& blocker,
                    uint8_t mark) const {
    if (blocker.slow_call == 0) {
      return mark == blocker.mark && reader.memory[kCallCount] == blocker.finished;
    }
    if (reader.memory[kSlowCall] != blocker.slow_call) return false;
    if (model_.mistake == Mistake::pin_ends_blocker) return mark >= kCold;
    return mark >= kCold || relevant(batch, mark);
  }

  void finish_batch(World& world, Writer& writer) {
    Batch& batch = writer.batches[writer.batch];
    const bool waits =
        std::ranges::any_of(batch.blockers, [](const Blocker& one) { return one.active != 0; });
    if (batch.object != 255 && !waits) {
      world.freed |= static_cast<uint8_t>(1 << batch.object);
      batch = {};
    }
    ++writer.batch;
    writer.reader = 0;
  }

  void after_collect(World&, Writer& writer) {
    const bool waits =
        std::ranges::any_of(writer.batches, [](const Batch& one) { return one.object != 255; });
    writer.batch = writer.reader = 0;
    if (writer.next <= model_.publications) {
      writer.at = Writer::publish;
    } else {
      writer.at = waits ? Writer::collect : Writer::ended;
    }
  }

  const Model model_;
  Explored result_;
  std::unordered_set<World, WorldHash> seen_;
  std::vector<World> open_;
};

inline Explored explore(const Model& model) { return Exploration(model).run(); }

}  // namespace litmus::model
