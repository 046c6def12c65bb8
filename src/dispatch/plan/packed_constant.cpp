#include "dispatch/plan/packed_constant.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <new>

#include "base/status.hpp"
#include "base/text.hpp"
#include "dispatch/call/call_frame.hpp"
#include "dispatch/plan/exact_words.hpp"
#include "dispatch/reclaim/slow_path_guard.hpp"

namespace opmux::dispatch {
namespace {

using SomeArguments = std::array<opmux_arg, OPMUX_MAX_ARGS>;

/// The arguments of a call that `keep` accepts; the others are left empty.
template <class Keep>
SomeArguments only(const opmux_call& call, Keep keep) {
  SomeArguments result{};
  for (uint32_t i = 0; i < call.arg_count; ++i) {
    if (keep(i)) result[i] = call.args[i];
  }
  return result;
}

Status failure(const registry::ImplementationRecord& implementation, int32_t outcome,
               const base::ErrorSink& sink) {
  return {outcome_of(outcome), "call.pack",
          implementation.id +
              (implementation.needs_instance ? " could not make an instance: "
                                             : " could not pack a constant: ") +
              sink.text()};
}

/// True if create() gets this argument: it is not a tensor, and the implementation reads it.
bool is_option(const registry::ImplementationRecord& implementation, const opmux_call& call,
               uint32_t i) {
  return call.args[i].tag > OPMUX_ARG_TENSOR && (implementation.create_args >> i & 1) != 0;
}

/// Passes everything that create() can know about its options to `word`.
template <class Word>
void option_words(const registry::ImplementationRecord& implementation, const opmux_call& call,
                  Word&& word) {
  for (uint32_t i = 0; i < call.arg_count; ++i) {
    if (!is_option(implementation, call, i)) continue;
    const opmux_arg& arg = call.args[i];
    word(int64_t{i} << 32 | arg.tag);
    if (arg.tag >= OPMUX_ARG_STR) {
      list_words(static_cast<ArgTag>(arg.tag), arg.value.list, word);
    } else {
      word(arg.value.i64);
    }
  }
}

/// Takes over an instance that create() returned. Destroys it if there is no memory to hold it.
std::shared_ptr<Pack> own_instance(const RankedCandidate& plan, std::vector<int64_t> options,
                                   void* instance) {
  try {
    return std::make_shared<Pack>(plan, std::move(options), instance);
  } catch (const std::bad_alloc&) {
    const registry::Kernel& kernel = plan.candidate->implementation->kernel;
    if (kernel.destroy != nullptr) kernel.destroy(kernel.user_data, instance);
    throw;
  }
}

Result<std::shared_ptr<Pack>> make_pack(const RankedCandidate& plan, const opmux_call& call,
                                        uint32_t parameters) {
  const registry::Kernel& kernel = plan.candidate->implementation->kernel;
  base::ErrorSink sink;
  const registry::ImplementationRecord& implementation = *plan.candidate->implementation;
  const SomeArguments options =
      only(call, [&](uint32_t i) { return is_option(implementation, call, i); });
  std::vector<int64_t> words;
  option_words(implementation, call, [&](int64_t word) { words.push_back(word); });
  void* instance = nullptr;
  int32_t outcome = [&] {
    const PreparationGuard inside(implementation, crash::Phase::create);
    return kernel.create(kernel.user_data, options.data(), call.arg_count, &instance, sink.c());
  }();
  if (outcome != OPMUX_OK) return failure(implementation, outcome, sink);
  if (instance == nullptr && implementation.needs_instance) {
    return Status(Code::failed, "call.pack", implementation.id + ": create() returned no instance");
  }
  auto pack = own_instance(plan, std::move(words), instance);
  if (kernel.load == nullptr || parameters == 0) return pack;
  const SomeArguments params = only(call, [&](uint32_t i) { return (parameters >> i & 1) != 0; });
  outcome = [&] {
    const PreparationGuard inside(implementation, crash::Phase::load);
    return kernel.load(kernel.user_data, instance, params.data(), call.arg_count, sink.c());
  }();
  if (outcome != OPMUX_OK) return failure(implementation, outcome, sink);
  return pack;
}

/// The attributes that describe() has reported so far.
struct Report {
  Attributes attributes;
  bool without_memory = false;
};

std::string kept_text(opmux_str text) {
  return base::without_controls(
      {text.data, text.data == nullptr ? 0 : std::min(text.size, kLongestAttribute)});
}

/// Called by code of the implementation, through which no exception may pass.
void take_attribute(void* context, opmux_str key, opmux_str value) noexcept {
  Report& report = *static_cast<Report*>(context);
  try {
    std::string name = kept_text(key);
    const auto known = std::ranges::find(report.attributes, name, &Attributes::value_type::first);
    if (known != report.attributes.end()) {
      known->second = kept_text(value);
    } else if (report.attributes.size() < kMostAttributes) {
      report.attributes.emplace_back(std::move(name), kept_text(value));
    }
  } catch (const std::bad_alloc&) {
    report.without_memory = true;
  }
}

/// The attribute "packed_bytes", the size of an instance; `otherwise` if there is none.
uint64_t packed_bytes(const Attributes& attributes, uint64_t otherwise) {
  uint64_t bytes = otherwise;
  for (const auto& [key, value] : attributes) {
    if (key == "packed_bytes") std::from_chars(value.data(), value.data() + value.size(), bytes);
  }
  return bytes;
}

uint64_t bytes_of(const opmux_call& call, uint32_t parameters) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < call.arg_count; ++i) {
    if ((parameters >> i & 1) == 0) continue;
    const TensorView tensor(*call.args[i].value.tensor);
    bytes += static_cast<uint64_t>(tensor.elements()) *
             static_cast<uint64_t>(tensor.dtype().size_bytes());
  }
  return bytes;
}

}  // namespace

