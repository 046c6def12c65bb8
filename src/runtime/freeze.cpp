#include <algorithm>
#include <mutex>

#include "registry/registry.hpp"
#include "runtime/core.hpp"

namespace opmux::runtime {

Lockfile Core::lock() {
  const std::shared_ptr<const Publisher::Lock> taken = publisher_.lock();
  std::vector<dispatch::Engine::DecidedClass> decided = engine_.decided();
  if (taken->set != nullptr)
    std::erase_if(decided, [](const auto& each) { return !each.beside_lock; });
  Lockfile lock = dispatch::lockfile_of(decided, surroundings());
  const std::vector<LockedChoice>& locked = taken->file.choices;
  lock.choices.insert(lock.choices.end(), locked.begin(), locked.end());
  std::ranges::sort(lock.choices);
  return lock;
}

void Core::refuse_changes(bool on) noexcept {
  registry_.freeze(on);
  sources_.freeze(on);
}

Core::Refusal::~Refusal() {
  if (!kept) core.refuse_changes(false);
}

Result<Lockfile> Core::freeze() {
  const std::scoped_lock one(freezing_);
  if (frozen()) return lock();
  if (files_.mode().kind == policy::Mode::Kind::locked)
    return freeze_by_file(files_.mode().lockfile);
  plugins_.warm_up();
  // Before the lockfile is made, so that the locked state cannot change any more.
  Refusal refusal(*this);
  Result<Lockfile> made = lock();
  if (Status status = take_lock(*made, "the frozen runtime"); !status.ok()) return status;
  refusal.kept = true;
  return made;
}

Result<Lockfile> Core::freeze_by_file(const std::string& path) {
  const auto file = policy::read_policy_file(path);
  if (!file) return file.error();
  if (Status status = files_.check_writers({*file}); !status.ok()) return status;
  auto read = Lockfile::parse(file->text, path);
  if (!read) return read;
  if (Status status = freeze_by(*read, path); !status.ok()) return status;
  return read;
}

Status Core::freeze(const Lockfile& lock, std::string_view name) {
  const std::scoped_lock one(freezing_);
  if (frozen()) return registry::frozen("freeze");
  return freeze_by(lock, name);
}

Status Core::freeze_by(const Lockfile& lock, std::string_view name) {
  plugins_.warm_up();
  Refusal refusal(*this);
  Status status = take_lock(lock, name);
  refusal.kept = status.ok();
  return status;
}

Status Core::check_lock(const Lockfile& lock, std::string_view name) {
  plugins_.warm_up();
  return dispatch::fit(lock, name, surroundings()).error();
}

Status Core::take_lock(const Lockfile& lock, std::string_view name) {
  auto set = dispatch::fit(lock, name, surroundings());
  if (!set) return std::move(set).error();
  publisher_.set_lock({lock, *std::move(set)});
  return {};
}

}  // namespace opmux::runtime
