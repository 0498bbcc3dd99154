#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace txinbox::test {

/// Files, as they are for a process and as a disk has them: what was changed since the last sync may be
/// on the disk, or not, or a part of it. Nothing is written to the real files until the power is cut.
class PowerDisk {
 public:
  struct File {
    std::string now;      ///< What the process sees.
    std::string on_disk;  ///< What is there for sure.
  };
  using Handle = std::shared_ptr<File>;

  bool exists(const std::string& path);

  /// A file that does not exist is created.
  Handle open(const std::string& path);
  void remove(const std::string& path);

  void write(const Handle&, std::string_view bytes, std::size_t offset);
  void truncate(const Handle&, std::size_t size);

  void sync(const Handle&);
  /// Of the folder: which files there are. All of them are taken to be in one.
  void sync_names();

  /// The changes that a cut of the power could undo, in pieces as small as a disk may write.
  std::size_t pieces_at_risk() const;

  /// How many changes and syncs there were.
  int version() const { return version_; }

  /// What becomes of a change that was not synced. A name or a length that is scrambled is kept.
  enum class Fate { lost, kept, scrambled };

  /// The power is cut: the real files become what the disk has. `fate` is asked for each piece, in the
  /// order in which they were written.
  void cut(const std::function<Fate(std::size_t piece)>& fate);

 private:
  static constexpr std::size_t sector = 512;

  struct Write {
    Handle file;
    std::size_t offset;
    std::string bytes;
  };
  struct Truncate {
    Handle file;
    std::size_t size;
  };
  struct Name {
    std::string path;
    Handle file;  ///< Null: removed.
  };
  using Change = std::variant<Write, Truncate, Name>;
  using Names = std::map<std::string, Handle>;

  static void apply(const Write&, std::string&);
  static std::vector<Change> pieces_of(const Change&);
  void apply_to_disk(const Change&);
  void look_up(const std::string& path);

  Names now_, on_disk_;
  std::vector<Change> pending_;
  int version_ = 0;
};

}  // namespace txinbox::test