/// An unlinked pack, and the batch in which it is retired. A mark does not say which constants its
/// call uses, so every call of a cached plan of the implementation blocks it. Calls on the slow
/// path and bound plans own the packs that they use.
class Pack::Retirement final : public Retired {
 public:
  bool owns_plan(uint64_t plan_id) const override {
    if ((plan_id & kBoundBit) != 0) return false;
    const uint32_t number = static_cast<uint32_t>(plan_id) & crash::kNumberMask;
    return crash::number_in_marks(pack->implementation()->number) == number;
  }
  bool slow_calls_use_it() const override { return false; }

  PackPtr pack;
  Reclaimer::Batches batch = Reclaimer::prepare(1);
};

Pack::Pack(const RankedCandidate& plan, std::vector<int64_t> options, void* instance)
    : implementation_(plan.candidate->implementation),
      counters_(plan.candidate->counters),
      options_(std::move(options)),
      instance_(instance),
      serial_(next_serial()),
      retirement_(std::make_unique<Retirement>()) {}

Pack::~Pack() { drop(); }

Reclaimer::Batches Pack::retired(PackPtr pack) noexcept {
  std::unique_ptr<Retirement> own = std::move(pack->retirement_);
  Reclaimer::Batches batch = std::move(own->batch);
  own->pack = std::move(pack);
  batch.front().add(std::move(own));
  return batch;
}

Reclaimer::Batches PackLink::retired(std::unique_ptr<PackLink> link) noexcept {
  Reclaimer::Batches batch = std::move(link->batch_);
  batch.front().add(std::move(link));
  return batch;
}

bool PackBudget::take(uint64_t bytes) {
  uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit_ || used > limit_ - bytes) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

bool Pack::fits(const registry::ImplementationRecord& implementation,
                const opmux_call& call) const {
  if (implementation_.get() != &implementation) return false;
  size_t at = 0;
  bool same = true;
  option_words(implementation, call, [&](int64_t word) {
    same = same && at < options_.size() && options_[at] == word;
    ++at;
  });
  return same && at == options_.size();
}

void Pack::keep_attributes() {
  const registry::Kernel& kernel = implementation_->kernel;
  Report report;
  const opmux_node_sink sink{sizeof(opmux_node_sink), 0, &report, take_attribute};
  if (kernel.describe != nullptr) kernel.describe(kernel.user_data, instance_, &sink);
  if (report.without_memory) throw std::bad_alloc();
  attributes_ = std::move(report.attributes);
}

