#include "tune/bundle_set.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/text.hpp"

namespace opmux::tune {
namespace {

constexpr std::string_view kEnding = ".bundle";

bool is_folder(const std::string& path) {
  struct stat about{};
  return stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

/// Whether another user than this one and root owns a folder or can add files to it.
bool is_open_to_others(const std::string& folder) {
  const base::Descriptor opened(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return !base::is_own(opened) && !base::belongs_to(opened, 0);
}

Status not_trusted(std::string_view what) {
  return {Code::unavailable, "tune.bundle",
          base::concat(
              what, " must belong to you or to root, and others must not be able to write to it")};
}

std::string name_in(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

BundleSet::BundleSet(base::EventLog& log, const BundlePlaces& places, std::optional<Machine> here)
    : log_(log), here_(std::move(here)), signer_of_(places.signer_of) {
  if (is_folder(places.local)) open_place(places.local, Place::local);
  if (!places.given.empty()) open_place(places.given, Place::fleet);
  if (is_folder(places.shipped)) open_place(places.shipped, Place::shipped);
  list_sections();
}

const Machine& BundleSet::here() const {
  if (here_) return *here_;
  static base::Lazy<Machine> machine;
  return machine.get(
      [] { return std::make_unique<Machine>(describe_machine(base::read_machine_facts())); });
}

void BundleSet::open_place(const std::string& path, Place place) {
  if (!is_folder(path)) return open_file(path, place);
  if (place != Place::shipped && is_open_to_others(path))
    return refuse(path, place, not_trusted("the folder of tuning bundles"));
  std::vector<std::string> names;
  base::read_names(path, names);
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(kEnding); });
  std::ranges::sort(names);
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string file = path + "/" + names[i];
    if (i < kMostBundles) {
      open_file(file, place);
    } else {
      refuse(file, place,
             {Code::resource, "tune.bundle",
              base::concat("is ignored, because a folder may have ", kMostBundles,
                           " bundles; join them with `opmux tune merge`")});
    }
  }
}

void BundleSet::open_file(const std::string& path, Place place) {
  Result<BundleFile> opened = BundleFile::open(path);
  if (!opened) return refuse(path, place, opened.error());
  // The installation is trusted as libopmux is, which comes from the same place.
  if (place != Place::shipped && !opened->trusted())
    return refuse(path, place, not_trusted("the tuning bundle"));
  const Bundle& bundle = opened->bundle();
  Result<std::string> signer = find_signer(path, place, bundle.digest());
  if (!signer) return refuse(path, place, signer.error());
  FoundBundle about{path, place, bundle.digest(), "", *std::move(signer), 0, {}};
  for (const Bundle::Section& section : bundle.sections()) about.rows += section.rows;
  files_.push_back({std::move(about), std::move(*opened)});
}

Result<std::string> BundleSet::find_signer(const std::string& path, Place place,
                                           const std::string& digest) const {
  if (place != Place::fleet || signer_of_ == nullptr) return std::string();
  return signer_of_(path, digest);
}

void BundleSet::refuse(const std::string& path, Place place, const Status& why) {
  files_.push_back({{path, place, "", std::string(why.message()), "", 0, {}}, std::nullopt});
  log_.tell(Level::warning, "tune.bundle", "", "", path,
            [&] { return base::concat(path, ": ", why.message(), "; its rows are not used"); });
}

void BundleSet::list_sections() {
  for (uint32_t file = 0; file < files_.size(); ++file) {
    if (!files_[file].bundle) continue;
    const std::vector<Bundle::Section>& sections = files_[file].bundle->bundle().sections();
    for (uint32_t i = 0; i < sections.size(); ++i) sections_[sections[i].op].emplace_back(file, i);
  }
}

BundleSet::Compiled BundleSet::compile(const registry::OperatorRecord& op,
                                       const std::vector<SectionAt>& sections,
                                       const std::vector<TuningRow>& own) const {
  const uint64_t schema_hash = op.schema->prefix_hash(op.schema->args.size());
  std::vector<std::vector<TuningRow>> rows;
  rows.reserve(sections.size());
  std::vector<RowIndex::Section> usable;
  Compiled made{op.revision, own.size(), nullptr, {}};
  std::vector<uint32_t> files;
  RowCounts all_missed;
  for (const auto& [file, at] : sections) {
    const FoundBundle& about = files_[file].about;
    const BundleFile& opened = *files_[file].bundle;
    const Bundle::Section& section = opened.bundle().sections()[at];
    const Machine& machine = opened.bundle().machines()[section.machine];
    const Validity validity = validity_of(machine, here());
    RowCounts missed;
    if (validity == Validity::foreign) {
      // found() counts those of the file.
      all_missed.foreign += section.rows;
      continue;
    }
    if (section.schema_hash != schema_hash || opened.bundle().measurement() != kMeasurement) {
      missed.stale = section.rows;
    } else if (Result<std::vector<TuningRow>> read = opened.rows(section); !read) {
      missed.damaged = section.rows;
      problems_.with([&](std::vector<Problem>& problems) {
        problems.push_back({op.schema->name, about.path, std::string(read.error().message())});
      });
      has_problems_.store(true, std::memory_order_release);
    } else {
      rows.push_back(std::move(*read));
      usable.push_back(
          {&rows.back(),
           {name_in(about.path), about.digest, about.place, machine, validity == Validity::aged},
           {}});
      files.push_back(file);
      continue;
    }
    made.counts.emplace_back(file, missed);
    all_missed += missed;
  }
  if (!own.empty()) usable.push_back({&own, {"", "", Place::online, here(), false}, {}});
  made.rows = RowIndex::compile(op, usable, all_missed);
  for (size_t i = 0; i < files.size(); ++i) made.counts.emplace_back(files[i], usable[i].counts);
  return made;
}

std::shared_ptr<const RowIndex> BundleSet::rows_of(const registry::OperatorRecord& op,
                                                   const std::vector<TuningRow>& own) const {
  static const std::vector<SectionAt> kNone;
  const auto found = sections_.find(op.schema->name);
  if (found == sections_.end() && own.empty()) return nullptr;
  const std::vector<SectionAt>& sections = found == sections_.end() ? kNone : found->second;
  return compiled_.with([&](CompiledByOp& compiled) {
    const auto known = compiled.find(op.schema->name);
    if (known != compiled.end() && known->second.revision == op.revision &&
        known->second.own == own.size())
      return known->second.rows;
    Compiled made = compile(op, sections, own);
    return (compiled[op.schema->name] = std::move(made)).rows;
  });
}

void BundleSet::log_problems() const {
  if (!has_problems_.load(std::memory_order_acquire)) return;
  has_problems_.store(false, std::memory_order_relaxed);
  std::vector<Problem> found;
  problems_.with([&](std::vector<Problem>& problems) { found.swap(problems); });
  for (const Problem& each : found) {
    log_.tell(Level::warning, "tune.section", each.op, "", each.path,
              [&] { return base::concat(each.path, ": ", each.text, "; they are not used"); });
  }
}

std::vector<FoundBundle> BundleSet::found() const {
  std::vector<FoundBundle> found;
  for (const File& file : files_) {
    FoundBundle& about = found.emplace_back(file.about);
    if (!file.bundle) continue;
    const Bundle& bundle = file.bundle->bundle();
    for (const Bundle::Section& section : bundle.sections()) {
      if (validity_of(bundle.machines()[section.machine], here()) == Validity::foreign)
        about.counts.foreign += section.rows;
    }
  }
  compiled_.with([&](CompiledByOp& compiled) {
    for (const auto& [op, each] : compiled) {
      for (const auto& [file, counts] : each.counts) found[file].counts += counts;
    }
  });
  return found;
}

std::set<std::string> BundleSet::operators() const {
  std::set<std::string> names;
  for (const auto& [op, sections] : sections_) names.insert(op);
  return names;
}

}  // namespace opmux::tune
