#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <opmux/runtime.hpp>

// Deprecated functions of Runtime. Inline, they would make every file that includes opmux.hpp
// compile the destructors of all reports.

namespace opmux {

Status Runtime::set_policy(const Policy& next) { return policy().set(next); }
Status Runtime::reset_policy() { return policy().reset(); }
Result<PolicyCheck> Runtime::check_policy(std::string_view text, std::string_view name,
                                          const PolicyCheckOptions& options) const {
  return policy().check(text, name, options);
}
Status Runtime::load_policy(std::string_view text, std::string_view name) {
  return policy().load(text, name);
}
Status Runtime::rollback() { return policy().rollback(); }
PolicyState Runtime::policy_state() const { return policy().state(); }
void Runtime::add_validator(PolicyValidator validator) {
  policy().add_validator(std::move(validator));
}
void Runtime::on_policy(PolicyListener listener) { policy().on_change(std::move(listener)); }
Result<std::vector<ChoiceChange>> Runtime::compare_policies(std::string_view from,
                                                            std::string_view from_name,
                                                            std::string_view to,
                                                            std::string_view to_name) const {
  return policy().compare(from, from_name, to, to_name);
}
Lockfile Runtime::lock() const { return lockfile().current(); }
Result<Lockfile> Runtime::freeze() { return lockfile().freeze(); }
Status Runtime::freeze(const Lockfile& lock, std::string_view name) {
  return lockfile().freeze(lock, name);
}
Status Runtime::check_lock(const Lockfile& lock, std::string_view name) const {
  return lockfile().check(lock, name);
}
bool Runtime::frozen() const noexcept { return lockfile().frozen(); }
void Runtime::warm_up() { plugins().warm_up(); }
Status Runtime::enable_backend(std::string_view name, bool on) {
  return plugins().enable_backend(name, on);
}
Result<DeviceAccess> Runtime::device_access(std::string_view backend) const {
  return plugins().device_access(backend);
}
void Runtime::on_breaker(BreakerListener listener) { health().on_breaker(std::move(listener)); }
Status Runtime::force_breaker(std::string_view implementation, BreakerForce what) {
  return health().force_breaker(implementation, what);
}
std::vector<DeviceError> Runtime::device_errors() const { return health().device_errors(); }
std::vector<Device> Runtime::lost_devices() const { return health().lost_devices(); }
Quarantine Runtime::quarantine() const { return health().quarantine(); }
Result<size_t> Runtime::clear_quarantine(std::string_view implementation) {
  return health().clear_quarantine(implementation);
}
CrashJournalState Runtime::crash_journal() const { return health().crash_journal(); }
RecordState Runtime::recordings() const { return replay().recordings(); }
Result<ReplayReport> Runtime::replay(const std::string& path, const ReplayOptions& options) {
  return replay().run(path, options);
}

}  // namespace opmux
