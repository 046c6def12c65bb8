#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <opmux/detail/export.hpp>
#include <opmux/explanation.hpp>
#include <opmux/status.hpp>

namespace opmux {

namespace runtime {
class Core;
}

/// A bundle of measured speeds that a runtime found, or a file that it refused. Made by
/// TuningControl::bundles().
struct TuningBundle {
  std::string path;
  std::string found_in;  ///< "local", "OPMUX_TUNING" or "shipped".
  std::string digest;    ///< SHA-256 of its header, which has those of its parts; empty if refused.
  std::string problem;   ///< Why the file was refused; empty otherwise.
  std::string signer;    ///< Name of the key that signed it; empty if it needs no signature.
  uint64_t rows = 0;
  /// Of the operators that were used so far, or of all after TuningControl::check(). `foreign`
  /// always counts all rows.
  TuningCounts counts = {};
};

/// The measured speeds that decisions of a runtime read; see docs/tuning.md. With
/// PluginOptions::trust signed_only, bundles of OPMUX_TUNING must be signed too. Made by
/// Runtime::tuning().
///
///   runtime.tuning().check();
///   for (const opmux::TuningBundle& bundle : runtime.tuning().bundles()) {
///     std::cout << bundle.path << ": " << bundle.counts.used << " rows are used\n";
///   }
///
/// Refers to the runtime, which must outlive it. Cheap to copy, safe from any thread.
class TuningControl {
 public:
  /// The bundles that create() or reload() found, those that are trusted most first. Reads no file.
  OPMUX_API std::vector<TuningBundle> bundles() const;
  /// Reads the rows of all operators, which otherwise happens when an operator is first used, so
  /// that bundles() counts them. Loads waiting plugins, because rows of implementations that are
  /// not registered are stale.
  OPMUX_API void check() const;

  /// Looks for bundles in the same places again, so that rows measured since the start count for
  /// the next calls. Operators with rows before or now are decided again; bound plans of a choice
  /// that changes become stale. A bundle that cannot be used is reported as at the start. Logs the
  /// event "tune.reloaded". Fails with `frozen`, or with `resource` without memory, and changes
  /// nothing.
  OPMUX_API Status reload();

  /// Faster implementations that the runtime itself found, with the policy `tuning: online`; the
  /// newest last, at most 256. The background thread of the shadow check races the implementations
  /// of calls that it has copied, with the share of its time that ShadowOptions says. Only calls on
  /// the CPU with one thread count whose results the reference confirms, without arguments that are
  /// changed in place, and without constants, which implementations pack. Logs the event
  /// "tune.proposed", and "tune.applied" if the policy says so; a frozen runtime applies nothing.
  /// Rows are lost with the runtime.
  OPMUX_API std::vector<TuningProposal> proposals() const;

  /// With true, samples every call instead of a few: each call takes the slow path, about a
  /// microsecond, and adds its types, sizes and duration to the cells of its operator, of which
  /// write_state_page() writes at most 256. Forgets earlier cells. Ends with false. Concerns calls
  /// on the CPU of the operators that exist now, not calls of bound plans. Fails with `resource`
  /// without memory.
  ///
  ///   opmux::Status status = runtime.tuning().sample_all_calls(true);
  ///   // the calls of the program
  ///   if (status.ok()) status = runtime.tuning().sample_all_calls(false);
  ///   if (status.ok()) status = opmux::write_state_page(runtime, "calls.page");
  ///   // opmux tune run --page calls.page
  ///   if (status.ok()) status = runtime.tuning().reload();
  OPMUX_API Status sample_all_calls(bool on);

  /// For Runtime::tuning().
  explicit TuningControl(runtime::Core& core) noexcept : core_(&core) {}

 private:
  runtime::Core* core_;
};

}  // namespace opmux
