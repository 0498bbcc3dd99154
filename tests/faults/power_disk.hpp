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

/// Simulates files on a disk that loses power. It knows each file as a process sees it, and as the disk surely has it.
/// Changes after the last sync may be on the disk completely, partly, or not at all. The real files are not written
/// until the power is cut.
class PowerDisk {
 public:
  struct File {
    std::string now;      ///< The content that the process sees.
    std::string on_disk;  ///< The content that is surely on the disk.
  };
  using Handle = std::shared_ptr<File>;

  bool exists(const std::string& path);

  /// Opens a file. Creates it if it does not exist.
  Handle open(const std::string& path);
  void remove(const std::string& path);

  void write(const Handle&, std::string_view bytes, std::size_t offset);
  void truncate(const Handle&, std::size_t size);

  void sync(const Handle&);
  /// Syncs the folder: the names of the files. All files are treated as if they were in one folder.
  void sync_names();

  /// The number of pieces that a power cut could undo. A piece is at most a sector, the smallest unit that a disk
  /// writes.
  std::size_t pieces_at_risk() const;

  /// The number of changes and syncs until now.
  int version() const { return version_; }

  /// The fate of a change that was not synced. `scrambled` applies only to bytes; a name or a length is then kept.
  enum class Fate { lost, kept, scrambled };

  /// Cuts the power: writes to the real files what the disk has. Calls `fate` for each piece, in the order of the
  /// writes.
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
    Handle file;  ///< Null if the file was removed.
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