void Pack::count(std::shared_ptr<PackBudget> budget, uint64_t bytes, Attributes newest) noexcept {
  counters_->instance.with([&](Attributes& known) { known.swap(newest); });
  bytes_ = bytes;
  budget_ = std::move(budget);
  counters_->packed_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void Pack::drop() {
  const registry::Kernel& kernel = implementation_->kernel;
  if (instance_ != nullptr && kernel.destroy != nullptr) {
    kernel.destroy(kernel.user_data, instance_);
  }
  instance_ = nullptr;
  if (budget_ == nullptr) return;
  budget_->give_back(bytes_);
  budget_ = nullptr;
  counters_->packed_bytes.fetch_sub(bytes_, std::memory_order_relaxed);
}

void PackStore::collect() { retire({}); }

bool PackStore::take(uint64_t bytes) {
  if (budget_->take(bytes)) return true;
  collect();
  return budget_->take(bytes);
}

void PackStore::add(PackedConstant& constant) {
  constants_.with([&](auto& constants) { constants.insert(&constant); });
}

void PackStore::remove(PackedConstant& constant) {
  constants_.with([&](auto& constants) { constants.erase(&constant); });
}

void PackStore::drop_withdrawn() noexcept {
  constants_.with([](auto& constants) {
    for (PackedConstant* constant : constants) constant->drop_withdrawn();
  });
  collect();
}

void PackStore::retire(Reclaimer::Batches packs) noexcept {
  retired_.with([&](Reclaimer& retired) {
    retired.retire(std::move(packs));
    // Under the lock, so that drop_withdrawn() waits for a thread that destroys packs.
    Reclaimer::Batches finished = retired.take_finished();
    for (Reclaimer::Batch& batch : finished) batch.clear();
    retired.forget(finished);
  });
}

uint64_t PackStore::used() {
  collect();
  return budget_->used();
}

size_t PackStore::waiting() {
  collect();
  return retired_.with([](const Reclaimer& retired) { return retired.waiting(); });
}

Result<PackPtr> PackedConstant::make(Packs& packs, const RankedCandidate& plan,
                                     const opmux_call& options, uint32_t parameters) const {
  auto made = make_pack(plan, options, parameters);
  if (!made) return made.error();
  (*made)->keep_attributes();
  Attributes newest = (*made)->attributes();
  const uint64_t bytes = packed_bytes(newest, bytes_of(options, parameters));
  auto link = std::make_unique<PackLink>(**made);
  link->set_next(first_.load(std::memory_order_relaxed));
  packs.reserve(packs.size() + 1);
  if (store_->take(bytes)) {
    (*made)->count(store_->budget(), bytes, std::move(newest));
  } else if (plan.candidate->implementation->needs_instance) {
    return Status(Code::resource, "call.pack",
                  base::concat(plan.candidate->implementation->id, ": an instance of ", bytes,
                               " bytes exceeds Options::max_packed_bytes"));
  } else {
    (*made)->drop();
  }
  first_.store(link.get(), std::memory_order_release);
  packs.push_back({*made, std::move(link)});
  return packs.back().pack;
}

Result<PackPtr> PackedConstant::pack_for(const RankedCandidate& plan, const opmux_call& call,
                                         uint32_t index) const {
  const registry::ImplementationRecord& implementation = *plan.candidate->implementation;
  const opmux_call& options = options_in(call);
  const uint32_t parameters = fixed_ != nullptr ? fixed_->parameters : uint32_t{1} << index;
  uint64_t surplus = 0;  // serial of the oldest pack of the implementation if there are too many
  auto result = packs_.with([&](Packs& packs) -> Result<PackPtr> {
    if (released_.load(std::memory_order_acquire)) return PackPtr();
    size_t others = 0;
    uint64_t oldest = 0;
    for (const auto& [known, link] : packs) {
      if (known->implementation() != &implementation) continue;
      if (known->fits(implementation, options)) return known;
      if (others++ == 0) oldest = known->serial();
    }
    Result<PackPtr> made = make(packs, plan, options, parameters);
    if (made && others >= kMostOptions) surplus = oldest;
    return made;
  });
  if (surplus != 0) drop([&](const Pack& pack) { return pack.serial() == surplus; });
  return result;
}

template <class Gone>
void PackedConstant::drop(Gone gone) const noexcept {
  store_->retire(packs_.with([&](Packs& packs) {
    Reclaimer::Batches dropped;
    size_t kept = 0;
    for (Linked& one : packs) {
      if (gone(*one.pack)) {
        dropped.splice(dropped.end(), Pack::retired(std::move(one.pack)));
        dropped.splice(dropped.end(), PackLink::retired(std::move(one.link)));
      } else {
        std::swap(packs[kept++], one);
      }
    }
    packs.resize(kept);
    // Relink the remaining packs before the dropped ones are retired. The `next` pointers of
    // dropped links are unchanged, so a reader that is on one still reaches live ones.
    const PackLink* next = nullptr;
    for (const Linked& one : packs) {
      one.link->set_next(next);
      next = one.link.get();
    }
    first_.store(next, std::memory_order_release);
    return dropped;
  }));
}

void PackedConstant::changed() noexcept {
  drop([](const Pack&) { return true; });
  // Increment the version after unlinking, so that a reader of the new version finds no old pack.
  version_.fetch_add(1, std::memory_order_acq_rel);
}

void PackedConstant::release() noexcept {
  released_.store(true, std::memory_order_release);
  changed();
}

void PackedConstant::drop_withdrawn() noexcept {
  drop([](const Pack& pack) {
    return pack.implementation()->withdrawn.load(std::memory_order_acquire);
  });
}

size_t PackedConstant::packs() const {
  return packs_.with([](const Packs& packs) {
    size_t count = 0;
    for (const Linked& one : packs) count += one.pack->instance() != nullptr ? 1 : 0;
    return count;
  });
}

uint64_t PackedConstant::bytes() const {
  return packs_.with([](const Packs& packs) {
    uint64_t bytes = 0;
    for (const Linked& one : packs) bytes += one.pack->bytes();
    return bytes;
  });
}

int packed_argument(const registry::ImplementationRecord& implementation,
                    const schema::Schema& schema, const schema::Arguments& arguments) {
  if (arguments.constants == 0 || implementation.kernel.create == nullptr) return -1;
  if (arguments.has_instance()) {
    const auto& instance = PackedConstant::of(*arguments.values[arguments.count].tensor);
    const uint32_t parameters = instance.fixed()->parameters;
    bool used = implementation.needs_instance;
    for (uint32_t i = 0; i < implementation.arg_count; ++i) {
      used |= schema.args[i].constant && (parameters >> i & 1) != 0;
    }
    return used ? static_cast<int>(arguments.count) : -1;
  }
  for (uint32_t i = 0; i < arguments.count; ++i) {
    const bool given = (arguments.constants >> i & 1) != 0;
    if (given && i < implementation.arg_count && schema.args[i].constant)
      return static_cast<int>(i);
  }
  return -1;
}

}  // namespace opmux::dispatch
